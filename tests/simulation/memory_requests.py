"""What a request to the store in memory says, and whether DynamoDB would take it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation import expression_parser
from tests.simulation.expressions import Condition, Names, Update, Values
from tests.simulation.memory_table import Change, Key, Table
from tests.simulation.memory_values import ExpressionInvalid, Item, OperandInvalid, Unsupported, given, taken
from tests.simulation.store_errors import invalid, reason

Answer = dict[str, Any]

_EXPRESSIONS: Final = frozenset(
    {
        "TableName",
        "ConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ReturnValuesOnConditionCheckFailure",
    }
)
_KNOWN: Final = {
    "Put": _EXPRESSIONS | {"Item"},
    "Update": _EXPRESSIONS | {"Key", "UpdateExpression"},
    "Delete": _EXPRESSIONS | {"Key"},
}


@dataclass(slots=True)
class Write:
    """One write of a request that is in order."""

    table: Table
    key: Key
    condition: Condition | None
    names: Names
    values: Values
    shows_item: bool
    # An update, a whole item, or None where the item is deleted.
    content: Update | Item | None

    def holds(self) -> bool:
        """Tell whether the condition is met."""
        item = self.table.items.get(self.key)
        return self.condition is None or self.condition.holds(item or {}, self.names, self.values)

    def change(self) -> Change:
        """Return what the write does; OperandInvalid."""
        content = self.content
        if isinstance(content, Update):
            item = self.table.items.get(self.key)
            if item is None:
                if not content.sets and not content.adds:
                    raise Unsupported("an update that only removes, of an item that is not there")
                item = self.table.key_values(self.key)
            content = content.applied(item, self.names, self.values)
        return self.table.change(self.key, content)

    def shown(self) -> Item | None:
        """Return the item that a failed condition shows."""
        item = self.table.items.get(self.key)
        return given(item) if self.shows_item and item is not None else None


def write_of(operation: str, kind: str, request: Mapping[str, Any], table: Table) -> Write:
    """Return a write; ValidationException or ExpressionInvalid where DynamoDB would not look at its item."""
    if not request.keys() <= _KNOWN.get(kind, frozenset()) or (kind == "Update") != ("UpdateExpression" in request):
        raise Unsupported(f"{operation} of {kind} with {sorted(request)}")
    names: Names = request.get("ExpressionAttributeNames", {})
    values = {name: taken(value) for name, value in request.get("ExpressionAttributeValues", {}).items()}
    condition, update, used = expression_parser.parsed(
        request.get("ConditionExpression"), request.get("UpdateExpression")
    )
    demand_used(operation, used, names, values)
    if update is not None and not update.written(names).isdisjoint(table.keys):
        raise ExpressionInvalid("Cannot update attribute. This attribute is part of the key")
    content: Update | Item | None = update
    if kind == "Put":
        content = {name: taken(value) for name, value in request["Item"].items()}
        key = table.key_of(content)
    else:
        key = table.key(request["Key"])
    shows = request.get("ReturnValuesOnConditionCheckFailure", "NONE") == "ALL_OLD"
    return Write(table, key, condition, names, values, shows, content)


def members(operation: str, request: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    """Return what a request says under these names, None where nothing; Unsupported where it says anything else."""
    if not request.keys() <= set(names):
        raise Unsupported(f"{operation} with {sorted(request.keys() - set(names))}")
    return tuple(map(request.get, names))


def answer_of(**members: Any) -> Answer:
    """Return an answer with what a client adds to each."""
    return {**members, "ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}}


def get_of(step: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the table and the key that a step of a reading transaction names."""
    if set(step) != {"Get"} or set(step["Get"]) != {"TableName", "Key"}:
        raise Unsupported(f"TransactGetItems with {step}")
    return step["Get"]["TableName"], step["Get"]["Key"]


def judged(writes: Sequence[Write]) -> tuple[list[dict[str, Any]], list[Change]]:
    """Return the reason of each write, all None where the transaction is done, and what is done then."""
    reasons: list[dict[str, Any]] = []
    changes: list[Change] = []
    for write in writes:
        if not write.holds():
            reasons.append(reason("ConditionalCheckFailed", item=write.shown()))
            continue
        try:
            changes.append(write.change())
        except OperandInvalid as error:
            reasons.append(reason("ValidationError", str(error)))
        else:
            reasons.append(reason("None"))
    return reasons, changes


def demand_distinct(operation: str, found: Sequence[tuple[Table, Key]], most: int) -> None:
    """Require that a request names some items, not too many, and none twice."""
    if not 0 < len(found) <= most:
        raise invalid(operation, f"Member must have length less than or equal to {most}, and not be empty")
    if len({(table.name, key) for table, key in found}) < len(found):
        raise invalid(operation, "Transaction request cannot include multiple operations on one item")


def demand_used(operation: str, used: frozenset[str], names: Names, values: Values) -> None:
    """Require that every placeholder stands for something, and all that is said stands in an expression."""
    if len(names) + len(values) != len(used) or not (used.issuperset(names) and used.issuperset(values)):
        said = names.keys() | values.keys()
        undefined, unused = sorted(used - said), sorted(said - used)
        raise invalid(operation, f"Invalid expression: undefined {undefined}, unused {unused}")


@dataclass(frozen=True, slots=True)
class Paginator:
    """Asks an operation until it has no more."""

    operation: Callable[..., Answer]

    def paginate(self, **request: Any) -> Iterator[Answer]:
        """Yield the pages."""
        while True:
            answer = self.operation(**request)
            yield answer
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
