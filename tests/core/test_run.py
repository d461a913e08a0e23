"""Runs: a minted one only ever narrows, and its time, its latch and its end are kept to the instant."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit, RunPolicy, Stop, new_run
from spendgate.core.counters import hold_of, on_reserve, on_resolve
from spendgate.core.key import Key
from spendgate.core.policy import Admitted, Denied, guards, refusal_before, verdict
from spendgate.core.run import (
    DELEGATE_DEPTH_MAX,
    KEY_LIFETIME_MAX,
    LIMITS_MAX,
    RunRequest,
    TooWide,
    active_asked,
    active_limit,
    active_milliseconds,
    minted_run,
)
from spendgate.core.window import ACTIVE, MEASURES, WINDOWS, counter
from spendgate.errors import BudgetStopped, OverBudget, RequestTooExpensive
from tests.builders import NOW, a_key, a_limit, a_policy, a_reservation, a_state

ROUTES = ("small", "large", "huge")
MOMENT = timedelta(microseconds=1)

limits = st.lists(
    st.builds(Limit, measure=st.sampled_from(MEASURES), window=st.sampled_from(WINDOWS), maximum=st.integers(0, 5)),
    max_size=4,
    unique_by=lambda limit: (limit.measure, limit.window),
).map(tuple)
spans = st.integers(1, 60).map(lambda minutes: timedelta(minutes=minutes))
some_models = st.lists(st.sampled_from(ROUTES), max_size=2, unique=True).map(tuple)
run_policies = st.builds(
    RunPolicy,
    limits=limits,
    expire_after=st.none() | spans,
    elapsed_max=st.none() | spans,
    stop_on_unknown=st.booleans(),
    stop_on_refusal=st.booleans(),
    delegate=st.integers(0, DELEGATE_DEPTH_MAX),
)
requests = st.builds(
    RunRequest,
    limits=limits,
    expires_after=st.none() | spans,
    elapsed_max=st.none() | spans,
    models=some_models,
    delegate=st.integers(0, DELEGATE_DEPTH_MAX),
)
keys = st.builds(a_key, models=some_models, expires_at=st.none() | spans.map(lambda span: NOW + span))


def by_pair(limits: tuple[Limit, ...]) -> dict[tuple[str, str], int]:
    return {(one.measure, one.window): one.maximum for one in limits}


def longer(asked: timedelta | None, given: timedelta | None) -> bool:
    return asked is not None and given is not None and asked > given


def too_wide(runs: RunPolicy, asked: RunRequest, holders: list[Key]) -> bool:
    """Say by the words of the documentation whether more is asked than is given."""
    given = by_pair(runs.limits)
    return (
        asked.delegate >= runs.delegate
        or any(key.models and route not in key.models for key in holders for route in asked.models)
        or any(maximum > given.get(pair, maximum) for pair, maximum in by_pair(asked.limits).items())
        or longer(asked.elapsed_max, runs.elapsed_max)
        or longer(asked.expires_after, runs.expire_after or KEY_LIFETIME_MAX)
    )


@settings(max_examples=50)
@given(run_policies, requests, st.lists(keys, min_size=1, max_size=3), st.none() | spans)
def test_a_minted_run_has_what_was_asked_for_within_what_is_given_and_anything_wider_is_refused(
    runs: RunPolicy, asked: RunRequest, holders: list[Key], left: timedelta | None
) -> None:
    above = a_policy(runs=runs, expires_at=None if left is None else NOW + left)
    if too_wide(runs, asked, holders):
        with pytest.raises(TooWide):
            minted_run(above, "acme/run:7", asked, NOW, keys=holders)
        return

    policy, ends = minted_run(above, "acme/run:7", asked, NOW, keys=holders)

    given, wanted, found = by_pair(runs.limits), by_pair(asked.limits), by_pair(policy.limits)
    assert found == given | wanted
    assert all(maximum <= given.get(pair, maximum) for pair, maximum in found.items())
    assert policy.elapsed_max == (asked.elapsed_max or runs.elapsed_max)
    others = [key.expires_at for key in holders] + [above.expires_at]
    lasts = asked.expires_after or runs.expire_after or KEY_LIFETIME_MAX
    assert ends == policy.expires_at == min([NOW + lasts, *(at for at in others if at is not None)])
    assert (policy.stop_on_unknown, policy.stop_on_refusal) == (runs.stop_on_unknown, runs.stop_on_refusal)
    assert (0 if policy.runs is None else policy.runs.delegate) == asked.delegate < runs.delegate
    assert policy.rev == 1


@settings(max_examples=50)
@given(run_policies, st.lists(requests, min_size=1, max_size=DELEGATE_DEPTH_MAX + 1))
def test_keys_that_keys_have_minted_only_ever_narrow_and_come_to_an_end(
    runs: RunPolicy, chain: list[RunRequest]
) -> None:
    above, holders, minted = a_policy(runs=runs), [a_key()], 0
    for depth, asked in enumerate(chain):
        path = f"{above.path}/run:{depth}"
        try:
            policy, ends = minted_run(above, path, replace(asked, models=()), NOW, keys=holders)
        except TooWide:
            break
        minted += 1
        assert above.expires_at is None or ends <= above.expires_at
        if policy.runs is not None:
            assert policy.runs.delegate < (above.runs or RunPolicy()).delegate
            # What it can give away is what it has.
            assert by_pair(policy.runs.limits) == by_pair(policy.limits)
        above, holders = policy, [*holders, a_key(expires_at=ends)]

    assert minted <= runs.delegate


def test_no_limits_beyond_their_number_are_taken() -> None:
    pairs = [(measure, window) for measure in MEASURES for window in WINDOWS][: LIMITS_MAX + 1]
    many = tuple(Limit(measure=measure, window=window, maximum=1) for measure, window in pairs)
    above = a_policy(runs=RunPolicy(delegate=1))

    assert (
        len(minted_run(above, "acme/run:7", RunRequest(limits=many[1:]), NOW, keys=[a_key()])[0].limits) == LIMITS_MAX
    )
    with pytest.raises(TooWide) as error:
        minted_run(above, "acme/run:7", RunRequest(limits=many), NOW, keys=[a_key()])
    assert error.value.field == "limits"


# --- the ends of a run


@given(span=spans, since=st.integers(-120, 120), asked=st.integers(0, 3))
def test_a_run_admits_nothing_from_the_instant_that_it_expires(span: timedelta, since: int, asked: int) -> None:
    run = new_run(a_policy(runs=RunPolicy(expire_after=span)), "acme/run:7", NOW)
    now = NOW + span + timedelta(seconds=since)

    denied = refusal_before(run, Amounts(usd=asked), now)

    assert (denied is not None) == (since >= 0)
    assert refusal_before(run, Amounts(usd=asked), NOW + span - MOMENT) is None


@given(span=spans, start=st.none() | st.integers(0, 7200), at=st.integers(0, 14_400))
def test_a_run_has_its_time_since_its_first_call_and_none_before_that(
    span: timedelta, start: int | None, at: int
) -> None:
    started = None if start is None else NOW + timedelta(seconds=start)
    now = NOW + timedelta(seconds=at)
    assume(started is None or started <= now)
    state = BudgetState(policy=a_policy(elapsed_max=span), started_at=started)

    found = verdict(state, Amounts(usd=1), now)

    over = started is not None and now >= started + span
    assert isinstance(found, Denied) == over
    if isinstance(found, Denied):
        assert isinstance(found.refusal, BudgetStopped)


@given(limits, st.integers(0, 5), st.datetimes(timezones=st.just(NOW.tzinfo)))
def test_a_latched_run_admits_nothing_however_small_and_whenever(
    run_limits: tuple[Limit, ...], asked: int, now: datetime
) -> None:
    stop = Stop(reason="the run was refused by its own limits", at=NOW, by="spendgate")
    for mode in ("enforce", "observe"):
        run = BudgetPolicy(path="acme/run:7", rev=2, limits=run_limits, mode=mode, stop=stop)
        denied = refusal_before(run, Amounts(usd=asked), now)
        assert denied is not None
        assert isinstance(denied.refusal, BudgetStopped)


# --- the time that its calls take together


@given(st.lists(st.booleans(), min_size=1, max_size=4))
def test_time_is_counted_where_a_budget_of_the_path_limits_it(limited: list[bool]) -> None:
    limit = active_limit(timedelta(seconds=5))
    path = [a_policy(*([limit] if one else [])) for one in limited]

    assert limit == Limit(measure=ACTIVE, window="life", maximum=5000)
    assert active_asked(path) == int(any(limited))


@settings(max_examples=50)
@given(took=st.integers(-(10**9), 10**12), counted=st.booleans())
def test_what_a_call_took_is_whole_milliseconds_and_never_nothing_where_it_counts(took: int, counted: bool) -> None:
    call = a_reservation(asked=Amounts(usd=1, active_milliseconds=int(counted)))

    found = active_milliseconds(call, NOW + timedelta(microseconds=took))

    assert found == (max(took // 1000, 1) if counted else 0)


@settings(max_examples=50)
@given(maximum=st.integers(0, 50), calls=st.lists(st.integers(1, 30), max_size=12))
def test_calls_one_after_the_other_are_admitted_until_their_time_is_used_up_and_never_after(
    maximum: int, calls: list[int]
) -> None:
    limit = active_limit(timedelta(milliseconds=maximum))
    state, used, asked = a_state(limit), 0, Amounts(active_milliseconds=1)
    hold, name = hold_of(state.policy, NOW), counter(ACTIVE, "life", NOW)
    for took in calls:
        found = verdict(state, asked, NOW)

        assert isinstance(found, Admitted) == (used < maximum)
        if isinstance(found, Denied):
            assert isinstance(found.refusal, OverBudget | RequestTooExpensive)
            continue
        assert all(state.counters.get(guard.counter, 0) <= guard.at_most for guard in guards(state.policy, asked, NOW))
        counters = dict(state.counters)
        for changes in (
            on_reserve(hold, asked),
            on_resolve(hold, asked, Amounts(active_milliseconds=took), was_unknown=False),
        ):
            for counted, change in changes.items():
                counters[counted] = counters.get(counted, 0) + change
        state, used = replace(state, counters=counters), used + took
        assert counters[name] == used


def test_a_limit_of_time_says_itself_in_milliseconds() -> None:
    state = a_state(active_limit(timedelta(seconds=2)), counters={counter(ACTIVE, "life", NOW): 2000})

    found = verdict(state, Amounts(active_milliseconds=1), NOW)

    assert isinstance(found, Denied)
    assert "2000 ms in which calls are in flight" in str(found.refusal)


def test_what_a_run_gets_of_its_policy_is_all_of_it() -> None:
    runs = RunPolicy(
        limits=(a_limit("2", window="life"),),
        expire_after=timedelta(hours=1),
        elapsed_max=timedelta(minutes=30),
        stop_on_unknown=True,
        stop_on_refusal=True,
    )
    run = new_run(a_policy(mode="observe", runs=runs), "acme/run:7", NOW)

    assert run == BudgetPolicy(
        path="acme/run:7",
        rev=0,
        limits=runs.limits,
        mode="observe",
        stop_on_unknown=True,
        expires_at=NOW + timedelta(hours=1),
        elapsed_max=timedelta(minutes=30),
        stop_on_refusal=True,
    )
