"""The ledger on an emulated table: the counters before and after each operation, on MiniStack and on moto."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from spendgate.core.budget import Amounts, BudgetPolicy, RunPolicy, new_run
from spendgate.core.reservation import Reservation, Resolution, State
from spendgate.core.usage import Usage
from spendgate.core.window import MEASURES, Measure
from spendgate.errors import (
    BudgetBusy,
    BudgetMissing,
    BudgetStopped,
    DuplicateRequest,
    LedgerError,
    OverBudget,
    RateLimited,
    RequestConflict,
    RequestTooExpensive,
    ReservationMissing,
    RevisionConflict,
    SettlementConflict,
    TransitionIllegal,
)
from spendgate.store import items
from spendgate.store.ledger import Ledger, NotAdmitted, PolicyStale
from tests.store.builders import (
    CHARGED,
    NOW,
    RELEASED,
    UNKNOWN,
    a_policy,
    a_reservation,
    a_stop,
    an_event,
    assert_conserved,
    counters,
    limit_of,
    opened,
    path_of,
    rows,
    settled,
    tamper,
    usd_limits,
)

DAY, MONTH, LIFE = "usd.day.2026-11-29", "usd.month.2026-11", "usd.life"
MINUTE = "2026-11-29T23:14Z"


@pytest.fixture
def ledger(either: Ledger) -> Ledger:
    """A ledger on each of the emulators."""
    return either


def money(amount: int, *, reserved: int = 0, unknown: int = 0) -> dict[str, int]:
    """The counters of a budget without an hour, zeros left out."""
    found = {"reserved": reserved, "unknown": unknown, DAY: amount, MONTH: amount, LIFE: amount}
    return {name: value for name, value in found.items() if value}


def reserved(ledger: Ledger, path: tuple[BudgetPolicy, ...], **rest: Any) -> Reservation:
    """Reserve at the reservation's own time."""
    reservation = a_reservation(path, **rest)
    ledger.reserve(reservation, path, reservation.created_at)
    return reservation


def refused(ledger: Ledger, path: tuple[BudgetPolicy, ...], **rest: Any) -> NotAdmitted:
    """Be refused, and see that nothing at all was written."""
    before = rows(ledger)
    reservation = a_reservation(path, **rest)
    with pytest.raises(NotAdmitted) as refusal:
        ledger.reserve(reservation, path, reservation.created_at)
    assert rows(ledger) == before
    return refusal.value


# -- before and after ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "resolution,after",
    [
        (settled(25), money(25)),
        (settled(40), money(40)),
        (settled(0), {}),
        (RELEASED, {}),
        (CHARGED, money(40)),
        (UNKNOWN, money(40, reserved=40, unknown=40)),
    ],
    ids=["settled below", "settled at the bound", "settled at nothing", "released", "charged", "unknown"],
)
def test_every_budget_of_the_path_moves_alike(
    ledger: Ledger, depth: int, resolution: Resolution, after: dict[str, int]
) -> None:
    names = ["acme", "acme/b", "acme/b/c", "acme/b/c/d"][:depth]
    path = opened(ledger, *(a_policy(name, limits=usd_limits(day=100)) for name in names))

    reservation = reserved(ledger, path, usd=40)
    assert [counters(ledger, name) for name in names] == [money(40, reserved=40)] * depth

    ledger.resolve(reservation.id, resolution, NOW)
    assert [counters(ledger, name) for name in names] == [after] * depth
    assert_conserved(ledger)


@pytest.mark.parametrize(
    "resolution,after",
    [
        (settled(25), money(25)),
        (settled(40), money(40)),
        (RELEASED, {}),
        (CHARGED, money(40)),
    ],
    ids=["settled", "settled at the bound", "released", "charged"],
)
def test_an_unknown_call_ends_like_one_in_flight(ledger: Ledger, resolution: Resolution, after: dict[str, int]) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=100)))
    reservation = reserved(ledger, path, usd=40)
    ledger.resolve(reservation.id, UNKNOWN, NOW)

    ledger.resolve(reservation.id, resolution, NOW)

    assert counters(ledger, "acme") == after
    assert_conserved(ledger)


ASKED = {"usd": 40, "requests": 1, "tokens": 10, "tool_calls": 2}
ACTUAL = {"usd": 25, "requests": 1, "tokens": 7, "tool_calls": 2}
WINDOWS = ("minute", "hour", "day", "month", "life")


def in_every_window(amounts: dict[str, int]) -> dict[str, int]:
    return {
        counter: amount
        for measure, amount in amounts.items()
        for counter in (
            f"{measure}.minute.{MINUTE}",
            f"{measure}.hour",
            f"{measure}.day.2026-11-29",
            f"{measure}.month.2026-11",
            f"{measure}.life",
        )
    }


def test_every_measure_counts_in_every_window(ledger: Ledger) -> None:
    limits = [limit_of(measure, window, 10**6) for measure in MEASURES for window in WINDOWS]
    path = opened(ledger, a_policy(limits=limits))

    reservation = reserved(ledger, path)
    assert counters(ledger, "acme") == {"reserved": 40, **in_every_window(ASKED)}
    ledger.resolve(reservation.id, settled(25), NOW)

    buckets = {f"{measure}.hour.2026-11-29T23:10Z": amount for measure, amount in ACTUAL.items()}
    assert counters(ledger, "acme") == {**in_every_window(ACTUAL), **buckets}
    assert_conserved(ledger)


