"""What a call's two transactions cost in write units, computed from the items themselves by DynamoDB's rules.

The local store's own figures know nothing of the indexes; ``emulator_counts`` asks whether they agree in the rest.
The rules, from the developer guide at docs.aws.amazon.com/amazondynamodb/latest/developerguide:

- CapacityUnitCalculations.html: an item's size is that of its attributes' names and values.
- read-write-operations.html: a write takes one unit for each KB of the larger of the item before and after, rounded
  up for each item; a write in a transaction takes two. A failed condition takes as much as the write would have.
- GSI.html, "Write capacity units": an index entry that appears or disappears is one write, one whose key changes two,
  one that stays as it is none. Whether a transaction doubles these as well is not written; ``units_most`` does it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.rig import PATHS, Rig, chat_body, key_of_depth
from spendgate.store.tables import LEDGER_INDEXES

Item = Mapping[str, Any]

UNIT_BYTES: Final = 1024
IN_TRANSACTION: Final = 2
_CONTAINER_BYTES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCost:
    """One item of a transaction: its kind, its bytes before and after, and what writing it took."""

    kind: str
    before: int
    after: int
    units: int
    index_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCost:
    """A transaction and its items."""

    name: str
    depth: int
    items: tuple[ItemCost, ...]

    @property
    def table_units(self) -> int:
        """What the table's items take."""
        return sum(item.units for item in self.items)

    @property
    def index_units(self) -> int:
        """What the indexes take, each entry as a write outside of the transaction."""
        return sum(item.index_units for item in self.items)

    @property
    def units_most(self) -> int:
        """All of it, should the transaction double the indexes' writes too."""
        return self.table_units + IN_TRANSACTION * self.index_units


async def measure(rig: Rig) -> list[TransactionCost]:
    """Make a warm call at each depth and return what its reservation and its settlement cost."""
    found: list[TransactionCost] = []
    for depth in range(1, len(PATHS) + 1):
        # The second call finds every counter begun, as calls do.
        await rig.call(key_of_depth(depth), chat_body(1000))
        watch = _Watch(rig)
        rig.on_write = watch.before
        await rig.call(key_of_depth(depth), chat_body(1000))
        rig.on_write = lambda _: None
        watch.close()
        found += [
            TransactionCost(name=name, depth=depth, items=tuple(_cost(*change) for change in changes))
            for name, changes in zip(("reserve", "settle"), watch.transactions, strict=True)
        ]
    return found


def emulator_counts(rig: Rig) -> bool:
    """Tell whether the store's own figures follow the rules: a transaction that writes 3 KB takes 6 units."""
    item = {"pk": {"S": f"PROBE#{secrets.token_hex(8)}"}, "sk": {"S": "PROBE"}, "text": {"S": "x" * 2500}}
    answer = rig.ledger.client.transact_write_items(
        TransactItems=[{"Put": {"TableName": rig.ledger.table, "Item": item}}], ReturnConsumedCapacity="TOTAL"
    )
    return sum(one.get("CapacityUnits", 0) for one in answer.get("ConsumedCapacity", ())) == 6


def item_bytes(item: Item) -> int:
    """Return the size of an item."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def write_units(before: Item, after: Item) -> int:
    """Return what one write takes outside of a transaction; an item that is not there is empty."""
    return max(1, -(-max(item_bytes(before), item_bytes(after)) // UNIT_BYTES))


def index_writes(before: Item, after: Item) -> int:
    """Return what a write takes in all indexes, which hold keys only."""
    return sum(_index_units(_entry(index, before), _entry(index, after)) for index in LEDGER_INDEXES)


@dataclass(slots=True)
class _Watch:
    """Reads a transaction's items before it is sent, and again before the next one is."""

    rig: Rig
    transactions: list[list[tuple[Item, Item]]] = field(default_factory=list)
    _open: list[tuple[Item, Item]] = field(default_factory=list)

    def before(self, writes: Sequence[Any]) -> None:
        self.close()
        keys = [_key(write) for write in writes]
        self._open = [(key, self._read(key)) for key in keys]

    def close(self) -> None:
        if self._open:
            self.transactions.append([(before, self._read(key)) for key, before in self._open])
            self._open = []

    def _read(self, key: Item) -> Item:
        found: Item = self.rig.ledger.client.get_item(TableName=self.rig.ledger.table, Key=key).get("Item", {})
        return found


def _key(write: Mapping[str, Any]) -> dict[str, Any]:
    ((_, content),) = write.items()
    source = content.get("Key") or content["Item"]
    return {"pk": source["pk"], "sk": source["sk"]}


def _cost(before: Item, after: Item) -> ItemCost:
    return ItemCost(
        kind=after["pk"]["S"].partition("#")[0],
        before=item_bytes(before),
        after=item_bytes(after),
        units=IN_TRANSACTION * write_units(before, after),
        index_units=index_writes(before, after),
    )


def _entry(index: Mapping[str, Any], item: Item) -> Item:
    names = [key["AttributeName"] for key in index["KeySchema"]]
    return {name: item[name] for name in (*names, "pk", "sk")} if all(name in item for name in names) else {}


def _index_units(before: Item, after: Item) -> int:
    return 0 if before == after else sum(write_units({}, entry) for entry in (before, after) if entry)


def _value_bytes(value: Mapping[str, Any]) -> int:
    kind, content = next(iter(value.items()))
    match kind:
        case "S":
            return len(str(content).encode())
        case "N":
            digits = len(content.lstrip("-").strip("0") or "0")
            return -(-digits // 2) + 1 + int(content.startswith("-"))
        case "BOOL" | "NULL":
            return 1
        case "L":
            return _CONTAINER_BYTES + sum(1 + _value_bytes(part) for part in content)
        case "M":
            return _CONTAINER_BYTES + sum(1 + len(name.encode()) + _value_bytes(part) for name, part in content.items())
        case _:
            raise ValueError(f"the ledger has no attribute of type {kind}")
