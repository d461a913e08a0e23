"""The sweeper's minute in a deployed stack: what it does, and what it counts of the money that nobody can account for."""

import io
import json
from datetime import timedelta

from spendgate.observability import EmbeddedMetrics
from spendgate.store.ledger import Ledger
from spendgate.sweep_minute import minute
from tests.fakes import Lines
from tests.store.builders import NOW, a_policy, a_reservation, assert_conserved, opened

CHARGE_AFTER = timedelta(hours=72)


def test_a_minute_marks_what_is_overdue_and_counts_what_is_held_to_the_picodollar(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme"), a_policy("acme/search"))
    lost = a_reservation(path, usd=1_234_500_000_001)
    ledger.reserve(lost, path, NOW)
    stream, log = io.StringIO(), Lines()
    later = lost.deadline + timedelta(minutes=1)
    metrics = EmbeddedMetrics(namespace="Spendgate", service="a-stack", stream=stream, now=lambda: later)

    first = minute(ledger, later, charge_after=CHARGE_AFTER, metrics=metrics, log=log)
    again = minute(ledger, later, charge_after=CHARGE_AFTER, metrics=metrics, log=log)

    found = ledger.reservation(lost.id)
    assert found is not None
    assert found.state == "unknown"
    assert (first["unknown"], again["unknown"], again["charged"]) == (1, 0, 0)
    # The budget's own and its parent's are the same money: the root counts it once, and exactly.
    texts = stream.getvalue().splitlines()
    assert all('"UnknownUsd":1.234500000001,"ReservedUsd":1.234500000001,' in text for text in texts)
    assert json.loads(texts[0])["UnknownOldestSeconds"] == (later - NOW).total_seconds()
    assert [message for message, _ in log.lines] == ["swept"]
    assert_conserved(ledger, later)