@pytest.mark.parametrize("measure", MEASURES)
def test_equality_passes_and_one_less_does_not(on_ministack: Ledger, measure: Measure) -> None:
    ledger, asked = on_ministack, ASKED[measure]
    for window in WINDOWS:
        just = opened(ledger, a_policy(f"just-{window}", limits=[limit_of(measure, window, 2 * asked)]))
        less = opened(ledger, a_policy(f"less-{window}", limits=[limit_of(measure, window, 2 * asked - 1)]))

        reserved(ledger, just)
        reserved(ledger, just)
        reserved(ledger, less)

        assert refused(ledger, less).denials[0].room == asked - 1
        assert refused(ledger, just).denials[0].room == 0


@pytest.mark.parametrize("window", ["request", *WINDOWS])
def test_a_limit_of_zero_denies_the_first_call(ledger: Ledger, window: str) -> None:
    for measure in MEASURES:
        path = opened(ledger, a_policy(measure.replace("_", "-"), limits=[limit_of(measure, window, 0)]))

        (denied,) = refused(ledger, path).denials

        assert isinstance(denied.refusal, RequestTooExpensive)


@pytest.mark.parametrize("tight", [0, 1, 2, 3])
def test_a_call_reserves_on_every_budget_or_on_none(ledger: Ledger, tight: int) -> None:
    names = ["acme", "acme/b", "acme/b/c", "acme/b/c/d"]
    path = opened(ledger, *(a_policy(n, limits=usd_limits(day=70 if i == tight else 900)) for i, n in enumerate(names)))
    reserved(ledger, path, usd=40)

    (denied,) = refused(ledger, path, usd=40).denials

    assert denied.refusal.facts.budget == names[tight]
    assert [counters(ledger, name) for name in names] == [money(40, reserved=40)] * 4
    assert_conserved(ledger)


def test_all_budgets_that_deny_are_told_from_the_root_down(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme", limits=usd_limits(day=70)), a_policy("acme/b", limits=usd_limits(day=50)))
    reserved(ledger, path, usd=40)

    assert [denied.refusal.facts.budget for denied in refused(ledger, path, usd=40).denials] == ["acme", "acme/b"]


def test_a_call_that_costs_nothing_is_recorded_and_obeys_a_stop(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(unbudgeted=True))

    free = reserved(ledger, path, asked=Amounts(requests=1), unpriced=True)
    ledger.resolve(free.id, settled(9), NOW)
    ledger.stop("acme", a_stop())

    assert counters(ledger, "acme") == money(9)
    with pytest.raises(PolicyStale):
        ledger.reserve(a_reservation(path, asked=Amounts()), path, NOW)
    assert_conserved(ledger)


def test_amounts_as_large_as_money_gets_are_exact(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(life=10**27)))

    # A quadrillion dollars to the picodollar. DynamoDB holds 38 digits, MiniStack 28.
    reservation = reserved(ledger, path, usd=10**27 - 1)
    ledger.resolve(reservation.id, settled(10**26 + 1), NOW)

    assert counters(ledger, "acme")[LIFE] == 10**26 + 1
    assert_conserved(ledger)


# -- refusals ------------------------------------------------------------------------------------------------------


def test_a_refusal_tells_what_is_settled_reserved_unknown_and_asked(ledger: Ledger) -> None:
    usd = 10**12
    path = opened(ledger, a_policy(limits=usd_limits(day=10 * usd)))
    ledger.resolve(reserved(ledger, path, usd=4 * usd).id, settled(3 * usd), NOW)
    reserved(ledger, path, usd=usd)
    ledger.resolve(reserved(ledger, path, usd=2 * usd).id, UNKNOWN, NOW)

    (denied,) = refused(ledger, path, usd=6 * usd).denials

    facts = denied.refusal.facts
    assert isinstance(denied.refusal, OverBudget)
    assert (facts.budget, facts.measure, facts.window, facts.maximum) == ("acme", "usd", "day", "10")
    assert (facts.settled, facts.reserved, facts.unknown, facts.asked) == ("3", "3", "2", "6")
    assert facts.resets_at == "2026-11-30T00:00:00Z"
    assert denied.room == 4 * usd


def test_what_is_in_flight_makes_a_budget_busy_and_what_is_unknown_does_not(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=100)))
    first = reserved(ledger, path, usd=80)

    (busy,) = refused(ledger, path, usd=40).denials
    ledger.resolve(first.id, UNKNOWN, NOW)
    (over,) = refused(ledger, path, usd=40).denials

    assert isinstance(busy.refusal, BudgetBusy)
    assert isinstance(over.refusal, OverBudget)


def test_requests_a_minute_are_limited_until_the_minute_ends(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=[limit_of("requests", "minute", 1)]))
    reserved(ledger, path)

    (denied,) = refused(ledger, path).denials

    assert isinstance(denied.refusal, RateLimited)
    assert denied.refusal.retry_after_seconds == 30
    reserved(ledger, path, now=NOW + timedelta(seconds=30))


def test_a_released_call_stays_a_request_so_that_a_loop_of_failures_is_limited_too(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=[limit_of("requests", "life", 1)]))
    ledger.resolve(reserved(ledger, path).id, RELEASED, NOW)

    assert isinstance(refused(ledger, path).denials[0].refusal, OverBudget)


def test_an_observing_budget_counts_and_never_refuses(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=10, request=1), mode="observe"))

    reserved(ledger, path, usd=40)

    assert counters(ledger, "acme") == money(40, reserved=40)


