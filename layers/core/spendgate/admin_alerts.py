"""What operators see of alerts: those of the last days, those that wait, and a test that sends one of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spendgate.admin_input import invalid
from spendgate.admin_view import instant_text
from spendgate.alerts import recent
from spendgate.core.alert import Alert
from spendgate.core.alert_text import message
from spendgate.errors import NotFound
from spendgate.store.ledger import Ledger

LIST_LENGTH_MAX = 1000

# Sends one alert of each kind, and counts what was published and what failed.
Tester = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Alerts:
    """The operators' use cases of alerts; ``tester`` is None where nobody would get one."""

    ledger: Ledger
    clock: Callable[[], datetime]
    tester: Tester | None

    def recent(self, limit: int) -> dict[str, Any]:
        """Return what waits to be told, and what was told in the last days, the newest first."""
        if not 1 <= limit <= LIST_LENGTH_MAX:
            raise invalid("limit", f"a number from 1 to {LIST_LENGTH_MAX}")
        waiting, told = recent(self.ledger, self.clock(), limit=limit)
        return {
            "waiting": [_view(one) for one in waiting],
            "alerts": [{**_view(one.alert), "told_at": instant_text(one.at)} for one in told],
        }

    def test(self) -> dict[str, Any]:
        """Send one made-up alert of each kind."""
        if self.tester is None:
            raise NotFound("this gateway has nowhere to send alerts to")
        done = self.tester()
        return {"published": int(done["published"]), "failed": int(done["failed"])}


def _view(alert: Alert) -> dict[str, Any]:
    return {
        "kind": alert.kind,
        "scope": alert.scope,
        "severity": alert.severity,
        "at": instant_text(alert.at),
        "subject": message(alert).subject,
    }
