"""The sweeper: what is past its deadline has an unknown outcome, and what is long past is charged. Nothing is freed.

Safe when two overlap: every change is conditioned on the state that it expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from spendgate.core.reservation import Resolution
from spendgate.errors import TransitionIllegal
from spendgate.store.ledger import Ledger

# At most so many of each of the index's sixteen partitions in one run.
BATCH_MAX: Final = 100
CHARGE_UNKNOWN_AFTER: Final = timedelta(hours=72)
OVERDUE: Final = "the deadline passed without an outcome"
SWEEPER: Final = "sweeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one run of the sweeper did."""

    unknown: int
    charged: int


def sweep(ledger: Ledger, now: datetime, *, charge_after: timedelta = CHARGE_UNKNOWN_AFTER) -> Swept:
    """Mark overdue calls unknown, and charge those unknown for too long in full.

    LedgerUnavailable where the store cannot be reached; what was done so far stays done.
    """
    unknown = charged = 0
    for reservation_id in ledger.overdue(now, limit=BATCH_MAX):
        reservation = ledger.reservation(reservation_id)
        if reservation is None or reservation.deadline > now:
            continue
        if reservation.state == "in_flight":
            unknown += _done(ledger, reservation_id, now, Resolution(state="unknown", reason=OVERDUE, by=SWEEPER))
        elif reservation.state == "unknown" and now >= reservation.deadline + charge_after:
            hours = int(charge_after.total_seconds() // 3600)
            late = Resolution(state="charged", reason=f"unknown for {hours} hours", by=SWEEPER)
            charged += _done(ledger, reservation_id, now, late)
    return Swept(unknown=unknown, charged=charged)


def trim(ledger: Ledger, now: datetime) -> int:
    """Evict old buckets of the rolling hour and remove counters of past periods; return how many budgets changed."""
    return sum(ledger.trim(state, now) for state in ledger.budgets())


def _done(ledger: Ledger, reservation_id: str, now: datetime, resolution: Resolution) -> bool:
    try:
        return ledger.resolve(reservation_id, resolution, now).state == resolution.state
    except TransitionIllegal:
        # Somebody resolved it in the meantime; that is what it was waiting for.
        return False
