"""What the sweeper's function does each minute of a deployed stack: sweep, trim, and count what nobody can account for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from spendgate.calls import Log, Metrics
from spendgate.core.money import usd_text
from spendgate.store.ledger import Ledger
from spendgate.sweep import sweep

# How many unresolved reservations are looked at, the oldest first, for the age of the oldest unknown one.
LOOKED_AT_MAX: Final = 100


def minute(ledger: Ledger, now: datetime, *, charge_after: timedelta, metrics: Metrics, log: Log) -> dict[str, int]:
    """Do the minute's work and return what it came to. LedgerUnavailable; what was done so far stays done."""
    swept = sweep(ledger, now, charge_after=charge_after)
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
    if swept.unknown or swept.charged:
        log.info("swept", unknown=swept.unknown, charged=swept.charged, unknown_usd=usd_text(unknown))
    return {"unknown": swept.unknown, "charged": swept.charged, "trimmed": trimmed}


def _oldest_unknown(ledger: Ledger, now: datetime) -> timedelta:
    found = ledger.oldest_unknown(looked_at_max=LOOKED_AT_MAX)
    return timedelta() if found is None else now - found.created_at
