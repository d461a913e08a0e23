"""The proof that every counter is the sum over its reservations, as operators see it."""

from datetime import datetime
from functools import partial
from typing import Any, Final

from spendgate.core.policy import amount_text
from spendgate.core.window import counter_window
from spendgate.store.audit import AuditReport, audit
from spendgate.store.ledger import Ledger

AUDIT_PAUSE_SECONDS: Final = 0.2


def audited(ledger: Ledger, now: datetime) -> dict[str, Any]:
    """Recompute every counter from the reservations and return each difference."""
    pause = partial(ledger.timing.sleep, AUDIT_PAUSE_SECONDS)
    return _view(audit(ledger, now, pause=pause))


def _view(report: AuditReport) -> dict[str, Any]:
    differences = [
        {
            "budget": one.budget,
            "counter": one.counter,
            "expected": _counter_text(one.counter, one.expected),
            "found": _counter_text(one.counter, one.found),
        }
        for one in report.differences
    ]
    return {
        "clean": not differences,
        "budgets": report.budgets,
        "reservations": report.reservations,
        "differences": differences,
    }


def _counter_text(name: str, amount: int) -> str:
    """Return a counter's value as it stands on the wire; the counters without a measure are money."""
    return amount_text(counter_window(name)[0] if "." in name else "usd", amount)
