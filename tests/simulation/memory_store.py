"""DynamoDB in memory, for a simulation: the operations that the store uses, as a client of botocore's answers them.

Operations are those of one caller after another, as if serialised; what makes DynamoDB more than that (conflicts,
throttling, lost answers, an index that lags) is added by ``faulty_store.py``. What the code does not use raises
Unsupported or TypeError rather than being guessed. That the answers are right is checked against an emulator, on random
histories, by ``compare.py``.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

from tests.simulation import expressions
from tests.simulation.expressions import (
    Condition,
    ExpressionInvalid,
    Item,
    Names,
    OperandInvalid,
    Unsupported,
    Update,
    Values,
)
from tests.simulation.memory_table import Change, Key, Table, given, page_of, scan_order, taken
from tests.simulation.store_errors import Exceptions, cancelled, client_error, invalid, reason, refused

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TRANSACTION_ITEMS_MAX: Final = 100
BATCH_GET_MAX: Final = 100
BATCH_WRITE_MAX: Final = 25
TOKEN_LENGTH_MAX: Final = 36
# How long a token is remembered: docs.aws.amazon.com/amazondynamodb, TransactWriteItems, "Idempotency".
TOKEN_LIFE: Final = timedelta(minutes=10)
PAGE_BYTES: Final = 1024 * 1024

Answer = dict[str, Any]


@dataclass(slots=True)
class _Write:
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


class MemoryStore:
    """Tables in this process, with the methods of a client. ``clock`` is the time of AWS, which tokens live by."""

    exceptions = Exceptions

    def __init__(self, clock: Callable[[], datetime], *, page_bytes: int = PAGE_BYTES) -> None:
        self._clock = clock
        self._page_bytes = page_bytes
        self._tables: dict[str, Table] = {}
        self._tokens: OrderedDict[str, tuple[datetime, bytes]] = OrderedDict()
        # The gateway's threads share a client.
        self._lock = Lock()

    @property
    def client(self) -> DynamoDBClient:
        """The store as what the code calls it."""
        return cast("DynamoDBClient", self)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    # -- for a simulation --------------------------------------------------------------------------------------------

    def items(self, table: str) -> Mapping[Key, Item]:
        """Return a table's items by key, as they are kept: to be read, not to be changed."""
        return self._tables[table].items

    def expire(self, table: str, attribute: str = "expires_at") -> int:
        """Delete what is past its time to live, as DynamoDB does some time after; return how many."""
        now = int(self._clock().timestamp())
        with self._lock:
            held = self._tables[table]
            old = [key for key, item in held.items.items() if attribute in item and int(item[attribute]["N"]) <= now]
            for key in old:
                held.apply(held.change(key, None))
        return len(old)

    # -- tables ------------------------------------------------------------------------------------------------------

    def create_table(self, **definition: Any) -> Answer:
        """Create a table and its indexes."""
        name = definition["TableName"]
        with self._lock:
            if name in self._tables:
                raise client_error("CreateTable", "ResourceInUseException", f"Table already exists: {name}")
            self._tables[name] = Table(definition)
        return _answer(TableDescription={"TableName": name, "TableStatus": "ACTIVE"})

    # -- writes ------------------------------------------------------------------------------------------------------

    def transact_write_items(self, **request: Any) -> Answer:
        """Do all of the writes, or none."""
        operation = "TransactWriteItems"
        steps, token = _members(operation, request, "TransactItems", "ClientRequestToken")
        with self._lock:
            writes = self._writes(operation, steps)
            if token is not None and self._is_replay(operation, token, steps):
                return _answer()
            reasons, changes = _judged(writes)
            if any(one["Code"] != "None" for one in reasons):
                raise cancelled(operation, reasons)
            for write, change in zip(writes, changes, strict=True):
                write.table.apply(change)
            if token is not None:
                self._tokens[token] = self._clock() + TOKEN_LIFE, marshal.dumps(steps, 2)
        return _answer()

    def put_item(self, **request: Any) -> Answer:
        """Write an item whole."""
        return self._single("PutItem", "Put", request)

    def update_item(self, **request: Any) -> Answer:
        """Change attributes of an item, or make one."""
        return self._single("UpdateItem", "Update", request)

    def delete_item(self, **request: Any) -> Answer:
        """Delete an item; one that is not there stays away."""
        return self._single("DeleteItem", "Delete", request)

    def batch_write_item(self, **request: Any) -> Answer:
        """Put and delete, each by itself."""
        operation = "BatchWriteItem"
        (tables,) = _members(operation, request, "RequestItems")
        kinds = {"PutRequest": "Put", "DeleteRequest": "Delete"}
        steps = [
            {kinds[kind]: {"TableName": table, **content}}
            for table, requests in tables.items()
            for one in requests
            for kind, content in one.items()
        ]
        with self._lock:
            if not 0 < len(steps) <= BATCH_WRITE_MAX:
                raise invalid(operation, "Too many items requested for the BatchWriteItem call")
            for write in self._writes(operation, steps):
                write.table.apply(write.change())
        return _answer(UnprocessedItems={})

    # -- reads -------------------------------------------------------------------------------------------------------

    def get_item(self, **request: Any) -> Answer:
        """Return an item, if it is there."""
        name, given_key, _ = _members("GetItem", request, "TableName", "Key", "ConsistentRead")
        with self._lock:
            table, key = self._key("GetItem", name, given_key)
            item = table.items.get(key)
            return _answer() if item is None else _answer(Item=given(item))

    def transact_get_items(self, **request: Any) -> Answer:
        """Return items of one instant, in the order asked; nothing for those that are not there."""
        operation = "TransactGetItems"
        (steps,) = _members(operation, request, "TransactItems")
        with self._lock:
            found = [self._key(operation, *_get(one)) for one in steps]
            _demand_distinct(operation, found, TRANSACTION_ITEMS_MAX)
            held = (table.items.get(key) for table, key in found)
            return _answer(Responses=[{} if item is None else {"Item": given(item)} for item in held])

    def batch_get_item(self, **request: Any) -> Answer:
        """Return the items that are there, in no order."""
        operation = "BatchGetItem"
        (tables,) = _members(operation, request, "RequestItems")
        wanted = {name: _members(operation, one, "Keys", "ConsistentRead")[0] for name, one in tables.items()}
        with self._lock:
            found = [self._key(operation, name, key) for name, keys in wanted.items() for key in keys]
            _demand_distinct(operation, found, BATCH_GET_MAX)
            responses: dict[str, list[Item]] = {name: [] for name in wanted}
            for table, key in sorted(found, key=lambda one: scan_order(one[1])):
                if key in table.items:
                    responses[table.name].append(given(table.items[key]))
        return _answer(Responses=responses, UnprocessedKeys={})

    def query(self, **request: Any) -> Answer:
        """Return a page of a partition of the table, or of an index: of that the keys only."""
        operation = "Query"
        name, text, names, values, index_name, consistent, limit, start = _members(
            operation,
            request,
            "TableName",
            "KeyConditionExpression",
            *("ExpressionAttributeNames", "ExpressionAttributeValues"),
            *("IndexName", "ConsistentRead", "Limit", "ExclusiveStartKey"),
        )
        wanted = expressions.key_condition(text)
        _demand_used(operation, wanted.placeholders, names, values)
        with self._lock:
            table = self._table(operation, name)
            if index_name is not None and index_name not in table.indexes:
                raise invalid(operation, f"The table does not have the specified index: {index_name}")
            if index_name is not None and consistent:
                raise invalid(operation, "Consistent reads are not supported on global secondary indexes")
            partition = table.entries(index_name, wanted.partition_of(values))
            for path, attribute in zip(wanted.paths, partition.attributes, strict=False):
                if names.get(path, path) != attribute:
                    raise invalid(operation, f"Query condition missed key schema element: {attribute}")
            entries = [entry for entry in partition.entries if wanted.takes(entry[0], values)]
            if start is not None:
                after = (start[partition.attributes[1]]["S"], *table.key_of(start))
                entries = [entry for entry in entries if entry > after]
            items = map(partition.item, entries)
            page = list(page_of(items, bytes_max=self._page_bytes, limit=limit))
            answer = _answer(Items=[given(item) for item in page], Count=len(page), ScannedCount=len(page))
            # A page that ends at its limit says so even where nothing follows.
            if page and (len(page) < len(entries) or len(page) == limit):
                last = {name: page[-1][name] for name in {*table.keys, *partition.attributes}}
                answer["LastEvaluatedKey"] = given(last)
        return answer

    def scan(self, **request: Any) -> Answer:
        """Return a page of the table; what a filter leaves out counts for the page all the same."""
        operation = "Scan"
        name, text, names, values, _, start = _members(
            operation,
            request,
            "TableName",
            "FilterExpression",
            *("ExpressionAttributeNames", "ExpressionAttributeValues"),
            *("ConsistentRead", "ExclusiveStartKey"),
        )
        wanted = None if text is None else expressions.condition(text)
        names, values = names or {}, values or {}
        _demand_used(operation, frozenset() if wanted is None else wanted.placeholders, names, values)
        with self._lock:
            table = self._table(operation, name)
            keys = table.scanned()
            if start is not None:
                after = scan_order(table.key(start))
                keys = [key for key in keys if scan_order(key) > after]
            page = list(page_of((table.items[key] for key in keys), bytes_max=self._page_bytes, limit=None))
            chosen = [given(item) for item in page if wanted is None or wanted.holds(item, names, values)]
            answer = _answer(Items=chosen, Count=len(chosen), ScannedCount=len(page))
            if len(page) < len(keys):
                answer["LastEvaluatedKey"] = table.key_values(keys[len(page) - 1])
        return answer

    def get_paginator(self, operation: str) -> Paginator:
        """Return what asks for page after page."""
        return Paginator(getattr(self, operation))

    # -- within ------------------------------------------------------------------------------------------------------

    def _table(self, operation: str, name: str) -> Table:
        if name not in self._tables:
            raise client_error(operation, "ResourceNotFoundException", "Requested resource not found")
        return self._tables[name]

    def _key(self, operation: str, table_name: str, key: Mapping[str, Any]) -> tuple[Table, Key]:
        table = self._table(operation, table_name)
        try:
            return table, table.key(key)
        except ExpressionInvalid as error:
            raise invalid(operation, str(error)) from error

    def _single(self, operation: str, kind: str, request: Mapping[str, Any]) -> Answer:
        with self._lock:
            (write,) = self._writes(operation, [{kind: request}])
            if not write.holds():
                raise refused(operation, write.shown())
            try:
                change = write.change()
            except OperandInvalid as error:
                raise invalid(operation, str(error)) from error
            write.table.apply(change)
        return _answer()

    def _writes(self, operation: str, steps: Sequence[Mapping[str, Any]]) -> list[_Write]:
        """Return the writes of a request; ValidationException where DynamoDB would not look at any of them."""
        try:
            writes = [self._write(operation, *one) for step in steps for one in step.items()]
        except ExpressionInvalid as error:
            raise invalid(operation, str(error)) from error
        _demand_distinct(operation, [(write.table, write.key) for write in writes], TRANSACTION_ITEMS_MAX)
        return writes

    def _write(self, operation: str, kind: str, request: Mapping[str, Any]) -> _Write:
        if not request.keys() <= _KNOWN.get(kind, frozenset()) or (kind == "Update") != ("UpdateExpression" in request):
            raise Unsupported(f"{operation} of {kind} with {sorted(request)}")
        table = self._table(operation, request["TableName"])
        names: Names = request.get("ExpressionAttributeNames", {})
        values = {name: taken(value) for name, value in request.get("ExpressionAttributeValues", {}).items()}
        condition, update, used = expressions.parsed(
            request.get("ConditionExpression"), request.get("UpdateExpression")
        )
        _demand_used(operation, used, names, values)
        if update is not None and not update.written(names).isdisjoint(table.keys):
            raise ExpressionInvalid("Cannot update attribute. This attribute is part of the key")
        content: Update | Item | None = update
        if kind == "Put":
            content = {name: taken(value) for name, value in request["Item"].items()}
            key = table.key_of(content)
        else:
            key = table.key(request["Key"])
        shows = request.get("ReturnValuesOnConditionCheckFailure", "NONE") == "ALL_OLD"
        return _Write(table, key, condition, names, values, shows, content)

    def _is_replay(self, operation: str, token: str, steps: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether this very transaction was done under its token; another under it is refused."""
        if not 0 < len(token) <= TOKEN_LENGTH_MAX:
            raise invalid(operation, "Member must have length less than or equal to 36")
        now = self._clock()
        while self._tokens and next(iter(self._tokens.values()))[0] <= now:
            self._tokens.popitem(last=False)
        expires_at, earlier = self._tokens.get(token, (now, b""))
        if expires_at <= now:
            self._tokens.pop(token, None)
            return False
        if marshal.loads(earlier) != list(steps):  # noqa: S302 - what it was dumped to is this process's own
            raise client_error(
                operation, "IdempotentParameterMismatchException", "Request parameters do not match the first call's"
            )
        return True


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


def _members(operation: str, request: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    """Return what a request says under these names, None where nothing; Unsupported where it says anything else."""
    if not request.keys() <= set(names):
        raise Unsupported(f"{operation} with {sorted(request.keys() - set(names))}")
    return tuple(map(request.get, names))


def _answer(**members: Any) -> Answer:
    return {**members, "ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}}


def _get(step: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if set(step) != {"Get"} or set(step["Get"]) != {"TableName", "Key"}:
        raise Unsupported(f"TransactGetItems with {step}")
    return step["Get"]["TableName"], step["Get"]["Key"]


def _judged(writes: Sequence[_Write]) -> tuple[list[dict[str, Any]], list[Change]]:
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


def _demand_distinct(operation: str, found: Sequence[tuple[Table, Key]], most: int) -> None:
    if not 0 < len(found) <= most:
        raise invalid(operation, f"Member must have length less than or equal to {most}, and not be empty")
    if len({(table.name, key) for table, key in found}) < len(found):
        raise invalid(operation, "Transaction request cannot include multiple operations on one item")


def _demand_used(operation: str, used: frozenset[str], names: Names, values: Values) -> None:
    """Require that every placeholder stands for something, and all that is said stands in an expression."""
    if len(names) + len(values) != len(used) or not (used.issuperset(names) and used.issuperset(values)):
        said = names.keys() | values.keys()
        undefined, unused = sorted(used - said), sorted(said - used)
        raise invalid(operation, f"Invalid expression: undefined {undefined}, unused {unused}")
