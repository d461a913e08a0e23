"""Proof of conservation: every counter is recomputed from the reservations, and each difference is reported.

A budget's counters must equal the sum over the reservations that name it. Two things may be gone: buckets that were
evicted from a rolling hour, and counters of periods that are over. What a late settlement wrote after them is then all
that such a counter holds, so a sum over the latest settlements is as good as the sum over all; nothing else is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from spendgate.core.budget import BudgetState
from spendgate.core.counters import RESERVED, UNKNOWN, Hold, on_reserve, on_resolve, on_unknown
from spendgate.core.reservation import UNRESOLVED, Reservation
from spendgate.core.window import counter_window, is_bucket, is_past, outside_the_hour
from spendgate.errors import LedgerError
from spendgate.store.items import RETENTION
from spendgate.store.reader import Reader, days

# A reservation disappears so long after its resolution; a day that may have lost some proves nothing.
_PROVABLE: Final = RETENTION - timedelta(days=1)
# Clocks of functions differ a little: a budget may look younger than its first reservation.
_SKEW: Final = timedelta(minutes=5)

# Indexes follow the table within moments, and calls go on while the table is read: only what lasts is a difference,
# seen so often while its budget stood still, or so often where it never does.
TRIES_MAX: Final = 3
TRIES_IN_MOTION_MAX: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A counter of a budget, or a total of its usage records, that is not the sum over its reservations."""

    budget: str
    counter: str
    expected: int
    found: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What was compared, and what differs."""

    budgets: int
    reservations: int
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class Expected:
    """What one counter must be: the sum of what its reservations asked, and of each resolution in its order."""

    asked: int = 0
    resolved: list[tuple[datetime, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The sum of all changes."""
        return self.asked + sum(change for _, change in self.resolved)

    def is_lawful_remainder(self, found: int) -> bool:
        """Tell whether this is what stands after the counter was removed at some moment, or never."""
        latest_first = (change for _, change in sorted(self.resolved, reverse=True))
        return found == self.total or found in accumulate(latest_first, initial=0)


def audit(reader: Reader, now: datetime, *, pause: Callable[[], None]) -> AuditReport:
    """Compare every counter with the reservations; ``pause`` is called between tries of a table in motion."""
    report, moving = _compare(reader, now)
    still = Counter(_budgets_of(report) - moving)
    for _ in range(TRIES_IN_MOTION_MAX - 1):
        if all(still[path] >= TRIES_MAX for path in _budgets_of(report)):
            break
        pause()
        again, moving = _compare(reader, now)
        # While calls go on both sides move; a counter that is wrong stays wrong by the same amount.
        known = {(one.budget, one.counter, one.found - one.expected) for one in report.differences}
        lasting = tuple(
            one for one in again.differences if (one.budget, one.counter, one.found - one.expected) in known
        )
        report = AuditReport(budgets=again.budgets, reservations=again.reservations, differences=lasting)
        still.update(_budgets_of(report) - moving)
    return report


def _budgets_of(report: AuditReport) -> set[str]:
    return {one.budget for one in report.differences}


def expected_counters(reservations: Iterable[Reservation]) -> dict[str, dict[str, Expected]]:
    """Return, for each budget, what its counters are by these reservations: the changes that each has made."""
    budgets: dict[str, dict[str, Expected]] = {}
    for one in reservations:
        for hold in one.holds:
            counters = budgets.setdefault(hold.budget, {})
            for name, change in _changes_of_asking(one, hold).items():
                counters.setdefault(name, Expected()).asked += change
            if one.state in UNRESOLVED:
                continue
            if one.actual is None or one.resolved_at is None:
                raise LedgerError(f"reservation {one.id} is {one.state} without an amount or an instant")
            for name, change in on_resolve(hold, one.asked, one.actual, was_unknown=False).items():
                counters.setdefault(name, Expected()).resolved.append((one.resolved_at, change))
    return budgets


def _changes_of_asking(reservation: Reservation, hold: Hold) -> Mapping[str, int]:
    changes = Counter(on_reserve(hold, reservation.asked))
    if reservation.state == "unknown":
        changes.update(on_unknown(reservation.asked))
    return changes


def _compare(reader: Reader, now: datetime) -> tuple[AuditReport, set[str]]:
    """Return one comparison, and the budgets that changed while it was made."""
    states = reader.budgets()
    reservations = [one for state in states for one in _reservations(reader, state, now)]
    expected = expected_counters(reservations)
    differences: list[Difference] = []
    for state in states:
        path = state.policy.path
        differences += _budget_differences(state, expected.pop(path, {}), now)
        own = [one for one in reservations if one.path == path]
        differences += _usage_differences(reader, path, own, now)
    # Whatever is left belongs to a budget that is not in the table.
    differences += (
        Difference(budget=path, counter=name, expected=counter.total, found=0)
        for path, counters in sorted(expected.items())
        for name, counter in sorted(counters.items())
        if counter.total
    )
    report = AuditReport(budgets=len(states), reservations=len(reservations), differences=tuple(differences))
    if not differences:
        return report, set()
    before = {state.policy.path: state for state in states}
    return report, {after.policy.path for after in reader.budgets() if after != before.get(after.policy.path)}


def _reservations(reader: Reader, state: BudgetState, now: datetime) -> Iterator[Reservation]:
    for day in days(max((state.created_at or now) - _SKEW, now - _PROVABLE), now + _SKEW):
        yield from reader.reservations_of_day(state.policy.path, day)


def _budget_differences(state: BudgetState, expected: Mapping[str, Expected], now: datetime) -> Iterator[Difference]:
    counters = {RESERVED: state.reserved, UNKNOWN: state.unknown, **state.counters}
    outside = set(outside_the_hour(expected, now))
    evicted: Counter[str] = Counter()
    # Buckets come after their totals by name, and have to be seen first.
    for name in sorted(expected.keys() | counters.keys(), key=lambda name: (not is_bucket(name), name)):
        one, found = expected.get(name, Expected()), counters.get(name, 0)
        if name in outside and one.is_lawful_remainder(found):
            evicted[name.rpartition(".")[0]] += one.total - found
        elif _may_differ(name, one, found, state, now):
            continue
        elif found != one.total - evicted[name]:
            yield Difference(budget=state.policy.path, counter=name, expected=one.total - evicted[name], found=found)


def _may_differ(name: str, expected: Expected, found: int, state: BudgetState, now: datetime) -> bool:
    """Tell whether a counter may hold something else than the sum: of a period that is over, or of a long life."""
    if name in (RESERVED, UNKNOWN) or is_bucket(name):
        return False
    # Of a budget that is older than the records nothing is known of its first periods, and of its life a part.
    is_older = state.created_at is not None and state.created_at - _SKEW < now - _PROVABLE
    if is_past(name, now):
        return expected.is_lawful_remainder(found) or (is_older and expected == Expected())
    return is_older and counter_window(name)[1] == "life" and found >= expected.total


def _usage_differences(
    reader: Reader, path: str, reservations: Sequence[Reservation], now: datetime
) -> Iterator[Difference]:
    oldest = f"{now - _PROVABLE:%Y-%m-%d}"
    recorded = sum(record.get("cost", 0) for record in reader.usage_records(path) if record["sk"] > oldest)
    booked = sum(one.actual.usd for one in reservations if one.actual is not None)
    if recorded != booked:
        yield Difference(budget=path, counter="usage records", expected=booked, found=recorded)
