"""What a budget's state tells, and what makes it one alert and not a hundred."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spendgate.core.alert import (
    DEFAULTS,
    KINDS,
    TOLD_WINDOWS,
    Alert,
    AlertPolicy,
    CatalogueState,
    budget_alerts,
    catalogue_stale,
    exceeded,
    state_alerts,
    unknown_money,
)
from spendgate.core.alert_samples import samples
from spendgate.core.budget import Amounts, BudgetState, Limit, Stop
from spendgate.core.policy import Denied, verdict
from spendgate.core.window import WINDOWS, Window, bucket, counter
from tests.builders import NOW, USD, a_limit, a_reservation, a_state


def spent(settled: int, *limits: Limit, reserved: int = 0, **changes: object) -> BudgetState:
    """A budget whose limits of money all stand at so much."""
    names = {
        counter(limit.measure, limit.window, NOW): settled + reserved for limit in limits if limit.window != "request"
    }
    return replace(a_state(*limits), counters=names, reserved=reserved, **changes)  # type: ignore[arg-type]


def told(state: BudgetState, policy: AlertPolicy = DEFAULTS) -> list[tuple[str, str]]:
    return [(alert.kind, alert.facts["threshold"]) for alert in budget_alerts(state, policy, NOW)]


def refused(state: BudgetState, usd: int) -> Denied:
    denied = verdict(state, Amounts(usd=usd, requests=1), NOW)
    assert isinstance(denied, Denied)
    return denied


def test_b57_80_and_100_are_both_told_where_one_call_jumps_over_both() -> None:
    """B57: one message a threshold, also where nothing was seen in between."""
    assert told(spent(10 * USD, a_limit("10"))) == [("warn", "80"), ("exceeded", "100")]


@settings(max_examples=50)
@given(
    said=st.lists(st.none() | st.lists(st.integers(1, 99), unique=True, max_size=3).map(tuple), min_size=1, max_size=5),
    file=st.lists(st.integers(1, 99), unique=True, max_size=3).map(tuple),
)
def test_a_budget_warns_as_it_says_or_the_nearest_above_it_does_or_the_file_and_is_told_of_100_in_any_case(
    said: list[tuple[int, ...] | None], file: tuple[int, ...]
) -> None:
    names = ["a" if level == 0 else f"b{level}" for level in range(len(said))]
    paths = ["/".join(names[: level + 1]) for level in range(len(said))]
    full = spent(10 * USD, a_limit("10"))
    states = [
        replace(full, policy=replace(full.policy, path=path, warn_at=own))
        for path, own in zip(paths, said, strict=True)
    ]

    found = state_alerts(states, AlertPolicy(warn_at=file), blocks=(), open_ones=(), catalogue=None, now=NOW)

    for level, path in enumerate(paths):
        expected = next((own for own in reversed(said[: level + 1]) if own is not None), file)
        told_of = {int(one.facts["threshold"]) for one in found if one.scope == path}
        assert told_of == {*expected, 100}


def test_what_is_reserved_is_no_spend_yet() -> None:
    assert told(spent(3 * USD, a_limit("10"), reserved=6 * USD)) == []


def test_a_threshold_is_reached_at_exactly_its_share() -> None:
    assert told(spent(8 * USD - 1, a_limit("10"))) == []
    assert told(spent(8 * USD, a_limit("10"))) == [("warn", "80")]


def test_every_threshold_of_the_file_is_one() -> None:
    assert told(spent(9 * USD, a_limit("10")), AlertPolicy(warn_at=(50, 90, 95))) == [("warn", "50"), ("warn", "90")]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_that_is_over_before_anybody_reads_is_not_told(window: Window) -> None:
    found = told(spent(10 * USD, a_limit("10", window=window)))

    assert bool(found) == (window in TOLD_WINDOWS) == (window not in {"request", "minute"})


def test_counts_are_told_as_money_is() -> None:
    limit = a_limit(1000, measure="requests", window="month")
    (alert,) = budget_alerts(spent(850, limit), DEFAULTS, NOW)

    assert (alert.facts["used"], alert.facts["percent"], alert.facts["left"]) == ("850", "85", "150")


def test_a_limit_of_nothing_has_no_share_that_could_be_reached() -> None:
    assert told(spent(0, a_limit("0"))) == []


def test_a_budget_that_observes_is_told_too_and_rings_less() -> None:
    state = spent(12 * USD, a_limit("10"))
    observing = replace(state, policy=replace(state.policy, mode="observe"))

    assert told(observing) == [("warn", "80"), ("exceeded", "100")]
    assert {alert.severity for alert in budget_alerts(observing, DEFAULTS, NOW)} == {"warning"}


def test_b57_a_new_window_and_a_raised_limit_are_told_again_and_nothing_else() -> None:
    """B57: the period and the maximum are in the mark's name."""
    limit = a_limit("10")
    (first,) = budget_alerts(spent(8 * USD, limit), DEFAULTS, NOW)
    (more,) = budget_alerts(spent(9 * USD, limit), DEFAULTS, NOW + timedelta(minutes=1))
    tomorrow = NOW + timedelta(days=1)
    state = replace(spent(8 * USD, limit), counters={counter("usd", "day", tomorrow): 8 * USD})
    (next_day,) = budget_alerts(state, DEFAULTS, tomorrow)
    (raised,) = budget_alerts(spent(18 * USD, a_limit("20")), DEFAULTS, NOW)

    assert first.name == more.name
    assert len({first.name, next_day.name, raised.name}) == 3


