"""A table in memory: items by key, each partition in the order of its range keys, and indexes that hold keys only."""

from __future__ import annotations

import marshal
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

from tests.simulation.memory_values import ExpressionInvalid, Item, OperandInvalid, Unsupported, Value, size

Key = tuple[str, str]
# Where an item stands in an index: its partition there, and in it the range and the item's own key.
Place = tuple[str, tuple[str, str, str]]

ITEM_BYTES_MAX: Final = 400 * 1024


@dataclass(slots=True)
class Index:
    """A sparse index: an item is in it while it has both attributes."""

    name: str
    attributes: tuple[str, str]
    partitions: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)

    def moved(self, key: Key, before: Mapping[str, Value], after: Mapping[str, Value]) -> Move | None:
        """Return how a write moves an item; OperandInvalid where its attribute cannot be a key."""
        first, second = self.attributes
        if before.get(first) is after.get(first) and before.get(second) is after.get(second):
            # An update hands on the values that it does not touch.
            return None
        return self, self._place(key, before), self._place(key, after)

    def _place(self, key: Key, item: Mapping[str, Value]) -> Place | None:
        first, second = (item.get(name) for name in self.attributes)
        if any(value is not None and not value.get("S") for value in (first, second)):
            raise OperandInvalid(
                "One or more parameter values were invalid: an index key of another type, or empty;"
                f" IndexName: {self.name}"
            )
        return None if first is None or second is None else (first["S"], (second["S"], *key))

    def move(self, before: Place | None, after: Place | None) -> None:
        """Take an item from one place to another."""
        if before == after:
            return
        if before is not None:
            entries = self.partitions[before[0]]
            del entries[bisect_left(entries, before[1])]
            if not entries:
                del self.partitions[before[0]]
        if after is not None:
            insort(self.partitions.setdefault(after[0], []), after[1])


Move = tuple[Index, Place | None, Place | None]


@dataclass(slots=True)
class Change:
    """What becomes of one item: None is no item."""

    key: Key
    before: Item | None
    after: Item | None
    moves: list[Move]


class Table:
    """A table of two text keys."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        if any(one["AttributeType"] != "S" for one in definition["AttributeDefinitions"]):
            raise Unsupported("a key that is no text")
        self.name: str = definition["TableName"]
        self.keys = _key_names(definition)
        self.indexes = {
            one["IndexName"]: Index(one["IndexName"], _key_names(one))
            for one in definition.get("GlobalSecondaryIndexes", ())
        }
        if any(
            one["Projection"] != {"ProjectionType": "KEYS_ONLY"} for one in definition.get("GlobalSecondaryIndexes", ())
        ):
            raise Unsupported("an index of more than keys")
        self._indexes = tuple(self.indexes.values())
        self.items: dict[Key, Item] = {}
        self._ranges: dict[str, list[str]] = {}

    def key(self, given: Mapping[str, Value]) -> Key:
        """Return a key; ExpressionInvalid where it is not one of this table's."""
        if len(given) != len(self.keys):
            raise ExpressionInvalid("The provided key element does not match the schema")
        return self.key_of(given)

    def key_of(self, item: Mapping[str, Value]) -> Key:
        """Return the key of an item; ExpressionInvalid where it has none."""
        try:
            first, second = item[self.keys[0]]["S"], item[self.keys[1]]["S"]
        except KeyError as error:
            raise ExpressionInvalid("The provided key element does not match the schema") from error
        if not first or not second:
            raise ExpressionInvalid(
                "One or more parameter values are not valid. The AttributeValue for a key attribute"
                " cannot contain an empty string value."
            )
        return first, second

    def key_values(self, key: Key) -> Item:
        """Return a key as attributes."""
        return {name: {"S": part} for name, part in zip(self.keys, key, strict=True)}

    def change(self, key: Key, after: Item | None) -> Change:
        """Prepare a write; OperandInvalid where the item cannot be kept."""
        before = self.items.get(key)
        if after is not None and len(marshal.dumps(after, 2)) > ITEM_BYTES_MAX and size(after) > ITEM_BYTES_MAX:
            raise OperandInvalid("Item size has exceeded the maximum allowed size")
        moves = [one.moved(key, before or {}, after or {}) for one in self._indexes]
        return Change(key, before, after, [one for one in moves if one is not None])

    def apply(self, change: Change) -> None:
        """Do a write."""
        first, second = change.key
        if change.after is not None:
            self.items[change.key] = change.after
            if change.before is None:
                insort(self._ranges.setdefault(first, []), second)
        elif change.before is not None:
            del self.items[change.key]
            ranges = self._ranges[first]
            del ranges[bisect_left(ranges, second)]
            if not ranges:
                del self._ranges[first]
        for index, before, after in change.moves:
            index.move(before, after)

    def entries(self, index_name: str | None, first: str) -> Partition:
        """Return a partition of the table itself, or of an index."""
        if index_name is None:
            own = [(second, first, second) for second in self._ranges.get(first, ())]
            return Partition(self, self.keys, own, first, is_index=False)
        index = self.indexes[index_name]
        return Partition(self, index.attributes, index.partitions.get(first, ()), first, is_index=True)

    def scanned(self) -> list[Key]:
        """Return all keys in the order of a scan, which is nobody's: partitions come by their hash."""
        return sorted(self.items, key=scan_order)


@dataclass(frozen=True, slots=True)
class Partition:
    """What a query reads: entries in the order of their range, each with the item's own key."""

    table: Table
    attributes: tuple[str, str]
    entries: Sequence[tuple[str, str, str]]
    first: str
    is_index: bool

    def item(self, entry: tuple[str, str, str]) -> Item:
        """Return what an entry shows: the item, or of an index its keys."""
        if not self.is_index:
            return self.table.items[entry[1:]]
        keys = {self.attributes[0]: {"S": self.first}, self.attributes[1]: {"S": entry[0]}}
        return {**self.table.key_values(entry[1:]), **keys}


def scan_order(key: Key) -> tuple[int, str, str]:
    """Return where a key comes in a scan."""
    return crc32(key[0].encode()), *key


def _key_names(definition: Mapping[str, Any]) -> tuple[str, str]:
    kinds = {one["KeyType"]: one["AttributeName"] for one in definition["KeySchema"]}
    return kinds["HASH"], kinds["RANGE"]


def page_of(items: Iterable[Item], *, bytes_max: int, limit: int | None) -> Iterator[Item]:
    """Yield the items of one page: up to a limit, and up to the item with which it is full."""
    total = 0
    for count, item in enumerate(items, start=1):
        yield item
        total += size(item)
        if total >= bytes_max or count == limit:
            return
