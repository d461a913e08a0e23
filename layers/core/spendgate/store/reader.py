"""Reading the ledger: budgets, reservations, usage records and operators' events. Nothing here scans a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from spendgate.core.block import Block
from spendgate.core.budget import RUN_PREFIX, BudgetState, is_within
from spendgate.core.event import Event
from spendgate.core.reservation import UNRESOLVED, Reservation, State
from spendgate.core.window import instant
from spendgate.store import events, items
from spendgate.store.transact import Timing, persist
from spendgate.store.values import decode_item, encode_item, may_be_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# BatchGetItem takes at most 100 keys (docs.aws.amazon.com/amazondynamodb, BatchGetItem).
_BATCH_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads of the ledger's table, consistent wherever DynamoDB can."""

    table: str
    client: DynamoDBClient
    timing: Timing

    def budget(self, path: str) -> BudgetState | None:
        """Return a budget as it stands, None if there is none."""
        item = self._get(items.budget_key(path))
        return None if item is None else items.decode_budget(item)

    def budgets_on(self, paths: Sequence[str]) -> tuple[BudgetState, ...]:
        """Return the budgets of these paths that exist, in that order, all of one instant."""
        gets: Any = [{"Get": {"TableName": self.table, "Key": encode_item(items.budget_key(path))}} for path in paths]
        answer = persist(lambda: self.client.transact_get_items(TransactItems=gets), self.timing)
        return tuple(items.decode_budget(decode_item(one["Item"])) for one in answer["Responses"] if one.get("Item"))

    def budgets(self, *, runs: bool = True) -> tuple[BudgetState, ...]:
        """Return the whole tree in the order of its paths, with or without runs and what is below them."""
        paths: list[str] = []
        level = [items.TREE_ROOT]
        while level:
            found = [item["tree_sk"] for above in level for item in self._query("tree", "tree_pk", above)]
            found = [path for path in found if runs or f"/{RUN_PREFIX}" not in path]
            paths += found
            level = found
        states = (items.decode_budget(item) for item in self.items_of([items.budget_key(path) for path in paths]))
        return tuple(sorted(states, key=lambda state: state.policy.path.split("/")))

    def reservation(self, reservation_id: str) -> Reservation | None:
        """Return a reservation, None if there is none."""
        item = self._get(items.reservation_key(reservation_id))
        return None if item is None else items.decode_reservation(item)

    def reservations(
        self, *, budget: str | None = None, state: State | None = None, limit: int = 100, now: datetime
    ) -> tuple[Reservation, ...]:
        """Return reservations, the newest first; of one budget and all below it, and of one state, if asked."""
        if state in UNRESOLVED:
            chosen = [
                one
                for one in self._open_reservations()
                if one.state == state and (budget is None or is_within(one.path, budget))
            ]
        else:
            chosen = list(self._by_day(budget, state, now, limit=limit))
        return tuple(sorted(chosen, key=lambda one: one.id, reverse=True)[:limit])

    def overdue(self, now: datetime, *, limit: int) -> tuple[str, ...]:
        """Return the ids of unresolved reservations whose time to be looked at has come, at most ``limit`` a partition.

        That is their deadline, and of unknown ones what they were put off to since.
        """
        found = [
            item["pk"].removeprefix("RES#")
            for shard in range(items.OPEN_SHARDS)
            for item in self._query("open", "open_pk", f"OPEN#{shard}", up_to=("open_sk", instant(now)), limit=limit)
        ]
        return tuple(sorted(found))

    def oldest_unknown(self, *, looked_at_max: int) -> Reservation | None:
        """Return the oldest unknown reservation among so many of the oldest unresolved ones."""
        shards = range(items.OPEN_SHARDS)
        keys = sorted(item["pk"] for shard in shards for item in self._query("open", "open_pk", f"OPEN#{shard}"))
        found = (one for one in self._read_reservations(keys[:looked_at_max]) if one.state == "unknown")
        return min(found, key=lambda one: one.id, default=None)

    def reservations_of_day(self, path: str, day: str) -> tuple[Reservation, ...]:
        """Return the reservations of one leaf budget and UTC day."""
        keys = [item["pk"] for item in self._query("by_budget", "leaf_day", items.leaf_day(path, day))]
        return tuple(self._read_reservations(keys))

    def usage_records(self, path: str) -> tuple[Mapping[str, Any], ...]:
        """Return the usage records of one leaf budget, by day, provider, model and price row (``sk``)."""
        return tuple(self.items_at(f"USAGE#{path}"))

    def blocks(self) -> tuple[Block, ...]:
        """Return what a broken bound has blocked, by provider, model and feature."""
        return tuple(items.decode_block(item) for item in self.items_at(items.BLOCKS))

    def events(self, day: str, *, keys: bool = False) -> tuple[Event, ...]:
        """Return what operators did on one UTC day, or what keys did, the oldest first."""
        return tuple(events.decode_event(item) for item in self.items_at(events.partition(day, keys=keys)))

    def _get(self, key: items.Key) -> dict[str, Any] | None:
        if not may_be_key(key):
            return None
        answer = persist(
            lambda: self.client.get_item(TableName=self.table, Key=encode_item(key), ConsistentRead=True), self.timing
        )
        item = answer.get("Item")
        return None if item is None else decode_item(item)

    def items_of(self, keys: Sequence[items.Key]) -> Iterator[dict[str, Any]]:
        """Return the items of these keys that exist, as they stand, in no order."""
        for start in range(0, len(keys), _BATCH_MAX):
            wanted: Any = {
                self.table: {
                    "Keys": [encode_item(key) for key in keys[start : start + _BATCH_MAX]],
                    "ConsistentRead": True,
                }
            }
            while wanted:
                request = wanted
                # Called in this very turn.
                answer = persist(lambda: self.client.batch_get_item(RequestItems=request), self.timing)  # noqa: B023
                yield from (decode_item(item) for item in answer["Responses"].get(self.table, ()))
                wanted = answer.get("UnprocessedKeys")

    def _query(
        self, index: str, attribute: str, value: str, *, up_to: tuple[str, str] | None = None, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        names, values = {"#p": attribute}, {":p": {"S": value}}
        condition = "#p = :p"
        if up_to is not None:
            names["#s"], values[":s"] = up_to[0], {"S": up_to[1]}
            condition += " AND #s <= :s"
        yield from self._pages(condition, names, values, index=index, limit=limit)

    def items_at(self, pk: str) -> Iterator[dict[str, Any]]:
        """Return the items under one ``pk``, as they stand."""
        yield from self._pages("#p = :p", {"#p": "pk"}, {":p": {"S": pk}}, index=None, limit=None)

    def _pages(
        self, condition: str, names: dict[str, str], values: Any, *, index: str | None, limit: int | None
    ) -> Iterator[dict[str, Any]]:
        request: Any = {
            "TableName": self.table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        if index is None:
            request["ConsistentRead"] = True
        else:
            request["IndexName"] = index
        if limit is not None:
            request["Limit"] = limit
        while True:
            answer = persist(lambda: self.client.query(**request), self.timing)
            yield from (decode_item(item) for item in answer["Items"])
            if limit is not None or "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _read_reservations(self, keys: Sequence[str]) -> Iterator[Reservation]:
        found = self.items_of([{"pk": key, "sk": "RES"} for key in keys])
        yield from (items.decode_reservation(item) for item in found)

    def _open_reservations(self) -> Iterator[Reservation]:
        shards = range(items.OPEN_SHARDS)
        keys = [item["pk"] for shard in shards for item in self._query("open", "open_pk", f"OPEN#{shard}")]
        yield from self._read_reservations(keys)

    def _by_day(self, budget: str | None, state: State | None, now: datetime, *, limit: int) -> Iterator[Reservation]:
        """Go back day by day until there are enough; a whole day at a time, since ids of budgets interleave."""
        within = [one for one in self.budgets() if budget is None or is_within(one.policy.path, budget)]
        births = [one.created_at for one in within if one.created_at is not None]
        found = 0
        for day in days(max(min(births, default=now), now - items.RETENTION), now):
            for one in within:
                read = self.reservations_of_day(one.policy.path, day)
                chosen = [reservation for reservation in read if state is None or reservation.state == state]
                found += len(chosen)
                yield from chosen
            if found >= limit:
                return


def days(first: datetime, last: datetime) -> Iterator[str]:
    """Return the UTC days from one instant's to another's, the newest first."""
    day = last.replace(hour=0, minute=0, second=0, microsecond=0)
    while day.date() >= first.date():
        yield f"{day:%Y-%m-%d}"
        day -= timedelta(days=1)
