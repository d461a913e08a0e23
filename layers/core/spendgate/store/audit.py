"""Proof of conservation: every counter is recomputed from the reservations, and each difference is told.

A budget's counters must equal the sum over the reservations that name it. Two things are known to be gone: buckets
that were evicted from a rolling hour, and counters of periods that are over; nothing else may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from spendgate.core.budget import BudgetState
from spendgate.core.counters import RESERVED, UNKNOWN, on_reserve, on_resolve, on_unknown
from spendgate.core.reservation import UNRESOLVED, Reservation
from spendgate.core.window import is_bucket, is_past, outside_the_hour
from spendgate.errors import LedgerError
from spendgate.store.items import RETENTION
from spendgate.store.reader import Reader, days

# Indexes follow the table within moments, and calls go on while the table is read: only what lasts is a difference.
TRIES_MAX: Final = 3


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


def audit(reader: Reader, now: datetime, *, pause: Callable[[], None]) -> AuditReport:
    """Compare every counter with the reservations; ``pause`` is called between tries of a table in motion."""
    report = _compare(reader, now)
    for _ in range(TRIES_MAX - 1):
        if not report.differences:
            break
        pause()
        again = _compare(reader, now)
        lasting = tuple(one for one in again.differences if one in report.differences)
        report = AuditReport(budgets=again.budgets, reservations=again.reservations, differences=lasting)
    return report


def expected_counters(reservations: Iterable[Reservation]) -> dict[str, Counter[str]]:
    """Return, for each budget, what its counters are by these reservations: the changes that each has made, summed."""
    totals: dict[str, Counter[str]] = {}
    for one in reservations:
        for hold in one.holds:
            total = totals.setdefault(hold.budget, Counter())
            _add(total, on_reserve(hold, one.asked))
            if one.state in UNRESOLVED:
                if one.state == "unknown":
                    _add(total, on_unknown(one.asked))
                continue
            if one.actual is None:
                raise LedgerError(f"reservation {one.id} is {one.state} without an amount")
            _add(total, on_resolve(hold, one.asked, one.actual, was_unknown=False))
    return totals


def _compare(reader: Reader, now: datetime) -> AuditReport:
    states = reader.budgets()
    reservations = [one for state in states for one in _reservations(reader, state, now)]
    totals = expected_counters(reservations)
    differences: list[Difference] = []
    for state in states:
        differences += _budget_differences(state, totals.get(state.policy.path, Counter()), now)
        own = [one for one in reservations if one.path == state.policy.path]
        differences += _usage_differences(reader, state.policy.path, own, now)
    return AuditReport(budgets=len(states), reservations=len(reservations), differences=tuple(differences))


def _reservations(reader: Reader, state: BudgetState, now: datetime) -> Iterator[Reservation]:
    for day in days(max(state.created_at or now, now - RETENTION), now):
        yield from reader.reservations_of_day(state.policy.path, day)


def _budget_differences(state: BudgetState, expected: Counter[str], now: datetime) -> Iterator[Difference]:
    found = {RESERVED: state.reserved, UNKNOWN: state.unknown, **state.counters}
    gone = set(outside_the_hour((name for name in expected if is_bucket(name) and name not in found), now))
    for name in gone:
        # An evicted bucket has left its hour's total as well.
        expected[name.rpartition(".")[0]] -= expected[name]
    for name in sorted(expected.keys() | found.keys()):
        if name in gone or (name not in found and name not in (RESERVED, UNKNOWN) and is_past_counter(name, now)):
            continue
        if expected[name] != found.get(name, 0):
            yield Difference(budget=state.policy.path, counter=name, expected=expected[name], found=found.get(name, 0))


def is_past_counter(name: str, now: datetime) -> bool:
    """Tell whether a counter may have been trimmed, being of a period that is over."""
    return not is_bucket(name) and is_past(name, now)


def _usage_differences(
    reader: Reader, path: str, reservations: Iterable[Reservation], now: datetime
) -> Iterator[Difference]:
    oldest = f"{now - RETENTION:%Y-%m-%d}"
    recorded = sum(record.get("cost", 0) for record in reader.usage_records(path) if record["sk"] > oldest)
    booked = sum(one.actual.usd for one in reservations if one.actual is not None)
    if recorded != booked:
        yield Difference(budget=path, counter="usage records", expected=booked, found=recorded)


def _add(total: Counter[str], changes: Mapping[str, int]) -> None:
    for name, change in changes.items():
        total[name] += change
