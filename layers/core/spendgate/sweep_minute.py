"""What the sweeper's function does each minute of a deployed stack: sweep, trim, and count what nobody can account for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from spendgate.calls import Log, Metrics
from spendgate.core.money import usd_text
from spendgate.store.ledger import Ledger
from spendgate.sweep import sweep

if TYPE_CHECKING:
    from spendgate.asking import Asking

# How many unresolved reservations are looked at, the oldest first, for the age of the oldest unknown one.
LOOKED_AT_MAX: Final = 100
# Each may take as long as the gateway's answer is waited for; a minute's run has a minute.
ASKS_MAX: Final = 3
ASK_SECONDS_MAX: Final = 12.0


def minute(
    ledger: Ledger,
    now: datetime,
    *,
    charge_after: timedelta,
    metrics: Metrics,
    log: Log,
    asking: Asking | None = None,
) -> dict[str, int]:
    """Do the minute's work and return what it came to. LedgerUnavailable; what was done so far stays done."""
    swept = sweep(ledger, now, charge_after=charge_after, asking=asking, asks_max=ASKS_MAX)
    budgets = ledger.budgets()
    trimmed = sum(ledger.trim(state, now) for state in budgets)
    roots = [state for state in budgets if "/" not in state.policy.path]
    unknown, reserved = sum(state.unknown for state in roots), sum(state.reserved for state in roots)
    age = _oldest_unknown(ledger, now) if unknown else timedelta()
    metrics.add(
        {
            "UnknownUsd": usd_text(unknown),
            "ReservedUsd": usd_text(reserved),
            "UnknownOldestSeconds": int(age.total_seconds()),
        }
    )
    done = {"unknown": swept.unknown, "charged": swept.charged, "asked": swept.asked, "proven": swept.proven}
    if any(done.values()):
        log.info("swept", **done, unknown_usd=usd_text(unknown))
    return {**done, "trimmed": trimmed}


def _oldest_unknown(ledger: Ledger, now: datetime) -> timedelta:
    found = ledger.oldest_unknown(looked_at_max=LOOKED_AT_MAX)
    return timedelta() if found is None else now - found.created_at
