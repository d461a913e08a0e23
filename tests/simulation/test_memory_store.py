"""What the store in memory keeps: tokens, copies, order, pages, sparse indexes; and that it guesses nothing."""

from __future__ import annotations

import secrets
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from botocore.exceptions import ClientError

from spendgate.store.tables import create_tables, ledger_table
from tests.simulation.memory_cases import ITEM, KEY, OTHER, X, a_store, touched, update
from tests.simulation.memory_store import MemoryStore
from tests.simulation.memory_values import Unsupported

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

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
