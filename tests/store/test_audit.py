"""The audit finds what was changed past the ledger, and says exactly what and by how much."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from spendgate.core.budget import BudgetPolicy
from spendgate.core.reservation import Reservation
from spendgate.errors import LedgerError
from spendgate.store import items
from spendgate.store.audit import AuditReport, Difference, audit
from spendgate.store.ledger import Ledger
from tests.store.builders import (
    NOW,
    UNKNOWN,
    a_policy,
    a_reservation,
    audited,
    limit_of,
    opened,
    settled,
    tamper,
    usd_limits,
)

DAY, MONTH, LIFE, HOUR = "usd.day.2026-11-29", "usd.month.2026-11", "usd.life", "usd.hour"
BUCKET, OLD_BUCKET = "usd.hour.2026-11-29T23:10Z", "usd.hour.2026-11-29T20:00Z"
REQUESTS = "requests.minute.2026-11-29T23:14Z"


@pytest.fixture
def path(ledger: Ledger) -> tuple[BudgetPolicy, ...]:
    """Two budgets with a settled call of 25 (and one of 10 three hours ago), one in flight and one unknown."""
    limits = (*usd_limits(day=1000, hour=1000), limit_of("requests", "minute", 99))
    made = opened(ledger, a_policy("acme", limits=limits), a_policy("acme/b", limits=limits))
    spend(ledger, made, 10, NOW.replace(hour=20, minute=0))
    spend(ledger, made, 25)
    ledger.reserve(a_reservation(made, usd=40), made, NOW)
    lost = a_reservation(made, usd=50)
    ledger.reserve(lost, made, NOW)
    ledger.resolve(lost.id, UNKNOWN, NOW)
    return made


def spend(ledger: Ledger, path: tuple[BudgetPolicy, ...], usd: int, at: Any = NOW) -> Reservation:
    reservation = a_reservation(path, usd=usd, now=at)
    ledger.reserve(reservation, path, at)
    return ledger.resolve(reservation.id, settled(usd), at)


def test_a_table_that_only_the_ledger_wrote_is_clean(ledger: Ledger, path: tuple[BudgetPolicy, ...]) -> None:
    assert audited(ledger) == AuditReport(budgets=2, reservations=4, differences=())


@pytest.mark.parametrize(
    "counter,expected",
    [
        ("reserved", 90),
        ("unknown", 50),
        (DAY, 125),
        (MONTH, 125),
        (LIFE, 125),
        (HOUR, 125),
        (BUCKET, 25),
        (OLD_BUCKET, 10),
        (REQUESTS, 3),
        ("tokens.life", 0),
    ],
)
def test_a_counter_that_was_changed_is_found(
    ledger: Ledger, path: tuple[BudgetPolicy, ...], counter: str, expected: int
) -> None:
    for budget, by in (("acme", -1), ("acme/b", 1), ("acme", 10**20)):
        tamper(ledger, items.budget_key(budget), {counter: expected + by})

        assert audited(ledger).differences == (
            Difference(budget=budget, counter=counter, expected=expected, found=expected + by),
        )
        tamper(ledger, items.budget_key(budget), {counter: expected})


@pytest.mark.parametrize("counter,expected", [("reserved", 90), (DAY, 125), (LIFE, 125), (HOUR, 125), (BUCKET, 25)])
def test_a_counter_that_was_removed_is_found(
    ledger: Ledger, path: tuple[BudgetPolicy, ...], counter: str, expected: int
) -> None:
    remove(ledger, items.budget_key("acme"), counter)

    assert audited(ledger).differences == (Difference(budget="acme", counter=counter, expected=expected, found=0),)


def remove(ledger: Ledger, key: dict[str, str], attribute: str) -> None:
    ledger.client.update_item(
        TableName=ledger.table,
        Key={"pk": {"S": key["pk"]}, "sk": {"S": key["sk"]}},
        UpdateExpression="REMOVE #a",
        ExpressionAttributeNames={"#a": attribute},
    )


def test_an_old_bucket_that_was_removed_without_its_hour_is_found(
    ledger: Ledger, path: tuple[BudgetPolicy, ...]
) -> None:
    remove(ledger, items.budget_key("acme"), OLD_BUCKET)

    assert audited(ledger).differences == (Difference(budget="acme", counter=HOUR, expected=115, found=125),)


def test_a_past_day_may_be_gone_and_may_not_be_wrong(ledger: Ledger, path: tuple[BudgetPolicy, ...]) -> None:
    tomorrow = NOW + timedelta(days=1)
    assert audited(ledger, tomorrow).differences == ()
    tamper(ledger, items.budget_key("acme"), {DAY: 124})
    assert audited(ledger, tomorrow).differences == (Difference(budget="acme", counter=DAY, expected=125, found=124),)
    remove(ledger, items.budget_key("acme"), DAY)
    assert audited(ledger, tomorrow).differences == ()


def found_in(report: AuditReport) -> set[tuple[str, str]]:
    return {(one.budget, one.counter) for one in report.differences}


def test_a_reservation_whose_amount_was_changed_is_found_in_every_budget_it_counts_on(
    ledger: Ledger, path: tuple[BudgetPolicy, ...]
) -> None:
    done = next(one for one in ledger.reservations(now=NOW, state="settled"))

    tamper(ledger, items.reservation_key(done.id), {"actual": {"usd": 1, "requests": 1}})

    assert {(budget, DAY) for budget in ("acme", "acme/b")} <= found_in(audited(ledger))
    assert ("acme/b", "usage records") in found_in(audited(ledger))


def test_a_reservation_that_was_freed_without_a_resolution_is_found(
    ledger: Ledger, path: tuple[BudgetPolicy, ...]
) -> None:
    (held,) = ledger.reservations(now=NOW, state="in_flight")
    ledger.client.delete_item(TableName=ledger.table, Key={"pk": {"S": f"RES#{held.id}"}, "sk": {"S": "RES"}})

    assert {("acme", "reserved"), ("acme/b", "reserved"), ("acme", DAY)} <= found_in(audited(ledger))


def test_a_usage_record_that_was_changed_is_found(ledger: Ledger, path: tuple[BudgetPolicy, ...]) -> None:
    (record,) = ledger.usage_records("acme/b")

    tamper(ledger, {"pk": record["pk"], "sk": record["sk"]}, {"cost": 36})

    assert audited(ledger).differences == (Difference(budget="acme/b", counter="usage records", expected=35, found=36),)


def test_a_budget_that_was_removed_is_found_by_its_childrens_reservations(ledger: Ledger) -> None:
    made = opened(ledger, a_policy("acme"), a_policy("acme/b"))
    spend(ledger, made, 25)
    ledger.client.delete_item(TableName=ledger.table, Key={"pk": {"S": "BUDGET#acme/b"}, "sk": {"S": "BUDGET"}})

    assert ("acme", DAY) in found_in(audited(ledger))


def test_a_resolved_reservation_without_an_amount_is_no_ledger(ledger: Ledger, path: tuple[BudgetPolicy, ...]) -> None:
    done = next(one for one in ledger.reservations(now=NOW, state="settled"))
    remove(ledger, items.reservation_key(done.id), "actual")

    with pytest.raises(LedgerError, match=done.id):
        audited(ledger)


def test_what_only_moves_is_no_difference_and_what_stays_wrong_while_it_moves_is(
    ledger: Ledger, path: tuple[BudgetPolicy, ...]
) -> None:
    def while_calls_go_on() -> None:
        spend(ledger, path, 7)

    tamper(ledger, items.budget_key("acme"), {LIFE: 126})

    report = audit(ledger, NOW, pause=while_calls_go_on)

    assert report.differences == (Difference(budget="acme", counter=LIFE, expected=139, found=140),)


def test_a_difference_that_passes_is_none(ledger: Ledger, path: tuple[BudgetPolicy, ...]) -> None:
    repairs: list[Callable[[], None]] = [lambda: tamper(ledger, items.budget_key("acme"), {LIFE: 125})]
    tamper(ledger, items.budget_key("acme"), {LIFE: 126})

    report = audit(ledger, NOW, pause=repairs.pop())

    assert report.differences == ()


def test_a_life_that_is_longer_than_the_records_may_hold_more_than_they_prove_and_not_less(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spendgate.store.audit._PROVABLE", timedelta(days=9))
    made = opened(ledger, a_policy(), now=NOW - timedelta(days=50))
    spend(ledger, made, 30, NOW - timedelta(days=45))
    spend(ledger, made, 25)

    assert audited(ledger).differences == ()
    tamper(ledger, items.budget_key("acme"), {LIFE: 24})
    assert audited(ledger).differences == (Difference(budget="acme", counter=LIFE, expected=25, found=24),)


def test_a_budget_that_looks_younger_than_its_first_call_is_proven_all_the_same(ledger: Ledger) -> None:
    midnight = NOW.replace(hour=0, minute=0, second=0)
    made = opened(ledger, a_policy(), now=midnight)
    spend(ledger, made, 25, midnight - timedelta(seconds=1))

    assert audited(ledger).differences == ()
