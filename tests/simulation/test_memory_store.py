"""The store in memory answers as DynamoDB's documentation says, and as an emulator does where that is right."""

from __future__ import annotations

import inspect
import re
import secrets
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from botocore.exceptions import ClientError

from spendgate.store import alerts, config, reader, run_keys, transact
from spendgate.store.tables import create_tables, ledger_table
from tests.simulation.compare import compared, patient
from tests.simulation.histories import CONFIG, LEDGER, History
from tests.simulation.memory_store import MemoryStore
from tests.simulation.memory_values import Unsupported
from tests.simulation.twin import told

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

KEY: Final = {"pk": {"S": "p"}, "sk": {"S": "s"}}
OTHER: Final = {"pk": {"S": "p"}, "sk": {"S": "t"}}
ITEM: Final = {**KEY, "n": {"N": "5"}, "s": {"S": "m"}, "tree_pk": {"S": "/"}, "tree_sk": {"S": "a"}}
SEEDS: Final = 4
STEPS: Final = 60
INVALID: Final = "ValidationException"
REFUSED: Final = "ConditionalCheckFailedException"
CANCELLED: Final = "TransactionCanceledException"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request to a table that holds ITEM alone: the code that it is answered with, and the item that is there then.

    ``emulator`` is what MiniStack says where it differs from AWS.
    """

    name: str
    operation: str
    request: dict[str, Any]
    code: str = ""
    after: dict[str, Any] | None = None
    emulator: str | None = None


def update(expression: str, condition: str | None = None, key: Any = KEY, **said: Any) -> dict[str, Any]:
    """A request for an update: names as ``n_a="attribute"``, values as ``v_a={"N": "1"}``."""
    request: dict[str, Any] = {"Key": key, "UpdateExpression": expression}
    names = {f"#{name[2:]}": value for name, value in said.items() if name.startswith("n_")}
    values = {f":{name[2:]}": value for name, value in said.items() if name.startswith("v_")}
    if names:
        request["ExpressionAttributeNames"] = names
    if values:
        request["ExpressionAttributeValues"] = values
    if condition is not None:
        request["ConditionExpression"] = condition
    return request


def touched(condition: str, **said: Any) -> dict[str, Any]:
    """A request that sets ``x`` where a condition holds."""
    return update("SET #x = :x", condition, n_x="x", v_x={"S": "y"}, **said)


def transaction(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"TransactItems": [{"Update": step} for step in steps]}


def item(**changes: Any) -> dict[str, Any]:
    """ITEM with other attributes; None is one that is gone."""
    return {name: value for name, value in {**ITEM, **changes}.items() if value is not None}


SHOWN: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
X: Final = {"S": "y"}

CASES: Final = (
    Case(
        name="ADD begins a counter, and adds to one",
        operation="update_item",
        request=update("ADD #n :a, #m :b", n_n="n", n_m="m", v_a={"N": "-7"}, v_b={"N": "0"}),
        after=item(n={"N": "-2"}, m={"N": "0"}),
    ),
    Case(
        name="ADD to what is no number",
        operation="update_item",
        request=update("ADD #s :a", n_s="s", v_a={"N": "1"}),
        code=INVALID,
    ),
    Case(
        name="ADD to what is no number, in a transaction",
        operation="transact_write_items",
        request=transaction(update("ADD #s :a", n_s="s", v_a={"N": "1"})),
        code=f"{CANCELLED} ValidationError",
    ),
    Case(
        name="a sum of more than 38 digits",
        operation="update_item",
        request=update("ADD #n :a", n_n="n", v_a={"N": "9" * 38}),
        code=INVALID,
        emulator="",
    ),
    Case(
        name="a number of more than 38 digits",
        operation="update_item",
        request=update("SET #n = :a", n_n="n", v_a={"N": "9" * 39}),
        code=INVALID,
    ),
    Case(
        name="38 digits",
        operation="update_item",
        request=update("SET #n = :a", n_n="n", v_a={"N": "9" * 38}),
        after=item(n={"N": "9" * 38}),
    ),
    Case(
        name="a number is kept without its zeros in front",
        operation="update_item",
        request=update("SET #n = :a", n_n="n", v_a={"N": "-007"}),
        after=item(n={"N": "-7"}),
    ),
    Case(
        name="an update sets, adds and removes at once",
        operation="update_item",
        request=update("SET #x = :x REMOVE #s ADD #n :a", n_x="x", n_s="s", n_n="n", v_x=X, v_a={"N": "1"}),
        after=item(x=X, s=None, n={"N": "6"}),
    ),
    Case(
        name="what is there is not set again by if_not_exists",
        operation="update_item",
        request=update("SET #s = if_not_exists(#s, :x), #x = if_not_exists(#x, :x)", n_s="s", n_x="x", v_x=X),
        after=item(x=X),
    ),
    Case(
        name="an update makes an item that is not there",
        operation="update_item",
        request=update("ADD #n :a", n_n="n", key=OTHER, v_a={"N": "1"}),
        after=ITEM,
    ),
    Case(
        name="one attribute twice",
        operation="update_item",
        request=update("SET #s = :x REMOVE #t", n_s="s", n_t="s", v_x=X),
        code=INVALID,
        emulator="",
    ),
    Case(
        name="one clause twice",
        operation="update_item",
        request=update("SET #s = :x SET #x = :x", n_s="s", n_x="x", v_x=X),
        code=INVALID,
        emulator="",
    ),
    Case(
        name="an update of a key",
        operation="update_item",
        request=update("SET #s = :x", n_s="sk", v_x=X),
        code=INVALID,
    ),
    Case(
        name="an empty update",
        operation="update_item",
        request=update(""),
        code=INVALID,
    ),
    Case(
        name="a name that is not used",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", n_y="y", v_x=X),
        code=INVALID,
    ),
    Case(
        name="a value that is not used",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x=X, v_y=X),
        code=INVALID,
    ),
    Case(
        name="a name that is not given",
        operation="update_item",
        request=update("SET #x = :x, #y = :x", n_x="x", v_x=X),
        code=INVALID,
    ),
    Case(
        name="a value that is not given",
        operation="update_item",
        request=update("SET #x = :x, #y = :y", n_x="x", n_y="y", v_x=X),
        code=INVALID,
    ),
    Case(
        name="a key of another table",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x=X, key={"pk": {"S": "p"}}),
        code=INVALID,
    ),
    Case(
        name="an empty key",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x=X, key={"pk": {"S": "p"}, "sk": {"S": ""}}),
        code=INVALID,
    ),
    Case(
        name="an empty text beside the key",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x={"S": ""}),
        after=item(x={"S": ""}),
    ),
    Case(
        name="an index's key that is no text",
        operation="update_item",
        request=update("SET #x = :x", n_x="tree_sk", v_x={"N": "1"}),
        code=INVALID,
    ),
    Case(
        name="an index's key that is empty",
        operation="update_item",
        request=update("SET #x = :x", n_x="tree_sk", v_x={"S": ""}),
        code=INVALID,
    ),
    Case(
        name="an expression of more than 4 KB",
        operation="update_item",
        request=touched(" OR ".join(["attribute_exists(pk)"] * 180)),
        code=INVALID,
    ),
    Case(
        name="an item of more than 400 KB",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x={"S": "x" * (400 * 1024)}),
        code=INVALID,
    ),
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


@pytest.fixture(scope="module")
def emulator(store_url: str) -> Iterator[DynamoDBClient]:
    """A client of MiniStack that no busy machine makes repeat itself."""
    client = patient(store_url)
    yield client
    client.close()


@pytest.fixture(scope="module")
def table(emulator: DynamoDBClient) -> str:
    """A table of MiniStack, for all cases."""
    name = f"cases-{secrets.token_hex(6)}"
    emulator.create_table(**ledger_table(name))
    return name


def a_store(table: str = "ledger", clock: datetime | None = None) -> MemoryStore:
    """A store with a table that holds ITEM."""
    store = MemoryStore(lambda: clock or datetime.now(UTC))
    store.create_table(**ledger_table(table))
    store.put_item(TableName=table, Item=ITEM)
    return store


def asked(case: Case, store: Any, table: str) -> tuple[tuple[str, Any], Any]:
    """What a store answers to a case, and the item that it then has."""
    request = case.request
    if "TransactItems" in request:
        steps = [{kind: {"TableName": table, **step} for kind, step in one.items()} for one in request["TransactItems"]]
        request = {**request, "TransactItems": steps}
    else:
        request = {"TableName": table, **request}
    try:
        answer = getattr(store, case.operation)(**request)
    except ClientError as error:
        answer = error
    return told(case.operation, request, answer), store.get_item(TableName=table, Key=KEY).get("Item")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_is_answered_as_documented_and_as_the_emulator_does(
    case: Case, emulator: DynamoDBClient, table: str
) -> None:
    emulator.put_item(TableName=table, Item=ITEM)
    emulator.delete_item(TableName=table, Key=OTHER)

    ours, theirs = asked(case, a_store(table), table), asked(case, emulator, table)

    assert (ours[0][0], ours[1]) == (case.code, case.after or ITEM)
    if case.emulator is None:
        assert theirs == ours
    else:
        assert theirs[0][0] == case.emulator


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_history_is_answered_as_the_emulator_does(seed: int, emulator: DynamoDBClient) -> None:
    seen = compared(seed, STEPS, emulator)

    assert seen["transact_write_items", ""] > 10
    assert seen["transact_write_items", f"{CANCELLED} ConditionalCheckFailed,None"] > 1


NOW: Final = datetime(2026, 11, 29, 23, 14, 30, tzinfo=UTC)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def a_clocked_store(**rest: Any) -> tuple[MemoryStore, Clock]:
    """A store with both tables, and its clock."""
    clock = Clock()
    store = MemoryStore(clock, **rest)
    create_tables(store.client, ledger="ledger", config="config")
    return store, clock


def added(amount: int, token: str | None = None, table: str = "ledger") -> dict[str, Any]:
    """A transaction that adds to a counter."""
    step = update("ADD #n :a", n_n="n", v_a={"N": str(amount)})
    request: dict[str, Any] = {"TransactItems": [{"Update": {"TableName": table, **step}}]}
    return request if token is None else {**request, "ClientRequestToken": token}


def counted(store: MemoryStore) -> str:
    """The counter."""
    return str(store.items("ledger")["p", "s"]["n"]["N"])


def test_the_same_token_and_transaction_changes_nothing_for_ten_minutes() -> None:
    store, clock = a_clocked_store()
    store.transact_write_items(**added(1, "token"))
    clock.now += timedelta(minutes=10) - timedelta(microseconds=1)

    store.transact_write_items(**added(1, "token"))
    assert counted(store) == "1"

    clock.now += timedelta(microseconds=1)
    store.transact_write_items(**added(1, "token"))
    assert counted(store) == "2"


def test_a_token_of_another_transaction_is_refused_as_by_the_emulator(emulator: DynamoDBClient, table: str) -> None:
    store = MemoryStore(lambda: NOW)
    store.create_table(**ledger_table(table))
    token = secrets.token_hex(16)

    for client in (store.client, emulator):
        client.transact_write_items(**added(1, token, table))
        with pytest.raises(ClientError, match="IdempotentParameterMismatchException"):
            client.transact_write_items(**added(2, token, table))


def test_a_token_of_a_transaction_that_was_not_done_is_free() -> None:
    store, _ = a_clocked_store()
    refused = added(1, "token")
    refused["TransactItems"][0]["Update"]["ConditionExpression"] = "attribute_exists(pk)"

    with pytest.raises(store.exceptions.TransactionCanceledException):
        store.transact_write_items(**refused)

    store.transact_write_items(**added(1))
    store.transact_write_items(**refused)
    assert counted(store) == "2"


def test_what_is_written_and_read_is_a_copy() -> None:
    store, _ = a_clocked_store()
    kept = {**ITEM, "l": {"L": [{"S": "a"}]}}
    written: dict[str, Any] = deepcopy(kept)
    store.put_item(TableName="ledger", Item=written)
    read = store.get_item(TableName="ledger", Key=KEY)["Item"]

    for held in (written, read):
        held["l"]["L"].append({"S": "b"})
        held["n"]["N"] = "0"
        del held["s"]

    assert store.items("ledger")["p", "s"] == kept


def test_a_partition_and_an_index_come_in_order_and_in_pages() -> None:
    store, _ = a_clocked_store(page_bytes=100)
    names = [f"{number:03}" for number in range(20)]
    for name in reversed(names):
        one = {"pk": {"S": "p"}, "sk": {"S": name}, "tree_pk": {"S": "/"}, "tree_sk": {"S": name}}
        store.put_item(TableName="ledger", Item=one)

    for index, key in ((None, "pk"), ("tree", "tree_pk")):
        request = {
            "TableName": "ledger",
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": key},
            "ExpressionAttributeValues": {":p": {"S": "p" if index is None else "/"}},
            **({} if index is None else {"IndexName": index}),
        }
        pages = list(store.get_paginator("query").paginate(**request))
        assert [one["sk"]["S"] for page in pages for one in page["Items"]] == names
        assert len(pages) > 3
        (few,) = [store.query(**request, Limit=3)]
        assert few["LastEvaluatedKey"]["sk"] == {"S": "002"}

    pages = list(store.get_paginator("scan").paginate(TableName="ledger"))
    assert sorted(one["sk"]["S"] for page in pages for one in page["Items"]) == names
    assert len(pages) > 3


def test_an_item_is_in_an_index_while_it_has_both_attributes() -> None:
    store, _ = a_clocked_store()

    def found(first: str) -> list[str]:
        answer = store.query(
            TableName="ledger",
            IndexName="tree",
            KeyConditionExpression="#p = :p",
            ExpressionAttributeNames={"#p": "tree_pk"},
            ExpressionAttributeValues={":p": {"S": first}},
        )
        return [one["tree_sk"]["S"] for one in answer["Items"]]

    store.put_item(TableName="ledger", Item=ITEM)
    assert found("/") == ["a"]
    store.update_item(TableName="ledger", **update("SET #p = :p", n_p="tree_pk", v_p={"S": "a"}))
    assert (found("/"), found("a")) == ([], ["a"])
    store.update_item(TableName="ledger", **update("REMOVE #s", n_s="tree_sk"))
    assert found("a") == []
    store.put_item(TableName="ledger", Item=ITEM)
    store.delete_item(TableName="ledger", Key=KEY)
    assert found("/") == []


def test_what_is_past_its_time_to_live_is_deleted_when_it_is_asked_for() -> None:
    store, clock = a_clocked_store()
    store.put_item(TableName="ledger", Item={**ITEM, "expires_at": {"N": str(int(NOW.timestamp()) + 1)}})

    assert store.expire("ledger") == 0
    clock.now += timedelta(seconds=1)
    assert store.expire("ledger") == 1
    assert store.items("ledger") == {}


def test_a_table_is_made_once() -> None:
    store, _ = a_clocked_store()

    create_tables(store.client, ledger="ledger", config="other")
    with pytest.raises(store.exceptions.ResourceInUseException):
        store.create_table(**ledger_table("ledger"))


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("update_item", update("SET #x = #x + :x", n_x="x", v_x=X)),
        ("update_item", update("SET #x = if_not_exists(#y, :x)", n_x="x", n_y="y", v_x=X)),
        ("update_item", update("SET plain = :x", v_x=X)),
        ("update_item", update("SET #x.#y = :x", n_x="x", n_y="y", v_x=X)),
        ("update_item", update("DELETE #x :x", n_x="x", v_x=X)),
        ("update_item", update("ADD #x :x", n_x="x", v_x=X)),
        ("update_item", update("REMOVE #x", n_x="x", key=OTHER)),
        ("update_item", update("SET #x = :x", n_x="x", v_x={"N": "1.5"})),
        ("update_item", update("SET #x = :x", n_x="x", v_x={"NULL": True})),
        ("update_item", {**update("SET #x = :x", n_x="x", v_x=X), "ReturnValues": "ALL_NEW"}),
        ("update_item", {"Key": KEY}),
        ("update_item", touched("NOT attribute_exists(pk)")),
        ("update_item", touched("pk <> :x")),
        ("update_item", touched("size(pk) > :x")),
        ("update_item", touched("pk = sk")),
        ("update_item", touched("pk = :x) ")),
        ("update_item", touched("(pk = :x")),
        ("update_item", touched("begins_with(pk, :n)", v_n={"N": "1"})),
        ("update_item", touched("pk < :b", v_b={"BOOL": True})),
        ("get_item", {"Key": KEY, "ProjectionExpression": "pk"}),
        ("scan", {"Select": "COUNT"}),
    ],
)
def test_what_the_store_does_not_know_stops_whoever_asks_for_it(operation: str, request_: dict[str, Any]) -> None:
    store = a_store()

    with pytest.raises(Unsupported):
        getattr(store, operation)(TableName="ledger", **request_)


@pytest.mark.parametrize(
    "steps", [[{"ConditionCheck": {"TableName": "ledger", "Key": KEY}}], [{"Get": {"TableName": "ledger", "Key": KEY}}]]
)
def test_a_transaction_of_other_steps_stops_whoever_asks_for_it(steps: list[Any]) -> None:
    with pytest.raises(Unsupported):
        a_store().transact_write_items(TransactItems=steps)


def test_batches_are_written_and_read() -> None:
    store = a_store()
    store.batch_write_item(RequestItems={"ledger": [{"PutRequest": {"Item": OTHER}}, {"DeleteRequest": {"Key": KEY}}]})

    answer = store.batch_get_item(RequestItems={"ledger": {"Keys": [KEY, OTHER], "ConsistentRead": True}})

    assert (answer["Responses"], answer["UnprocessedKeys"]) == ({"ledger": [OTHER]}, {})


@pytest.mark.parametrize("count", [0, 101])
def test_a_batch_has_a_size(count: int) -> None:
    keys = [{"pk": {"S": "p"}, "sk": {"S": f"s{number}"}} for number in range(count)]

    with pytest.raises(ClientError, match="ValidationException"):
        a_store().batch_get_item(RequestItems={"ledger": {"Keys": keys}})


class Recorded:
    """A client that keeps the names of the operations that it is asked for."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.asked: set[str] = set()

    def __getattr__(self, operation: str) -> Any:
        self.asked.add(operation)
        return getattr(self.store, operation)


def test_the_random_histories_hold_every_operation_that_the_code_asks_for() -> None:
    made: list[Recorded] = []

    def client(clock: Callable[[], datetime]) -> Any:
        store = MemoryStore(clock)
        create_tables(store.client, ledger=LEDGER, config=CONFIG)
        made.append(Recorded(store))
        return made[-1]

    for seed in range(SEEDS):
        History(seed, client).run(STEPS)

    sources = map(inspect.getsource, (alerts, config, reader, run_keys, transact))
    in_code = {name for source in sources for name in re.findall(r"client\.([a-z_]+)\(", source)}
    assert in_code
    assert set().union(*(one.asked for one in made)) == in_code
