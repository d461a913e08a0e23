"""Telling people: what the budgets show is put into the outbox once, and what is in the outbox is published.

Both halves may be cut off anywhere and may run twice at a time: marks keep an alert from being told twice, claims keep two
runs from telling the same at once, and what nobody has recorded as told stays in the outbox. So: at least once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from spendgate.calls import Log
from spendgate.core.alert import Alert, AlertPolicy, run_stops, runs_stopped, state_alerts
from spendgate.core.alert_samples import samples
from spendgate.core.alert_text import Message, message
from spendgate.errors import AlertUndelivered
from spendgate.store.alerts import AlertStore, Told
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger

# What one run publishes; the rest waits for the next minute.
PUBLISH_MAX: Final = 100
# A topic that has failed so often in a row takes nothing: the rest of the outbox keeps for the next run.
FAILURES_MAX: Final = 3
# Unresolved reservations that are looked at for old money of unknown outcome.
OPEN_MAX: Final = 10_000
RECENT_DAYS: Final = 7
# Stopped runs that are looked at, one a budget: what DynamoDB reads at one instant.
RUNS_MAX: Final = 100

Notify = Callable[[Message], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertReport:
    """What one run did."""

    posted: int = 0
    published: int = 0
    failed: int = 0

    def counted(self, add_metric: Callable[..., Any]) -> dict[str, int]:
        """Hand the figures to the metrics, and return them."""
        add_metric(name="AlertsPublished", unit="Count", value=self.published)
        add_metric(name="AlertsFailed", unit="Count", value=self.failed)
        return {"posted": self.posted, "published": self.published, "failed": self.failed}


def alert(
    ledger: Ledger, config: Config, notify: Notify, now: datetime, *, log: Log, stack: str | None = None
) -> AlertReport:
    """Find what is to be told and tell it. LedgerUnavailable; what was done so far stays done."""
    policy, store = config.alerts(), store_of(ledger)
    posted = sum(store.post(one) for one in store.unmarked(standing(ledger, config, policy, now)))
    published = failed = 0
    for one in store.outbox()[:PUBLISH_MAX]:
        if failed >= FAILURES_MAX:
            break
        if not store.claim(one, now):
            continue
        try:
            notify(message(one, stack=stack, slack=policy.slack))
        except AlertUndelivered as error:
            failed += 1
            log.info("alert not delivered", kind=one.kind, scope=one.scope, error=str(error))
            store.let_go(one, now)
        else:
            published += 1
            store.sent(one, now)
            log.info("alert", kind=one.kind, scope=one.scope, severity=one.severity, mark=one.mark)
    return AlertReport(posted=posted, published=published, failed=failed)


def standing(ledger: Ledger, config: Config, policy: AlertPolicy, now: datetime) -> tuple[Alert, ...]:
    """Return everything that stands to be told by what is stored, told before or not."""
    states = ledger.budgets(runs=False)
    unknown = any(state.unknown for state in states)
    open_ones = ledger.reservations(state="unknown", limit=OPEN_MAX, now=now) if unknown else ()
    found = state_alerts(
        states, policy, blocks=ledger.blocks(), open_ones=open_ones, catalogue=config.catalogue_state(), now=now
    )
    stops = run_stops(open_ones)
    runs = ledger.budgets_on(tuple(stops)[:RUNS_MAX]) if stops else ()
    return (*found, *runs_stopped(runs, stops, now))


def send_samples(notify: Notify, now: datetime, *, stack: str | None = None) -> AlertReport:
    """Publish one made-up alert of each kind, so that people see where alerts arrive."""
    published = failed = 0
    for one in samples(now):
        try:
            notify(message(one, stack=stack, test=True))
        except AlertUndelivered:
            failed += 1
        else:
            published += 1
    return AlertReport(published=published, failed=failed)


def recent(ledger: Ledger, now: datetime, *, limit: int) -> tuple[tuple[Alert, ...], tuple[Told, ...]]:
    """Return what waits to be told, and what was told in the last days, the newest first."""
    store, told = store_of(ledger), list[Told]()
    for back in range(RECENT_DAYS):
        told += store.told(f"{now - timedelta(days=back):%Y-%m-%d}")
        if len(told) >= limit:
            break
    return store.outbox(), tuple(told[:limit])


def store_of(ledger: Ledger) -> AlertStore:
    """Return the alerts beside a ledger."""
    return AlertStore(ledger.table, ledger.client, ledger.timing)
