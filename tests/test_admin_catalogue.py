"""What operators see of the shipped prices, and that whatever changes leaves what was before and after it."""

import secrets
from datetime import timedelta
from typing import Any

import pytest

from spendgate.admin import Admin
from spendgate.catalogue import FRESH_FOR, load, rows_for
from spendgate.catalogue_files import catalogue_in
from spendgate.local.paths import PRICES
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.operators import FILE, LEAF, Clock, admit, lose


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def admin(ledger: Ledger, config: Config, clock: Clock) -> Admin:
    return Admin(ledger, config, clock=clock, randomness=secrets.token_bytes, catalogue=catalogue_in(PRICES))


def test_the_state_of_the_catalogue_tells_what_is_stored_how_old_it_is_and_the_last_load(
    admin: Admin, config: Config, clock: Clock
) -> None:
    empty = admin.catalogue_state()
    assert (empty["rows"], empty["shipped"], empty["newest_check"], empty["last_load"]) == (0, 0, None, None)

    admin.apply(FILE, by="ana")
    shipped = rows_for(config.providers(), catalogue_in(PRICES))
    applied = admin.catalogue_state()
    assert (applied["rows"], applied["shipped"], applied["missing"]) == (len(shipped) + 1, len(shipped), 0)

    loaded = admin.catalogue_state()["last_load"]
    assert loaded is None or loaded["by"] != "catalogue"
    other = list(catalogue_in(PRICES)("anthropic") or ())
    report = load(config, other, now=clock(), by="catalogue")
    state = admin.catalogue_state()
    assert (state["last_load"]["by"], state["rows"]) == ("catalogue", len(shipped) + 1 + len(other))
    assert state["last_load"]["rows"] == report.added

    clock.now += FRESH_FOR + timedelta(days=400)
    assert admin.catalogue_state()["stale"] == len(shipped)


def test_a_row_that_an_operator_changed_is_counted_and_stays(admin: Admin, config: Config) -> None:
    shipped = next(iter(catalogue_in(PRICES)("openai") or ()))
    row = (
        f"{{provider: openai, model: {shipped.model}, from: {shipped.valid_from:%Y-%m-%d}, input: '77', output: '78'}}"
    )
    admin.apply(FILE.replace("prices:\n", f"prices:\n  - {row}\n"), by="ana")

    assert admin.catalogue_state()["changed"] == 1
    load(config, catalogue_in(PRICES)("openai") or (), now=admin.clock(), by="catalogue")
    assert admin.catalogue_state()["changed"] == 1


def test_every_change_leaves_who_when_and_from_what_to_what(admin: Admin, ledger: Ledger, clock: Clock) -> None:
    admin.apply(FILE, by="ana")
    lost = admit(ledger, clock(), held="0.10")
    lose(ledger, lost, clock())
    clock.turn(hours=1)
    admin.reconcile(lost.id, action="charge", cost=None, evidence="no record at the provider", by="ana")
    admin.apply(FILE.replace("day: 400", "day: 300"), by="ana")
    admin.stop(LEAF, reason="ticket 311", by="ana")
    admin.resume(LEAF, reason="fixed", by="ana")
    admin.keys.create("ci", budget=LEAF, by="ana")
    admin.keys.revoke("ci", by="ana")

    events: list[dict[str, Any]] = admin.events(1000)["events"]

    made = {"created", "added", "loaded", "stopped"}
    gone = {"revoked", "deleted", "resumed", "lifted"}
    for event in events:
        verb = event["kind"].rpartition("_")[2]
        assert (event["before"] is None, event["after"] is None) == (verb in made, verb in gone), event
        assert event["by"] == "ana"
    assert {event["kind"] for event in events} >= {
        "budget_created",
        "budget_updated",
        "budget_stopped",
        "budget_resumed",
        "key_created",
        "key_revoked",
        "reservation_charged",
    }
