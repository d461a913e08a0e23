"""DynamoDB in memory, for a simulation: the operations that the store uses, as a client of botocore's answers them.

Operations are those of one caller after another, as if serialised; what DynamoDB does beside that (conflicts, throttling,
lost answers) whoever wraps it adds: ``faulty_store.py``, and ``doors.py`` in virtual time. What the code does not use raises
Unsupported rather than being guessed. That the answers are right is checked against an emulator, on random
histories, by ``compare.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

from tests.simulation import expression_parser
from tests.simulation.memory_requests import (
    Answer,
    Paginator,
    Write,
    answer_of,
    demand_distinct,
    demand_used,
    get_of,
    judged,
    members,
    write_of,
)
from tests.simulation.memory_table import Key, Table, page_of, scan_order
from tests.simulation.memory_tokens import Tokens
from tests.simulation.memory_values import ExpressionInvalid, Item, OperandInvalid, given
from tests.simulation.store_errors import Exceptions, cancelled, client_error, invalid, refused

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TRANSACTION_ITEMS_MAX: Final = 100
BATCH_GET_MAX: Final = 100
BATCH_WRITE_MAX: Final = 25
PAGE_BYTES: Final = 1024 * 1024


class MemoryStore:
    """Tables in this process, with the methods of a client. ``clock`` is the time of AWS, which tokens live by."""

    exceptions = Exceptions

    def __init__(self, clock: Callable[[], datetime], *, page_bytes: int = PAGE_BYTES) -> None:
        self._clock = clock
        self._page_bytes = page_bytes
        self._tables: dict[str, Table] = {}
        self._tokens = Tokens(clock)
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
        return answer_of(TableDescription={"TableName": name, "TableStatus": "ACTIVE"})

    # -- writes ------------------------------------------------------------------------------------------------------

    def transact_write_items(self, **request: Any) -> Answer:
        """Do all of the writes, or none."""
        operation = "TransactWriteItems"
        steps, token = members(operation, request, "TransactItems", "ClientRequestToken")
        with self._lock:
            writes = self._writes(operation, steps)
            if token is not None and self._tokens.is_replay(operation, token, steps):
                return answer_of()
            reasons, changes = judged(writes)
            if any(one["Code"] != "None" for one in reasons):
                raise cancelled(operation, reasons)
            for write, change in zip(writes, changes, strict=True):
                write.table.apply(change)
            if token is not None:
                self._tokens.remember(token, steps)
        return answer_of()

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
        (tables,) = members(operation, request, "RequestItems")
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
        return answer_of(UnprocessedItems={})

    # -- reads -------------------------------------------------------------------------------------------------------

    def get_item(self, **request: Any) -> Answer:
        """Return an item, if it is there."""
        name, given_key, _ = members("GetItem", request, "TableName", "Key", "ConsistentRead")
        with self._lock:
            table, key = self._key("GetItem", name, given_key)
            item = table.items.get(key)
            return answer_of() if item is None else answer_of(Item=given(item))

    def transact_get_items(self, **request: Any) -> Answer:
        """Return items of one instant, in the order asked; nothing for those that are not there."""
        operation = "TransactGetItems"
        (steps,) = members(operation, request, "TransactItems")
        with self._lock:
            found = [self._key(operation, *get_of(one)) for one in steps]
            demand_distinct(operation, found, TRANSACTION_ITEMS_MAX)
            held = (table.items.get(key) for table, key in found)
            return answer_of(Responses=[{} if item is None else {"Item": given(item)} for item in held])

    def batch_get_item(self, **request: Any) -> Answer:
        """Return the items that are there, in no order."""
        operation = "BatchGetItem"
        (tables,) = members(operation, request, "RequestItems")
        wanted = {name: members(operation, one, "Keys", "ConsistentRead")[0] for name, one in tables.items()}
        with self._lock:
            found = [self._key(operation, name, key) for name, keys in wanted.items() for key in keys]
            demand_distinct(operation, found, BATCH_GET_MAX)
            responses: dict[str, list[Item]] = {name: [] for name in wanted}
            for table, key in sorted(found, key=lambda one: scan_order(one[1])):
                if key in table.items:
                    responses[table.name].append(given(table.items[key]))
        return answer_of(Responses=responses, UnprocessedKeys={})

    def query(self, **request: Any) -> Answer:
        """Return a page of a partition of the table, or of an index: of that the keys only."""
        operation = "Query"
        name, text, names, values, index_name, consistent, limit, start = members(
            operation,
            request,
            "TableName",
            "KeyConditionExpression",
            *("ExpressionAttributeNames", "ExpressionAttributeValues"),
            *("IndexName", "ConsistentRead", "Limit", "ExclusiveStartKey"),
        )
        wanted = expression_parser.key_condition(text)
        demand_used(operation, wanted.placeholders, names, values)
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
            answer = answer_of(Items=[given(item) for item in page], Count=len(page), ScannedCount=len(page))
            # A page that ends at its limit says so even where nothing follows.
            if page and (len(page) < len(entries) or len(page) == limit):
                last = {name: page[-1][name] for name in {*table.keys, *partition.attributes}}
                answer["LastEvaluatedKey"] = given(last)
        return answer

    def scan(self, **request: Any) -> Answer:
        """Return a page of the table; what a filter leaves out counts for the page all the same."""
        operation = "Scan"
        name, text, names, values, _, start = members(
            operation,
            request,
            "TableName",
            "FilterExpression",
            *("ExpressionAttributeNames", "ExpressionAttributeValues"),
            *("ConsistentRead", "ExclusiveStartKey"),
        )
        wanted = None if text is None else expression_parser.condition(text)
        names, values = names or {}, values or {}
        demand_used(operation, frozenset() if wanted is None else wanted.placeholders, names, values)
        with self._lock:
            table = self._table(operation, name)
            keys = table.scanned()
            if start is not None:
                after = scan_order(table.key(start))
                keys = [key for key in keys if scan_order(key) > after]
            page = list(page_of((table.items[key] for key in keys), bytes_max=self._page_bytes, limit=None))
            chosen = [given(item) for item in page if wanted is None or wanted.holds(item, names, values)]
            answer = answer_of(Items=chosen, Count=len(chosen), ScannedCount=len(page))
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
        return answer_of()

    def _writes(self, operation: str, steps: Sequence[Mapping[str, Any]]) -> list[Write]:
        """Return the writes of a request; ValidationException where DynamoDB would not look at any of them."""
        try:
            writes = [
                write_of(operation, kind, said, self._table(operation, said["TableName"]))
                for step in steps
                for kind, said in step.items()
            ]
        except ExpressionInvalid as error:
            raise invalid(operation, str(error)) from error
        demand_distinct(operation, [(write.table, write.key) for write in writes], TRANSACTION_ITEMS_MAX)
        return writes
