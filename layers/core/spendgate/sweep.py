"""The sweeper: what is past its deadline has an unknown outcome, which is asked for, and in the end charged.

Nothing is freed by time. Safe when two overlap: every change is conditioned on the state that it expects, and who
looks at an unknown reservation first puts it off for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from spendgate import admin_reconcile as reconciliation
from spendgate.core.event import Event
from spendgate.core.reservation import Reservation, Resolution
from spendgate.errors import TransitionIllegal
from spendgate.store.ledger import Ledger

if TYPE_CHECKING:
    # A sweeper that asks nobody does not load what speaks to providers.
    from spendgate.asking import Asking

# At most so many of each of the index's sixteen partitions in one run.
BATCH_MAX: Final = 100
# Providers are slow, and a run is not to last: the others are asked in the next one.
ASKS_MAX: Final = 10
# So many may wait for that among the overdue; more than these would leave newer calls no place.
WAITING_MAX: Final = 50
PUT_OFF: Final = timedelta(minutes=1)
CHARGE_UNKNOWN_AFTER: Final = timedelta(hours=72)
# What waits is looked at so often, should the time after which it is charged be changed meanwhile.
LOOK_AGAIN: Final = timedelta(hours=24)
# After the deadline: a record may come some seconds late, and an answer may still be worked on.
ASKED_AFTER: Final = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))
ASKED_EACH: Final = timedelta(hours=1)
OVERDUE: Final = "the deadline passed without an outcome"
SWEEPER: Final = "sweeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one run of the sweeper did."""

    unknown: int
    charged: int
    asked: int = 0
    proven: int = 0


def sweep(
    ledger: Ledger,
    now: datetime,
    *,
    charge_after: timedelta = CHARGE_UNKNOWN_AFTER,
    asking: Asking | None = None,
    batch_max: int = BATCH_MAX,
    asks_max: int = ASKS_MAX,
) -> Swept:
    """Mark overdue calls unknown, ask about those that a provider can prove, and charge what is unknown for too long.

    Without ``asking`` nobody is asked. LedgerUnavailable where the store cannot be reached; what was done so far stays
    done.
    """
    unknown = charged = 0
    askable: list[Reservation] = []
    for reservation_id in ledger.overdue(now, limit=batch_max):
        reservation = ledger.reservation(reservation_id)
        if reservation is None or reservation.deadline > now:
            continue
        if reservation.state == "in_flight":
            unknown += _done(ledger, reservation_id, now, Resolution(state="unknown", reason=OVERDUE, by=SWEEPER))
        elif reservation.state == "unknown" and asking is not None and asking.can_prove(reservation):
            askable.append(reservation)
        elif reservation.state == "unknown":
            charged += _charged_or_put_off(ledger, reservation, now, charge_after)
    if asking is None or not askable:
        return Swept(unknown=unknown, charged=charged)
    # Last, since it takes longest: nothing else waits for a provider.
    asked, proven, late = _ask(ledger, asking, askable, now, charge_after=charge_after, asks_max=asks_max)
    return Swept(unknown=unknown, charged=charged + late, asked=asked, proven=proven)


def next_ask(deadline: datetime, now: datetime) -> datetime:
    """Return when to ask next, by the age of the question: 1, 5 and 30 minutes after the deadline, then each hour."""
    for after in ASKED_AFTER:
        if now < deadline + after:
            return deadline + after
    last = deadline + ASKED_AFTER[-1]
    return last + ASKED_EACH * ((now - last) // ASKED_EACH + 1)


def trim(ledger: Ledger, now: datetime) -> int:
    """Evict old buckets of the rolling hour and remove counters of past periods; return how many budgets changed."""
    return sum(ledger.trim(state, now) for state in ledger.budgets())


def _ask(
    ledger: Ledger,
    asking: Asking,
    askable: Sequence[Reservation],
    now: datetime,
    *,
    charge_after: timedelta,
    asks_max: int,
) -> tuple[int, int, int]:
    """Ask about the first; return how many were asked about, proven, and charged."""
    asked = proven = charged = 0
    for reservation in askable[asks_max + WAITING_MAX :]:
        ledger.put_off(reservation.id, now + PUT_OFF, now)
    for reservation in askable[:asks_max]:
        # Put off before it is asked about: another sweeper does not ask too, and one that dies leaves no crowd.
        if not ledger.put_off(reservation.id, next_ask(reservation.deadline, now), now):
            continue
        asked += 1
        found = asking.ask(reservation)
        if found is not None:
            event = reconciliation.event(reservation, found, now)
            proven += _done(ledger, reservation.id, now, found, event=event)
        elif now >= reservation.deadline + charge_after:
            charged += _done(ledger, reservation.id, now, _late(charge_after))
    return asked, proven, charged


def _charged_or_put_off(ledger: Ledger, reservation: Reservation, now: datetime, charge_after: timedelta) -> bool:
    """Charge what is unknown for too long; what is not gives its place among the overdue to newer ones."""
    charge_at = reservation.deadline + charge_after
    if now >= charge_at:
        return _done(ledger, reservation.id, now, _late(charge_after))
    ledger.put_off(reservation.id, min(charge_at, now + LOOK_AGAIN), now)
    return False


def _late(charge_after: timedelta) -> Resolution:
    hours = int(charge_after.total_seconds() // 3600)
    return Resolution(state="charged", reason=f"unknown for {hours} hours", by=SWEEPER)


def _done(
    ledger: Ledger, reservation_id: str, now: datetime, resolution: Resolution, *, event: Event | None = None
) -> bool:
    try:
        return ledger.resolve(reservation_id, resolution, now, event=event).state == resolution.state
    except TransitionIllegal:
        # Somebody resolved it in the meantime; that is what it was waiting for.
        return False