def test_an_hour_that_rolls_has_no_period_and_is_told_again_after_an_hour() -> None:
    state = replace(a_state(a_limit("10", window="hour")), counters={"usd.hour": 9 * USD, bucket("usd", NOW): 9 * USD})
    (alert,) = budget_alerts(state, DEFAULTS, NOW)

    assert alert.rearms_at == NOW + timedelta(hours=1)


def test_money_that_has_left_the_rolling_hour_is_not_told() -> None:
    old = bucket("usd", NOW - timedelta(hours=2))
    state = replace(a_state(a_limit("10", window="hour")), counters={"usd.hour": 9 * USD, old: 9 * USD})

    assert told(state) == []


def test_the_first_refusal_has_the_mark_of_100_percent() -> None:
    limit = a_limit("10")
    by_refusal = exceeded(refused(spent(9 * USD, limit), 2 * USD), NOW)
    *_, by_state = budget_alerts(spent(10 * USD, limit), DEFAULTS, NOW)

    assert by_refusal is not None
    assert by_refusal.name == by_state.name
    assert (by_refusal.facts["asked"], by_refusal.facts["left"], by_refusal.facts["used"]) == ("2", "1", "9")


def test_a_refusal_that_passes_by_itself_or_never_fits_is_not_told() -> None:
    busy = refused(spent(0, a_limit("10"), reserved=9 * USD), 2 * USD)
    too_expensive = refused(spent(0, a_limit("10")), 11 * USD)
    a_minute = refused(spent(60, a_limit(60, measure="requests", window="minute")), 0)

    assert [exceeded(one, NOW) for one in (busy, too_expensive, a_minute)] == [None, None, None]


def test_of_runs_the_budget_above_hears_once_a_day() -> None:
    state = spent(USD, a_limit("1", window="life"))
    runs = [replace(state, policy=replace(state.policy, path=f"acme/triage/run:{number}")) for number in (1, 2)]
    first, second = (exceeded(refused(run, 1), NOW) for run in runs)

    assert first is not None
    assert second is not None
    assert (first.name, first.scope, first.facts["run"]) == (second.name, "acme/triage", "acme/triage/run:1")


def test_a_stop_is_told_once_and_the_next_one_again() -> None:
    def stop_at(minutes: int) -> Alert:
        stop = Stop(reason="loops", at=NOW + timedelta(minutes=minutes), by="ada")
        state = replace(a_state(), policy=replace(a_state().policy, stop=stop))
        (alert,) = budget_alerts(state, DEFAULTS, NOW)
        return alert

    assert stop_at(0).name == stop_at(0).name != stop_at(5).name


def test_unknown_money_is_told_once_it_is_an_hour_old_by_the_budget_that_runs_belong_to() -> None:
    young = a_reservation(number=1, at=NOW - timedelta(minutes=59), state="unknown")
    old = [
        a_reservation("acme/x/run:1", number=2, at=NOW - timedelta(hours=1), state="unknown"),
        a_reservation("acme/x", number=3, at=NOW - timedelta(hours=2), state="unknown"),
    ]
    in_flight = a_reservation(number=4, at=NOW - timedelta(hours=3))
    (alert,) = unknown_money([young, *old, in_flight], NOW)

    assert alert.scope == "acme/x"
    assert (alert.facts["count"], alert.facts["amount"], alert.facts["oldest"]) == ("2", "0.02", old[1].id)


def test_a_catalogue_is_stale_after_45_days_and_told_of_once_a_month() -> None:
    assert list(catalogue_stale(None, NOW)) == []
    assert list(catalogue_stale(CatalogueState(rows=1, stale=1, age_days=45), NOW)) == []
    (alert,) = catalogue_stale(CatalogueState(rows=1, stale=1, age_days=46), NOW)
    assert alert.mark == "2026-11"


def test_there_is_a_sample_of_each_kind() -> None:
    assert sorted(alert.kind for alert in samples(NOW)) == sorted(KINDS)


@given(
    maximum=st.integers(min_value=1, max_value=10**20),
    used=st.integers(min_value=0, max_value=10**20),
    thresholds=st.lists(st.integers(min_value=1, max_value=99), unique=True, max_size=5),
)
def test_exactly_the_thresholds_that_are_reached_are_told(maximum: int, used: int, thresholds: list[int]) -> None:
    limit = Limit(measure="usd", window="day", maximum=maximum)
    found = told(spent(used, limit), AlertPolicy(warn_at=tuple(thresholds)))

    assert {int(threshold) for _, threshold in found} == {
        one for one in (*thresholds, 100) if used * 100 >= maximum * one
    }