def test_the_windows_are_those_of_the_reservations_own_instant_even_if_it_arrives_after_midnight(
    ledger: Ledger,
) -> None:
    before_midnight = NOW.replace(hour=23, minute=59, second=59)
    path = opened(ledger, a_policy(limits=usd_limits(day=70)))
    reserved(ledger, path, usd=40, now=before_midnight)

    late = a_reservation(path, usd=40, now=before_midnight)
    with pytest.raises(NotAdmitted):
        ledger.reserve(late, path, before_midnight + timedelta(seconds=2))

    assert counters(ledger, "acme")[DAY] == 40


def test_a_new_day_starts_at_nothing_and_a_settlement_after_midnight_goes_to_the_day_of_its_reservation(
    ledger: Ledger,
) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=70)))
    tomorrow = NOW + timedelta(hours=1)
    yesterdays = reserved(ledger, path, usd=40)
    reserved(ledger, path, usd=40, now=tomorrow)

    ledger.resolve(yesterdays.id, settled(25), tomorrow)

    found = counters(ledger, "acme")
    assert (found[DAY], found["usd.day.2026-11-30"], found[MONTH]) == (25, 40, 65)
    assert_conserved(ledger, tomorrow)


# -- once ----------------------------------------------------------------------------------------------------------


def everything_but(ledger: Ledger, *keys: str) -> dict[str, Any]:
    return {key: item for key, item in rows(ledger).items() if key not in keys}


@pytest.mark.parametrize(
    "resolution", [settled(25), RELEASED, CHARGED, UNKNOWN], ids=["settled", "released", "charged", "unknown"]
)
@pytest.mark.parametrize("informed", [True, False], ids=["reads", "from a stale copy"])
def test_the_same_resolution_again_changes_nothing(ledger: Ledger, resolution: Resolution, informed: bool) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=100, hour=100)))
    reservation = reserved(ledger, path, usd=40)
    ledger.resolve(reservation.id, resolution, NOW)
    before = rows(ledger)

    again = ledger.resolve(
        reservation.id, resolution, NOW + timedelta(seconds=9), known=None if informed else reservation
    )

    assert rows(ledger) == before
    assert again.state == resolution.state


@pytest.mark.parametrize("earlier", [settled(25), RELEASED, CHARGED], ids=["settled", "released", "charged"])
def test_a_settlement_of_another_amount_is_a_conflict_that_stops_the_leaf_and_changes_nothing(
    ledger: Ledger, earlier: Resolution
) -> None:
    path = opened(ledger, a_policy("acme"), a_policy("acme/b", limits=usd_limits(day=100)))
    reservation = reserved(ledger, path, usd=40)
    ledger.resolve(reservation.id, earlier, NOW)
    before = everything_but(ledger, "BUDGET#acme/b|BUDGET")
    counted = counters(ledger, "acme/b")

    with pytest.raises(SettlementConflict, match=reservation.id):
        ledger.resolve(reservation.id, settled(26), NOW, known=reservation)

    assert everything_but(ledger, "BUDGET#acme/b|BUDGET") == before
    assert counters(ledger, "acme/b") == counted
    stop = path_of(ledger, "acme/b")[1].stop
    assert stop is not None
    assert stop.reservation == reservation.id
    assert path_of(ledger, "acme")[0].stop is None
    assert_conserved(ledger)


def test_a_settlement_with_the_same_money_and_other_tokens_is_another_settlement(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    ledger.resolve(reservation.id, settled(25, tokens=7), NOW)

    with pytest.raises(SettlementConflict):
        ledger.resolve(reservation.id, settled(25, tokens=8), NOW)


@pytest.mark.parametrize(
    "earlier,then",
    [
        (settled(25), RELEASED),
        (settled(40), CHARGED),
        (RELEASED, CHARGED),
        (CHARGED, RELEASED),
    ],
    ids=["settled, released", "settled, charged", "released, charged", "charged, released"],
)
def test_what_is_resolved_stays_resolved(ledger: Ledger, earlier: Resolution, then: Resolution) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path, usd=40)
    ledger.resolve(reservation.id, earlier, NOW)
    before = rows(ledger)

    with pytest.raises(TransitionIllegal, match=f"is {earlier.state} already"):
        ledger.resolve(reservation.id, then, NOW, known=reservation)

    assert rows(ledger) == before


