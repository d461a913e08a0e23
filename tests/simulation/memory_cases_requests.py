"""Conditions, transactions and reads."""

from __future__ import annotations

from typing import Final

from tests.simulation.memory_cases import (
    CANCELLED,
    INVALID,
    ITEM,
    KEY,
    OTHER,
    REFUSED,
    SHOWN,
    Case,
    X,
    item,
    touched,
    transaction,
    update,
)

REQUESTS: Final = (
    Case(
        name="a condition that holds",
        operation="update_item",
        request=touched("attribute_exists(#p) AND #n <= :n", n_p="pk", n_n="n", v_n={"N": "5"}),
        after=item(x=X),
    ),
    Case(
        name="numbers compare as numbers",
        operation="update_item",
        request=touched("#n > :n", n_n="n", v_n={"N": "10"}),
        code=REFUSED,
    ),
    Case(
        name="texts compare as texts",
        operation="update_item",
        request=touched("#s >= :a AND #s < :b AND #s > :c", n_s="s", v_a={"S": "m"}, v_b={"S": "é"}, v_c={"S": "M"}),
        after=item(x=X),
    ),
    Case(
        name="of two types neither is less",
        operation="update_item",
        request=touched("#n <= :n OR #n >= :n OR #n = :n", n_n="n", v_n={"S": "5"}),
        code=REFUSED,
    ),
    Case(
        name="what is not there compares with nothing",
        operation="update_item",
        request=touched("#g <= :n OR #g = :n", n_g="gone", v_n={"N": "5"}),
        code=REFUSED,
    ),
    Case(
        name="AND binds more than OR",
        operation="update_item",
        request=touched("attribute_exists(#p) OR #n = :n AND #n = :n", n_p="pk", n_n="n", v_n={"N": "6"}),
        after=item(x=X),
    ),
    Case(
        name="brackets bind more than AND",
        operation="update_item",
        request=touched("(attribute_exists(#p) OR #n = :n) AND #n = :n", n_p="pk", n_n="n", v_n={"N": "6"}),
        code=REFUSED,
    ),
    Case(
        name="a refused update shows the item where it is asked to",
        operation="update_item",
        request={**touched("attribute_not_exists(#p)", n_p="pk"), **SHOWN},
        code=REFUSED,
    ),
    Case(
        name="a refused update of an item that is not there shows none",
        operation="update_item",
        request={**update("SET #x = :x", "attribute_exists(pk)", OTHER, n_x="x", v_x=X), **SHOWN},
        code=REFUSED,
    ),
    Case(
        name="a whole item over another",
        operation="put_item",
        request={"Item": {**KEY, "l": {"L": [{"N": "1"}, {"BOOL": True}]}, "m": {"M": {"a": {"S": ""}}}}},
        after={**KEY, "l": {"L": [{"N": "1"}, {"BOOL": True}]}, "m": {"M": {"a": {"S": ""}}}},
    ),
    Case(
        name="a whole item that must not be there",
        operation="put_item",
        request={"Item": KEY, "ConditionExpression": "attribute_not_exists(pk)", **SHOWN},
        code=REFUSED,
    ),
    Case(
        name="an item without its key",
        operation="put_item",
        request={"Item": {"pk": {"S": "p"}}},
        code=INVALID,
    ),
    Case(
        name="a delete of what is not there",
        operation="delete_item",
        request={"Key": OTHER},
        after=ITEM,
    ),
    Case(
        name="a delete on a condition",
        operation="delete_item",
        request={
            "Key": KEY,
            "ConditionExpression": "#n = :n",
            "ExpressionAttributeNames": {"#n": "n"},
            "ExpressionAttributeValues": {":n": {"N": "6"}},
        },
        code=REFUSED,
    ),
    Case(
        name="a transaction of which one condition fails does nothing",
        operation="transact_write_items",
        request=transaction(
            touched("attribute_exists(#p)", n_p="pk"),
            {**touched("attribute_exists(#p)", n_p="pk"), "Key": OTHER, **SHOWN},
        ),
        code=f"{CANCELLED} ConditionalCheckFailed,None",
    ),
    Case(
        name="a transaction shows what its conditions met",
        operation="transact_write_items",
        request=transaction({**touched("attribute_not_exists(#p)", n_p="pk"), **SHOWN}),
        code=f"{CANCELLED} ConditionalCheckFailed",
    ),
    Case(
        name="a transaction shows nothing that it is not asked for",
        operation="transact_write_items",
        request=transaction(touched("attribute_not_exists(#p)", n_p="pk")),
        code=f"{CANCELLED} ConditionalCheckFailed",
    ),
    Case(
        name="one item twice in a transaction",
        operation="transact_write_items",
        request=transaction(touched("attribute_exists(pk)"), touched("attribute_exists(pk)")),
        code=INVALID,
    ),
    Case(
        name="a transaction of 101 writes",
        operation="transact_write_items",
        request=transaction(
            *({**touched("attribute_exists(pk)"), "Key": {**KEY, "sk": {"S": str(n)}}} for n in range(101))
        ),
        code=INVALID,
    ),
    Case(
        name="a token of more than 36 characters",
        operation="transact_write_items",
        request={**transaction(touched("attribute_exists(pk)")), "ClientRequestToken": "t" * 37},
        code=INVALID,
    ),
    Case(
        name="an item that is not there",
        operation="get_item",
        request={"Key": OTHER, "ConsistentRead": True},
        after=ITEM,
    ),
    Case(
        name="items that are there and not",
        operation="transact_get_items",
        request={"TransactItems": [{"Get": {"Key": KEY}}, {"Get": {"Key": OTHER}}]},
        after=ITEM,
    ),
    Case(
        name="a consistent read of an index",
        operation="query",
        request={
            "IndexName": "tree",
            "ConsistentRead": True,
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": "tree_pk"},
            "ExpressionAttributeValues": {":p": {"S": "/"}},
        },
        code=INVALID,
    ),
    Case(
        name="an index that is not there",
        operation="query",
        request={
            "IndexName": "none",
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": "tree_pk"},
            "ExpressionAttributeValues": {":p": {"S": "/"}},
        },
        code=INVALID,
    ),
    Case(
        name="a query by what is no key",
        operation="query",
        request={
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": "tree_pk"},
            "ExpressionAttributeValues": {":p": {"S": "/"}},
        },
        code=INVALID,
    ),
    Case(
        name="an index up to a bound",
        operation="query",
        request={
            "IndexName": "tree",
            "KeyConditionExpression": "#p = :p AND #s <= :s",
            "ExpressionAttributeNames": {"#p": "tree_pk", "#s": "tree_sk"},
            "ExpressionAttributeValues": {":p": {"S": "/"}, ":s": {"S": "a"}},
        },
        after=ITEM,
    ),
    Case(
        name="an index between two bounds, which both belong to it",
        operation="query",
        request={
            "IndexName": "tree",
            "KeyConditionExpression": "#p = :p AND #s BETWEEN :l AND :h",
            "ExpressionAttributeNames": {"#p": "tree_pk", "#s": "tree_sk"},
            "ExpressionAttributeValues": {":p": {"S": "/"}, ":l": {"S": "a"}, ":h": {"S": "a"}},
        },
        after=ITEM,
    ),
    Case(
        name="a scan for the beginning of an attribute",
        operation="scan",
        request={
            "FilterExpression": "begins_with(#s, :s)",
            "ExpressionAttributeNames": {"#s": "s"},
            "ExpressionAttributeValues": {":s": {"S": "m"}},
        },
        after=ITEM,
    ),
    Case(
        name="a table that is not there",
        operation="get_item",
        request={"TableName": "gone", "Key": KEY},
        code="ResourceNotFoundException",
    ),
)
