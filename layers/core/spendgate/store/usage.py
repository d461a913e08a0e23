"""Reading usage records by day: a budget's own under its path, those of its runs through index ``tree``.

It is read in parts, each of a bounded number of requests, so that a year of many runs fits into no time limit's way. Nothing
here scans, and nothing asks a run: there are thousands, and most are over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, get_args

from spendgate.core.budget import RUN_PREFIX, is_within, owner
from spendgate.core.report import UsageRecord
from spendgate.core.window import instant, parse_instant
from spendgate.store import items
from spendgate.store.config import CATALOGUE, MANAGED, PLACES_USAGE, Config
from spendgate.store.reader import Reader
from spendgate.store.transact import persist
from spendgate.store.values import decode_item, encode_item

# Of one part: a further step reads at most STEP_RECORDS more.
RECORDS_MAX: Final = 2000
STEPS_MAX: Final = 150
STEP_RECORDS: Final = 100
_USAGE: Final = {"pk": "META#usage", "sk": "META"}
# The old version's functions end at the latest so long after the new one's first act: an update's length, and a call's.
_UPGRADE_MAX: Final = timedelta(hours=1)
# After "#", with which what follows a day begins, and before anything that a day may be followed by in order.
_DAY_ENDS: Final = "$"

# What of a budget is read next: its own records, those of its runs, or nothing more of itself but what is below it.
Stage = Literal["own", "runs", "below"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where reading goes on: at which budget, with what of it, and after which sort key (none: at its beginning)."""

    budget: str
    stage: Stage = "own"
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The records of one part, and where the next one begins; None at the end."""

    records: tuple[UsageRecord, ...]
    next: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReader:
    """The usage records of these UTC days of a budget and all below it; None: of all budgets. ``budget`` may be a run."""

    reader: Reader
    budget: str | None
    first: date
    last: date

    def part(self, place: Place | None) -> Part:
        """Return the records from a place on, or from the beginning; at least one step, and then so many and no more."""
        found: list[UsageRecord] = []
        for steps, (records, after) in enumerate(self._steps(place), start=1):
            found += records
            if len(found) >= RECORDS_MAX or steps >= STEPS_MAX:
                return Part(records=tuple(found), next=after)
        return Part(records=tuple(found), next=None)

    def admits(self, place: Place) -> bool:
        """Tell whether reading can go on at a place: one of another budget or of other days names nothing here."""
        if self.budget is not None and not is_within(place.budget, self.budget):
            return False
        low, high = self._bounds
        return not place.after or (place.stage != "below" and low <= place.after < high)

    def roots(self) -> tuple[str, ...]:
        """Return the budgets that everything read here counts on: the one that is asked for, or every root."""
        return tuple(self._children(items.TREE_ROOT)) if self.budget is None else (self.budget,)

    @property
    def _bounds(self) -> tuple[str, str]:
        return f"{self.first:%Y-%m-%d}", f"{self.last:%Y-%m-%d}{_DAY_ENDS}"

    @property
    def _is_run(self) -> bool:
        return self.budget is not None and owner(self.budget) != self.budget

    def _steps(self, place: Place | None) -> Iterator[tuple[list[UsageRecord], Place]]:
        """Yield what each request found, and the place after it."""
        for path in self._walk(None if place is None else place.budget):
            at = place if place is not None and place.budget == path else Place(budget=path)
            # Of a run that is asked for, the runs below it are walked: what is theirs may be in the index from before.
            stages: tuple[Stage, ...] = ("own",) if self._is_run else ("own", "runs")
            for stage in stages:
                if STAGES.index(stage) < STAGES.index(at.stage):
                    continue
                after: str | None = at.after if stage == at.stage else ""
                following: Stage = STAGES[STAGES.index(stage) + 1]
                while after is not None:
                    records, after = self._step(path, stage, after)
                    there = Place(budget=path, stage=following)
                    yield records, there if after is None else Place(budget=path, stage=stage, after=after)

    def _step(self, path: str, stage: Stage, after: str) -> tuple[list[UsageRecord], str | None]:
        """Return the next records, and the last one's sort key; None where there are no more."""
        low, high = self._bounds
        # The least text after another one is that with the least character behind it.
        low = f"{after}\0" if after else low
        partition = items.usage_partition(path)
        if stage == "own":
            found, more = self._range("pk", "sk", partition, low, high)
            return [_decoded(item) for item in found], found[-1]["sk"] if more else None
        keys, more = self._range("tree_pk", "tree_sk", partition, low, high)
        whole = self.reader.items_of([{"pk": key["pk"], "sk": key["sk"]} for key in keys])
        return [_decoded(item) for item in whole], keys[-1]["tree_sk"] if more else None

    def _walk(self, start: str | None) -> Iterator[str]:
        """Yield budgets, each before what is below it; from ``start`` on."""
        for root in self.roots():
            within = start is not None and is_within(start, root)
            # What stands before the way to the start was read before it.
            if within or start is None or root > start.partition("/")[0]:
                yield from self._below(root, start if within else None)

    def _below(self, path: str, start: str | None) -> Iterator[str]:
        if start is None or start == path:
            yield path
            for child in self._children(path):
                yield from self._below(child, None)
            return
        way = f"{path}/{start[len(path) + 1 :].partition('/')[0]}"
        for child in self._children(path):
            if child >= way:
                yield from self._below(child, start if child == way else None)

    def _children(self, path: str) -> Iterator[str]:
        """Yield the budgets right below another, in order; runs only below a run."""
        if path == items.TREE_ROOT:
            ranges = [("", "~")]
        elif self._is_run:
            ranges = [(f"{path}/", f"{path}/~")]
        else:
            # Past the runs, which may be very many: a run's name begins with this, and another's never does.
            runs = f"{path}/{RUN_PREFIX}"
            ranges = [(f"{path}/", runs), (f"{runs}~", f"{path}/~")]
        for low, high in ranges:
            after: str | None = low
            while after is not None:
                found, more = self._range("tree_pk", "tree_sk", path, after or " ", high)
                yield from (item["tree_sk"] for item in found)
                after = f"{found[-1]['tree_sk']}\0" if more else None

    def _range(
        self, partition_key: str, sort_key: str, partition: str, low: str, high: str
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return the items of a partition between two sort keys, the first ones, and whether there may be more."""
        request: Any = {
            "TableName": self.reader.table,
            "KeyConditionExpression": "#p = :p AND #s BETWEEN :l AND :h",
            "ExpressionAttributeNames": {"#p": partition_key, "#s": sort_key},
            "ExpressionAttributeValues": encode_item({":p": partition, ":l": low, ":h": high}),
            "Limit": STEP_RECORDS,
        }
        # An index follows the table within moments, and cannot be asked for more.
        request.update({"ConsistentRead": True} if partition_key == "pk" else {"IndexName": "tree"})
        answer = persist(lambda: self.reader.client.query(**request), self.reader.timing)
        found = [decode_item(item) for item in answer["Items"]]
        return found, bool(found) and "LastEvaluatedKey" in answer


def claim_usage(config: Config, now: datetime) -> None:
    """Record from when on each usage record of a run is found by day: always, where no older version was here before.

    Anew where an older version has loaded the catalogue since: what it recorded after a rollback is not found either.
    """
    known, loaded, managed = (_item(config, key) for key in (_USAGE, CATALOGUE, MANAGED))
    if known is not None and (loaded is None or PLACES_USAGE in loaded):
        return
    is_new = known is None and loaded is None and managed is None
    item = encode_item({**_USAGE, "since": None if is_new else instant(now + _UPGRADE_MAX)})
    persist(lambda: config.client.put_item(TableName=config.table, Item=item), config.timing)


def usage_since(config: Config) -> datetime | None:
    """Return from when on each usage record of a run is found by day; None: always."""
    found = _item(config, _USAGE)
    return None if found is None or "since" not in found else parse_instant(found["since"])


def _item(config: Config, key: items.Key) -> dict[str, Any] | None:
    # By a query: the catalogue's function may not get many items at once.
    return next(Reader(config.table, config.client, config.timing).items_at(key["pk"]), None)


def _decoded(item: dict[str, Any]) -> UsageRecord:
    day, provider, rest = item["sk"].split("#", 2)
    model = _model(rest)
    return UsageRecord(
        day=day,
        budget=item["pk"].removeprefix(items.usage_partition("")),
        provider=None if provider == "-" else provider,
        model=None if model == "-" else model,
        sums={name: value for name, value in item.items() if isinstance(value, int)},
    )


def _model(text: str) -> str:
    """Return the model of a record, whose name may have a "#": what follows it is no price row, or one by its names."""
    if text.endswith("#-"):
        return text.removesuffix("#-")
    names = text.split("#")[:-1]
    half = len(names) // 2
    # A row's own model is the same, unless the name is an alias of it.
    return "#".join(names[:half]) if names[:half] == names[half + 1 :] else text.rsplit("#", 3)[0]