def test_an_operators_other_settlement_is_refused_and_stops_nothing(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    ledger.resolve(reservation.id, settled(25), NOW)
    before = rows(ledger)

    with pytest.raises(TransitionIllegal):
        ledger.resolve(reservation.id, settled(26), NOW, event=an_event("reservation_settled"))

    assert rows(ledger) == before


@pytest.mark.parametrize("earlier", [settled(25), RELEASED, CHARGED], ids=["settled", "released", "charged"])
def test_marking_a_resolved_call_unknown_changes_nothing(ledger: Ledger, earlier: Resolution) -> None:
    path = opened(ledger, a_policy(stop_on_unknown=True))
    reservation = reserved(ledger, path)
    ledger.resolve(reservation.id, earlier, NOW)
    before = rows(ledger)

    ledger.resolve(reservation.id, UNKNOWN, NOW, known=reservation)

    assert rows(ledger) == before


def test_a_settlement_that_knows_the_call_as_in_flight_settles_it_although_it_was_marked_unknown(
    ledger: Ledger,
) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    ledger.resolve(reservation.id, UNKNOWN, NOW)

    ledger.resolve(reservation.id, settled(25), NOW, known=reservation)

    assert counters(ledger, "acme") == money(25)
    assert_conserved(ledger)


def test_there_is_nothing_to_resolve_of_an_id_that_nobody_made(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())

    with pytest.raises(ReservationMissing):
        ledger.resolve("0" * 26, settled(1), NOW)
    with pytest.raises(ReservationMissing):
        ledger.resolve("0" * 26, settled(1), NOW, known=a_reservation(path, id="0" * 26))
    assert counters(ledger, "acme") == {}


def test_a_settlement_of_a_budget_that_is_gone_is_told_and_books_nothing(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme"), a_policy("acme/b"))
    reservation = reserved(ledger, path)
    ledger.client.delete_item(TableName=ledger.table, Key={"pk": {"S": "BUDGET#acme/b"}, "sk": {"S": "BUDGET"}})

    with pytest.raises(BudgetMissing, match="budget acme/b is gone"):
        ledger.resolve(reservation.id, settled(25), NOW)

    assert counters(ledger, "acme") == money(40, reserved=40)


# -- bound violations and unknown outcomes -------------------------------------------------------------------------


@pytest.mark.parametrize("earlier", ["in_flight", "unknown"])
def test_a_bill_above_the_bound_is_booked_as_it_is_and_stops_the_leaf(ledger: Ledger, earlier: State) -> None:
    path = opened(
        ledger, a_policy("acme", limits=usd_limits(day=60)), a_policy("acme/b", limits=usd_limits(day=50, hour=50))
    )
    reservation = reserved(ledger, path, usd=40)
    if earlier == "unknown":
        ledger.resolve(reservation.id, UNKNOWN, NOW)

    ledger.resolve(reservation.id, settled(70), NOW)

    assert counters(ledger, "acme") == money(70)
    assert counters(ledger, "acme/b") == {**money(70), "usd.hour": 70, "usd.hour.2026-11-29T23:10Z": 70}
    root, leaf = path_of(ledger, "acme/b")
    assert root.stop is None
    assert leaf.stop is not None
    assert leaf.stop.reservation == reservation.id
    assert "more than the bound" in leaf.stop.reason
    record = ledger.reservation(reservation.id)
    assert record is not None
    assert record.actual is not None
    assert (record.asked.usd, record.actual.usd) == (40, 70)
    assert_conserved(ledger)


def test_a_run_that_stops_on_unknown_is_stopped_by_one_and_its_parent_is_not(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme"), a_policy("acme/b", stop_on_unknown=True))
    reservation = reserved(ledger, path)

    ledger.resolve(reservation.id, UNKNOWN, NOW)

    root, leaf = path_of(ledger, "acme/b")
    assert root.stop is None
    assert leaf.stop is not None
    assert leaf.stop.reservation == reservation.id
    assert isinstance(refused(ledger, (root, leaf)).denials[0].refusal, BudgetStopped)


def test_an_unknown_call_keeps_what_was_seen_of_it_as_a_floor_and_stays_open(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    seen = Usage(output=3)

    returned = ledger.resolve(
        reservation.id, Resolution(state="unknown", reason="cut", usage=seen, response_id="r-1"), NOW
    )

    found = ledger.reservation(reservation.id)
    assert found == returned
    assert found is not None
    assert (found.state, found.usage, found.response_id, found.actual) == ("unknown", seen, "r-1", None)
    assert ledger.overdue(reservation.deadline, limit=9) == (reservation.id,)


@pytest.mark.parametrize(
    "resolution", [settled(25, usage=Usage(output=3), response_id="r-1"), RELEASED, CHARGED], ids=lambda r: r.state
)
def test_what_a_resolution_returns_is_what_stands_in_the_table(ledger: Ledger, resolution: Resolution) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    assert ledger.reservation(reservation.id) == reservation

    returned = ledger.resolve(reservation.id, resolution, NOW + timedelta(seconds=3))

    assert ledger.reservation(reservation.id) == returned
    assert returned.resolved_at == NOW + timedelta(seconds=3)
    item = rows(ledger)[f"RES#{reservation.id}|RES"]
    assert "open_pk" not in item
    assert item["expires_at"] == int((NOW + timedelta(seconds=3) + items.RETENTION).timestamp())


def test_only_a_resolved_reservation_has_a_time_to_live(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    assert "expires_at" not in rows(ledger)[f"RES#{reservation.id}|RES"]

    ledger.resolve(reservation.id, UNKNOWN, NOW)

    assert "expires_at" not in rows(ledger)[f"RES#{reservation.id}|RES"]


# -- stop, resume, policies ----------------------------------------------------------------------------------------


def test_a_stop_holds_against_a_caller_who_has_not_heard_of_it_and_its_first_reason_stays(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme"), a_policy("acme/b"))

    ledger.stop("acme", a_stop("first"))
    ledger.stop("acme", a_stop("second"))

    with pytest.raises(PolicyStale) as stale:
        ledger.reserve(a_reservation(path), path, NOW)
    (state,) = stale.value.states
    assert state.policy.stop is not None
    assert (state.policy.path, state.policy.stop.reason) == ("acme", "first")
    assert isinstance(refused(ledger, path_of(ledger, "acme/b")).denials[0].refusal, BudgetStopped)


def test_a_stop_lets_what_is_in_flight_settle(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    ledger.stop("acme", a_stop())

    ledger.resolve(reservation.id, settled(25), NOW)

    assert counters(ledger, "acme") == money(25)


def test_a_resumed_budget_admits_again_and_resuming_what_runs_changes_nothing(ledger: Ledger) -> None:
    opened(ledger, a_policy())
    ledger.stop("acme", a_stop())
    ledger.resume("acme", an_event("budget_resumed"))
    before = rows(ledger)

    ledger.resume("acme", an_event("budget_resumed"))

    assert rows(ledger) == before
    reserved(ledger, path_of(ledger, "acme"))


def test_stopping_and_resuming_nothing_is_told(ledger: Ledger) -> None:
    with pytest.raises(BudgetMissing):
        ledger.stop("acme", a_stop(), an_event())
    with pytest.raises(BudgetMissing):
        ledger.resume("acme", an_event())
    assert rows(ledger) == {}


def test_a_resume_whose_budget_was_stopped_again_meanwhile_leaves_it_stopped(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(ledger, a_policy())
    ledger.stop("acme", a_stop("first"))
    read = ledger.budget("acme")
    ledger.stop("acme", a_stop("second"))
    monkeypatch.setattr(Ledger, "budget", lambda self, path: read)

    with pytest.raises(RevisionConflict):
        ledger.resume("acme", an_event("budget_resumed"))

    monkeypatch.undo()
    assert path_of(ledger, "acme")[0].stop is not None
    assert ledger.events("2026-11-29") == ()


def test_a_policy_is_written_once_as_new_and_then_over_the_revision_that_was_read(ledger: Ledger) -> None:
    (first,) = opened(ledger, a_policy(limits=usd_limits(day=100)))
    wider = replace(first, limits=usd_limits(day=200, month=300), default_output_tokens=9)

    ledger.put_budget(wider, expected_rev=first.rev, now=NOW)

    assert path_of(ledger, "acme") == (replace(wider, rev=2),)
    with pytest.raises(RevisionConflict):
        ledger.put_budget(wider, expected_rev=first.rev, now=NOW)
    with pytest.raises(RevisionConflict):
        ledger.put_budget(wider, expected_rev=None, now=NOW)
    with pytest.raises(RevisionConflict):
        ledger.put_budget(a_policy("other"), expected_rev=1, now=NOW)
    assert path_of(ledger, "acme") == (replace(wider, rev=2),)


def test_a_policy_change_keeps_counters_and_stop(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=100)))
    reserved(ledger, path)
    ledger.stop("acme", a_stop())
    (policy,) = path_of(ledger, "acme")

    ledger.put_budget(replace(policy, limits=(), stop=None), expected_rev=policy.rev, now=NOW)

    (changed,) = path_of(ledger, "acme")
    assert (changed.limits, changed.stop) == ((), policy.stop)
    assert counters(ledger, "acme") == money(40, reserved=40)


def test_every_field_of_a_policy_comes_back(ledger: Ledger) -> None:
    policy = a_policy(
        limits=usd_limits(request=1, hour=2, day=3, month=4, life=5),
        mode="observe",
        unbudgeted=True,
        default_output_tokens=8192,
        failover=True,
        runs=RunPolicy(limits=usd_limits(life=2), expire_after=timedelta(hours=24), stop_on_unknown=True),
        stop_on_unknown=True,
        allow=(("web_fetch", 3), ("web_search", 5)),
        warn_at=(),
        expires_at=NOW,
    )

    assert opened(ledger, policy) == (replace(policy, rev=1),)


def test_a_stale_policy_is_told_with_what_stands_and_changes_nothing(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme", limits=usd_limits(day=100)), a_policy("acme/b"))
    ledger.put_budget(replace(path[0], limits=usd_limits(day=10)), expected_rev=1, now=NOW)
    before = rows(ledger)

    with pytest.raises(PolicyStale) as stale:
        ledger.reserve(a_reservation(path), path, NOW)

    assert [state.policy for state in stale.value.states] == [path_of(ledger, "acme")[0]]
    assert stale.value.missing == ()
    assert rows(ledger) == before


def test_a_budget_that_is_not_there_is_named(ledger: Ledger) -> None:
    opened(ledger, a_policy("acme"))
    path = (*path_of(ledger, "acme"), a_policy("acme/gone", rev=1))

    with pytest.raises(PolicyStale) as stale:
        ledger.reserve(a_reservation(path), path, NOW)

    assert (stale.value.states, stale.value.missing) == ((), ("acme/gone",))
    assert counters(ledger, "acme") == {}


# -- runs ----------------------------------------------------------------------------------------------------------


def a_run(ledger: Ledger, name: str = "run:1") -> tuple[BudgetPolicy, ...]:
    runs = RunPolicy(limits=usd_limits(life=90), expire_after=timedelta(hours=1), stop_on_unknown=True)
    (above,) = opened(ledger, a_policy("acme", runs=runs))
    return (above, new_run(above, f"acme/{name}", NOW))


def test_the_first_call_of_a_run_makes_its_budget_and_the_second_caller_is_told_what_it_is(ledger: Ledger) -> None:
    path = a_run(ledger)
    reserved(ledger, path, usd=40)

    with pytest.raises(PolicyStale) as stale:
        ledger.reserve(a_reservation(path, usd=40), path, NOW)

    (state,) = stale.value.states
    assert state.policy == replace(path[1], rev=1)
    assert state.created_at == NOW
    reserved(ledger, (path[0], state.policy), usd=40)
    assert counters(ledger, "acme/run:1") == money(80, reserved=80)
    assert isinstance(refused(ledger, (path[0], state.policy), usd=40).denials[0].refusal, BudgetBusy)
    assert [one.policy.path for one in ledger.budgets()] == ["acme", "acme/run:1"]
    assert_conserved(ledger)


def test_a_run_whose_first_call_does_not_fit_is_not_made(ledger: Ledger) -> None:
    path = a_run(ledger)

    assert isinstance(refused(ledger, path, usd=91).denials[0].refusal, RequestTooExpensive)

    assert ledger.budget("acme/run:1") is None


def test_a_run_whose_parent_changed_is_not_made_of_the_old_policy(ledger: Ledger) -> None:
    path = a_run(ledger)
    ledger.put_budget(replace(path[0], runs=RunPolicy(limits=usd_limits(life=1))), expected_rev=1, now=NOW)

    with pytest.raises(PolicyStale) as stale:
        ledger.reserve(a_reservation(path, usd=40), path, NOW)

    assert [state.policy.path for state in stale.value.states] == ["acme"]
    assert ledger.budget("acme/run:1") is None


def test_an_expired_run_admits_nothing_and_settles_what_it_has(ledger: Ledger) -> None:
    path = a_run(ledger)
    reservation = reserved(ledger, path, usd=40)
    later = NOW + timedelta(hours=1)

    (denied,) = refused(ledger, path_of(ledger, "acme/run:1"), now=later).denials
    ledger.resolve(reservation.id, settled(25), later)

    assert isinstance(denied.refusal, BudgetStopped)
    assert counters(ledger, "acme/run:1") == money(25)


# -- idempotency ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["in_flight", "unknown", "settled", "released", "charged"])
def test_the_same_request_again_is_told_its_state_and_reserves_nothing(ledger: Ledger, state: State) -> None:
    path = opened(ledger, a_policy())
    first = reserved(ledger, path, idempotency_key="k")
    resolutions: dict[str, Resolution] = {
        "unknown": UNKNOWN,
        "settled": settled(25),
        "released": RELEASED,
        "charged": CHARGED,
    }
    if state in resolutions:
        ledger.resolve(first.id, resolutions[state], NOW)
    before = rows(ledger)

    with pytest.raises(DuplicateRequest) as again:
        ledger.reserve(a_reservation(path, idempotency_key="k"), path, NOW)

    assert (again.value.facts.reservation, again.value.facts.state) == (first.id, state)
    assert rows(ledger) == before


def test_the_same_key_with_another_request_is_a_conflict(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    first = reserved(ledger, path, idempotency_key="k")
    before = rows(ledger)

    with pytest.raises(RequestConflict) as conflict:
        ledger.reserve(a_reservation(path, idempotency_key="k", fingerprint="e" * 64), path, NOW)

    assert conflict.value.facts.reservation == first.id
    assert rows(ledger) == before


def test_a_key_belongs_to_its_leaf_budget(ledger: Ledger) -> None:
    one = opened(ledger, a_policy("acme"), a_policy("acme/b"))
    other = opened(ledger, a_policy("acme/c"))

    reserved(ledger, one, idempotency_key="k")
    reserved(ledger, other, idempotency_key="k", fingerprint="e" * 64)

    assert counters(ledger, "acme") == money(80, reserved=80)


def test_a_refused_request_leaves_its_key_free(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=50)))
    first = reserved(ledger, path, usd=40)
    refused(ledger, path, usd=40, idempotency_key="k")
    ledger.resolve(first.id, settled(5), NOW)

    reserved(ledger, path, usd=40, idempotency_key="k", fingerprint="e" * 64)


def test_a_repetition_is_told_as_one_although_the_budget_is_full(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=50)))
    reserved(ledger, path, usd=40, idempotency_key="k")

    with pytest.raises(DuplicateRequest):
        ledger.reserve(a_reservation(path, usd=40, idempotency_key="k"), path, NOW)


# -- the rolling hour ----------------------------------------------------------------------------------------------


def spent(ledger: Ledger, path: tuple[BudgetPolicy, ...], usd: int, at: datetime) -> None:
    """A call that was settled at its own time."""
    reservation = reserved(ledger, path, usd=usd, now=at)
    ledger.resolve(reservation.id, settled(usd), at)


def test_a_bucket_blocks_until_it_lies_wholly_outside_the_hour_and_is_evicted_by_the_call_that_it_blocks(
    ledger: Ledger,
) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(hour=100)))
    at = NOW.replace(minute=0, second=0)
    spent(ledger, path, 70, at)

    for minutes in (1, 59, 60, 64):
        (denied,) = refused(ledger, path, now=at + timedelta(minutes=minutes)).denials
        assert denied.refusal.facts.resets_at == "2026-11-30T00:05:00Z"
    reserved(ledger, path, usd=40, now=at + timedelta(minutes=65))

    found = counters(ledger, "acme")
    assert found["usd.hour"] == 40
    assert "usd.hour.2026-11-29T23:00Z" not in found
    assert_conserved(ledger, at + timedelta(minutes=65))


def test_an_eviction_from_a_stale_read_is_refused_by_the_buckets_value_and_made_again(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(hour=100)))
    at = NOW.replace(hour=20, minute=0)
    spent(ledger, path, 70, at)
    late = reserved(ledger, path, usd=30, now=at)
    now = at + timedelta(hours=2)
    tries: list[object] = []

    def settle_between(params: Any, **rest: object) -> None:
        # The first try has shown the bucket; the second would evict it as it was.
        if "Put" in params["TransactItems"][0]:
            tries.append(params)
            if len(tries) == 2:
                ledger.resolve(late.id, settled(10), now)

    hook = "provide-client-params.dynamodb.TransactWriteItems"
    ledger.client.meta.events.register(hook, settle_between)
    try:
        reserved(ledger, path, usd=40, now=now)
    finally:
        ledger.client.meta.events.unregister(hook, settle_between)

    assert len(tries) == 3

    assert counters(ledger, "acme")["usd.hour"] == 40
    assert_conserved(ledger, now)


def test_two_budgets_whose_hours_are_blocked_are_evicted_in_one_transaction(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme", limits=usd_limits(hour=100)), a_policy("acme/b", limits=usd_limits(hour=90)))
    at = NOW.replace(hour=20)
    spent(ledger, path, 80, at)

    reserved(ledger, path, usd=40, now=at + timedelta(hours=2))

    assert counters(ledger, "acme")["usd.hour"] == counters(ledger, "acme/b")["usd.hour"] == 40
    assert_conserved(ledger, at + timedelta(hours=2))


def test_a_late_settlement_goes_to_its_own_bucket_although_that_was_evicted(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(hour=100)))
    at = NOW.replace(hour=20, minute=0)
    now = at + timedelta(hours=2)
    spent(ledger, path, 50, at)
    late = reserved(ledger, path, usd=30, now=at)
    reserved(ledger, path, usd=40, now=now)
    assert counters(ledger, "acme")["usd.hour"] == 70

    ledger.resolve(late.id, settled(10), now)

    found = counters(ledger, "acme")
    assert (found["usd.hour"], found["usd.hour.2026-11-29T20:00Z"]) == (50, 10)
    assert_conserved(ledger, now)
    assert ledger.trim(ledger.budgets()[0], now)
    assert counters(ledger, "acme")["usd.hour"] == 40
    assert_conserved(ledger, now)


def batched(pairs: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    """Pieces that moto's recursion bears."""
    return [pairs[start : start + 50] for start in range(0, len(pairs), 50)]


def test_an_hour_that_nobody_swept_for_days_is_evicted_in_several_steps(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(hour=300)))
    at = NOW - timedelta(days=3)
    buckets = {f"usd.hour.{at + timedelta(minutes=5 * number):%Y-%m-%dT%H:%MZ}": 2 for number in range(150)}
    for some in batched([("usd.hour", 300), *buckets.items()]):
        tamper(ledger, items.budget_key("acme"), dict(some))

    reserved(ledger, path, usd=40)

    found = counters(ledger, "acme")
    assert found["usd.hour"] == 40 + sum(value for name, value in found.items() if name.startswith("usd.hour."))


def test_a_trim_removes_old_buckets_and_past_periods_and_nothing_else(ledger: Ledger) -> None:
    limits = (*usd_limits(hour=1000, day=1000), limit_of("requests", "minute", 99), limit_of("tokens", "hour", 999))
    path = opened(ledger, a_policy(limits=limits), now=NOW - timedelta(days=41))
    spent(ledger, path, 30, NOW - timedelta(days=40))
    spent(ledger, path, 20, NOW - timedelta(minutes=30))
    reserved(ledger, path, usd=10)

    assert ledger.trim(ledger.budgets()[0], NOW)

    assert counters(ledger, "acme") == {
        "reserved": 10,
        DAY: 30,
        MONTH: 30,
        LIFE: 60,
        "usd.hour": 30,
        "usd.hour.2026-11-29T22:40Z": 20,
        "tokens.hour": 17,
        "tokens.hour.2026-11-29T22:40Z": 7,
        f"requests.minute.{MINUTE}": 1,
    }
    assert not ledger.trim(ledger.budgets()[0], NOW)
    assert_conserved(ledger)


def test_a_trim_of_what_has_moved_changes_nothing(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(hour=1000)))
    at = NOW - timedelta(hours=3)
    spent(ledger, path, 30, at)
    late = reserved(ledger, path, usd=20, now=at)
    read = ledger.budgets()[0]
    ledger.resolve(late.id, settled(5), NOW)
    before = rows(ledger)

    assert not ledger.trim(read, NOW)

    assert rows(ledger) == before
    assert_conserved(ledger)


