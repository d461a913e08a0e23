"""Operators and alerts: what the file says of them, what was told, and a test that arrives."""

import secrets
from dataclasses import replace

import pytest

from spendgate.admin import Admin
from spendgate.alerts import store_of
from spendgate.core.alert import Alert, AlertPolicy
from spendgate.errors import NotFound, RequestInvalid
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.operators import FILE, Clock

TESTED = {"published": 9, "failed": 0}


@pytest.fixture
def admin(ledger: Ledger, config: Config) -> Admin:
    return Admin(ledger, config, clock=Clock(), randomness=secrets.token_bytes, alert_tester=lambda: TESTED)


def alert_changes(admin: Admin, file: str) -> list[tuple[object, object]]:
    changes = admin.plan(file)["changes"]
    return [(one["before"], one["after"]) for one in changes if one["kind"] == "alerts"]


def test_at_what_to_warn_is_planned_stored_and_then_stands(admin: Admin, config: Config) -> None:
    file = f"{FILE}alerts: {{warn_at: [90, 50], slack: false}}\n"
    before, after = {"warn_at": [80], "slack": True}, {"warn_at": [50, 90], "slack": False}
    assert alert_changes(admin, file) == [(before, after)]
    admin.apply(file, by="ada")

    assert config.alerts() == AlertPolicy(warn_at=(50, 90), slack=False)
    assert alert_changes(admin, file) == []
    assert alert_changes(admin, FILE) == [(after, before)]
    assert "alerts_updated" in {event["kind"] for event in admin.events()["events"]}


def test_where_a_budget_warns_is_planned_stored_and_left_out_again(admin: Admin, ledger: Ledger) -> None:
    own = FILE.replace("acme: {limits", "acme: {alerts: {warn_at: [90, 50]}, limits")
    admin.apply(FILE, by="ada")
    (change,) = [one for one in admin.plan(own)["changes"] if one["action"] == "update"]
    assert (change["name"], change["after"]["alerts"], "alerts" in change["before"]) == (
        "acme",
        {"warn_at": [50, 90]},
        False,
    )

    for file, stored in ((own, (50, 90)), (own.replace("[90, 50]", "[]"), ()), (FILE, None)):
        admin.apply(file, by="ada")
        assert ledger.budgets_on(["acme"])[0].policy.warn_at == stored
        assert admin.plan(file)["writes"] == 0


def test_what_was_told_and_what_waits_are_listed(admin: Admin, ledger: Ledger) -> None:
    now, store = admin.clock(), store_of(ledger)
    facts = {"reason": "loops", "by": "ada", "since": "2026-11-30T02:10:00.000000Z", "reservation": ""}
    told = Alert(kind="stopped", scope="acme", mark="1", at=now, severity="critical", facts=facts)
    for one in (told, replace(told, mark="2", scope="acme/b")):
        store.post(one)
    store.sent(told, now)
    found = admin.alerts.recent(10)

    assert [(one["scope"], one["subject"]) for one in found["alerts"]] == [("acme", "Spendgate: acme is stopped")]
    assert [one["scope"] for one in found["waiting"]] == ["acme/b"]
    with pytest.raises(RequestInvalid):
        admin.alerts.recent(0)


def test_a_test_says_how_many_were_sent_and_that_there_is_nowhere_to_send_them(admin: Admin) -> None:
    assert admin.alerts.test() == TESTED
    with pytest.raises(NotFound):
        replace(admin, alert_tester=None).alerts.test()
