"""Requests to a store that holds one item, and what each is answered with: how they are written down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from spendgate.store.tables import ledger_table
from tests.simulation.memory_store import MemoryStore

KEY: Final = {"pk": {"S": "p"}, "sk": {"S": "s"}}
OTHER: Final = {"pk": {"S": "p"}, "sk": {"S": "t"}}
ITEM: Final = {**KEY, "n": {"N": "5"}, "s": {"S": "m"}, "tree_pk": {"S": "/"}, "tree_sk": {"S": "a"}}
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


def a_store(table: str = "ledger", clock: datetime | None = None) -> MemoryStore:
    """A store with a table that holds ITEM."""
    store = MemoryStore(lambda: clock or datetime.now(UTC))
    store.create_table(**ledger_table(table))
    store.put_item(TableName=table, Item=ITEM)
    return store
