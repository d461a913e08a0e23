"""Marks, the outbox and the record: told once, and never not at all."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from spendgate.alerts import store_of
from spendgate.core.alert import Alert, AlertPolicy, CatalogueState
from spendgate.store.alerts import LEASE, AlertStore
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.store.builders import NOW, an_event, rows

LATER = NOW + timedelta(minutes=1)


def an_alert(mark: str = "usd.day.2026-11-29#80#10", **changes: object) -> Alert:
    alert = Alert(
        kind="warn", scope="acme", mark=mark, at=NOW, severity="warning", facts={"used": "8", "model": "modèle"}
    )
    return replace(alert, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(either: Ledger) -> AlertStore:
    return store_of(either)


def test_what_is_posted_is_in_the_outbox_as_it_was_and_once(store: AlertStore) -> None:
    assert store.post(an_alert())
    assert not store.post(an_alert(at=LATER, facts={"used": "9"}))

    assert store.outbox() == (an_alert(),)


def test_what_was_told_is_in_the_record_and_not_told_again(store: AlertStore) -> None:
    store.post(an_alert())
    assert store.claim(an_alert(), LATER)
    store.sent(an_alert(), LATER)

    assert store.outbox() == ()
    assert not store.claim(an_alert(), LATER + LEASE)
    assert not store.post(an_alert(at=LATER))
    (told,) = store.told("2026-11-29")
    assert (told.alert, told.at) == (an_alert(), LATER)


def test_a_claim_is_one_s_own_until_it_is_over(store: AlertStore) -> None:
    store.post(an_alert())

    assert store.claim(an_alert(), NOW)
    assert not store.claim(an_alert(), NOW + LEASE - timedelta(seconds=1))
    assert store.claim(an_alert(), NOW + LEASE)


def test_what_was_let_go_can_be_claimed_at_once(store: AlertStore) -> None:
    store.post(an_alert())
    store.claim(an_alert(), NOW)
    store.let_go(an_alert(), NOW)

    assert store.claim(an_alert(), NOW)


def test_nobody_lets_go_of_another_s_claim(store: AlertStore) -> None:
    store.post(an_alert())
    store.claim(an_alert(), NOW)
    store.claim(an_alert(), NOW + LEASE)
    store.let_go(an_alert(), NOW)

    assert not store.claim(an_alert(), NOW + LEASE)


def test_marks_are_read_before_anything_is_written(store: AlertStore) -> None:
    known, new = an_alert(), an_alert("usd.day.2026-11-30#80#10")
    store.post(known)

    assert store.unmarked([known, new, new]) == (new,)
    assert store.unmarked([]) == ()


def test_more_marks_than_one_read_takes_are_read(store: AlertStore) -> None:
    many = [an_alert(f"usd.day.2026-11-29#{number}#10") for number in range(101)]
    store.post(many[100])

    assert store.unmarked(many) == tuple(many[:100])


def test_a_mark_that_has_rearmed_is_no_mark(store: AlertStore) -> None:
    rolling = an_alert("usd.hour#80#10", rearms_at=NOW + timedelta(hours=1))
    store.post(rolling)
    before, after = (replace(rolling, at=NOW + timedelta(minutes=minutes)) for minutes in (59, 60))

    assert store.unmarked([before]) == ()
    assert not store.post(before)
    assert store.unmarked([after]) == (after,)
    assert store.post(after)


def test_a_budget_of_any_name_has_marks_of_its_own(store: AlertStore) -> None:
    store.post(an_alert(scope="OUTBOX"))
    store.post(an_alert(scope="LOG"))

    assert {alert.scope for alert in store.outbox()} == {"OUTBOX", "LOG"}


def test_everything_that_is_written_may_be_written_by_a_role_that_may_write_alerts_only(either: Ledger) -> None:
    store = store_of(either)
    store.post(an_alert())
    store.claim(an_alert(), NOW)
    store.sent(an_alert(), NOW)

    items = rows(either).values()
    assert len(items) == 2
    assert all(item["pk"].startswith("ALERT#") and item["expires_at"] > NOW.timestamp() for item in items)


def test_of_many_that_post_one_alert_at_once_one_does(on_ministack: Ledger) -> None:
    store = store_of(on_ministack)
    with ThreadPoolExecutor(8) as pool:
        posted = list(pool.map(lambda _: store.post(an_alert()), range(24)))

    assert posted.count(True) == 1


def test_of_many_that_claim_one_alert_at_once_one_does(on_ministack: Ledger) -> None:
    store = store_of(on_ministack)
    store.post(an_alert())
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(lambda _: store.claim(an_alert(), LATER), range(24)))

    assert claimed.count(True) == 1


def test_at_what_to_warn_is_stored_beside_the_configuration(config: Config) -> None:
    assert config.alerts() == AlertPolicy()
    config.put_alerts(AlertPolicy(warn_at=(50, 90), slack=False), an_event())

    assert config.alerts() == AlertPolicy(warn_at=(50, 90), slack=False)


def test_how_old_the_catalogue_is_is_stored_beside_the_configuration(config: Config) -> None:
    assert config.catalogue_state() is None
    config.put_catalogue_state(CatalogueState(rows=3, stale=1, age_days=0))

    assert config.catalogue_state() == CatalogueState(rows=3, stale=1, age_days=0)