def test_a_settlement_after_its_day_was_trimmed_is_still_conserved(ledger: Ledger) -> None:
    path = opened(ledger, a_policy(limits=usd_limits(day=100)))
    spent(ledger, path, 30, NOW)
    late = reserved(ledger, path, usd=40)
    tomorrow = NOW + timedelta(days=1)
    assert ledger.trim(ledger.budgets()[0], tomorrow)
    assert_conserved(ledger, tomorrow)

    ledger.resolve(late.id, settled(25), tomorrow)

    assert counters(ledger, "acme") == {DAY: -15, MONTH: 55, LIFE: 55}
    assert_conserved(ledger, tomorrow)
    assert ledger.trim(ledger.budgets()[0], tomorrow)
    assert_conserved(ledger, tomorrow)


# -- usage, listings, events ---------------------------------------------------------------------------------------


def test_the_usage_record_of_the_leafs_day_adds_up_every_end_of_a_call(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme"), a_policy("acme/b"))
    usage = Usage(input_uncached=5, output=2)
    for resolution in (settled(25, usage=usage), settled(5, usage=usage), RELEASED, CHARGED):
        ledger.resolve(reserved(ledger, path, usd=40).id, resolution, NOW)
    ledger.resolve(reserved(ledger, path).id, UNKNOWN, NOW)

    records = {record["sk"]: record for record in ledger.usage_records("acme/b")}

    served, other = records["2026-11-29#openai#house#-"], records["2026-11-29#-#-#-"]
    assert (served["calls"], served["calls_settled"], served["cost"]) == (2, 2, 30)
    assert (served["input_uncached"], served["output"], served["tokens"]) == (10, 4, 14)
    assert (other["calls_released"], other["calls_charged"], other["cost"]) == (1, 1, 40)
    assert ledger.usage_records("acme") == ()


def test_a_late_settlement_is_recorded_on_the_day_of_its_reservation(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)

    ledger.resolve(reservation.id, settled(25), NOW + timedelta(days=2))

    assert [record["sk"][:10] for record in ledger.usage_records("acme")] == ["2026-11-29"]


def test_reservations_are_listed_newest_first_by_budget_and_state(ledger: Ledger) -> None:
    one = opened(ledger, a_policy("acme"), a_policy("acme/b"), now=NOW - timedelta(days=3))
    other = opened(ledger, a_policy("acmelike"), now=NOW - timedelta(days=3))
    old = reserved(ledger, one, now=NOW - timedelta(days=2))
    ledger.resolve(old.id, RELEASED, NOW)
    done = reserved(ledger, one)
    ledger.resolve(done.id, settled(1), NOW)
    lost = reserved(ledger, one, now=NOW + timedelta(seconds=1))
    ledger.resolve(lost.id, UNKNOWN, NOW)
    alien = reserved(ledger, other, now=NOW + timedelta(seconds=2))

    def listed(**chosen: Any) -> list[str]:
        return [reservation.id for reservation in ledger.reservations(now=NOW, **chosen)]

    assert listed() == [alien.id, lost.id, done.id, old.id]
    assert listed(budget="acme") == [lost.id, done.id, old.id]
    assert listed(budget="acme/b", state="unknown") == [lost.id]
    assert listed(state="in_flight") == [alien.id]
    assert listed(limit=2) == [alien.id, lost.id]
    # However many others the newest days hold.
    assert listed(state="released", limit=1) == [old.id]
    assert listed(state="charged") == []


def test_a_call_is_overdue_at_its_deadline_and_not_before(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    others = [reserved(ledger, path, now=NOW + timedelta(seconds=1)) for _ in range(20)]
    before = reservation.deadline - timedelta(microseconds=1)

    assert ledger.overdue(before, limit=9) == ()
    assert ledger.overdue(reservation.deadline, limit=9) == (reservation.id,)
    assert len(ledger.overdue(others[0].deadline, limit=99)) == 21
    ledger.resolve(reservation.id, settled(1), NOW)
    assert ledger.overdue(reservation.deadline, limit=9) == ()


@pytest.mark.parametrize(
    "write",
    [
        lambda ledger: ledger.put_budget(a_policy("acme/c"), expected_rev=None, now=NOW, event=an_event()),
        lambda ledger: ledger.stop("acme", a_stop(), an_event()),
        lambda ledger: (ledger.stop("acme", a_stop()), ledger.resume("acme", an_event())),
    ],
    ids=["put", "stop", "resume"],
)
def test_an_operators_event_is_written_with_the_change(ledger: Ledger, write: Callable[[Ledger], None]) -> None:
    opened(ledger, a_policy())

    write(ledger)

    assert ledger.events("2026-11-29") == (an_event(),)
    assert ledger.events("2026-11-30") == ()


def test_a_reconciliation_is_written_with_its_event_and_evidence(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    reservation = reserved(ledger, path)
    event = an_event("reservation_settled", reservation.id)

    ledger.resolve(reservation.id, settled(3, evidence="invoice 7", by="ops"), NOW, event=event)

    record = ledger.reservation(reservation.id)
    assert record is not None
    assert (record.evidence, record.by) == ("invoice 7", "ops")
    assert ledger.events("2026-11-29") == (event,)


@pytest.mark.parametrize(
    "write",
    [
        lambda ledger: ledger.put_budget(a_policy(), expected_rev=None, now=NOW, event=an_event()),
        lambda ledger: ledger.put_budget(a_policy(), expected_rev=7, now=NOW, event=an_event()),
        lambda ledger: ledger.stop("gone", a_stop(), an_event()),
        lambda ledger: ledger.resume("gone", an_event()),
        lambda ledger: ledger.resolve("0" * 26, settled(1), NOW, event=an_event()),
    ],
    ids=["put new", "put over", "stop", "resume", "resolve"],
)
def test_what_is_not_changed_leaves_no_event(ledger: Ledger, write: Callable[[Ledger], None]) -> None:
    opened(ledger, a_policy())
    before = rows(ledger)

    with pytest.raises(LedgerError):
        write(ledger)

    assert rows(ledger) == before


def test_the_tree_is_listed_in_the_order_of_its_paths(ledger: Ledger) -> None:
    for name in ("b", "a", "a/z", "a/b", "a/b/c", "a-b"):
        ledger.put_budget(a_policy(name), expected_rev=None, now=NOW)

    assert [state.policy.path for state in ledger.budgets()] == ["a", "a/b", "a/b/c", "a/z", "a-b", "b"]
