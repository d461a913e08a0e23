"""The policy decision: what the guards let through, and what is said where they do not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spendgate.core.budget import Amounts, BudgetState, Limit, Stop
from spendgate.core.money import usd
from spendgate.core.policy import (
    Admitted,
    AdmittedByEviction,
    Denied,
    amount_text,
    guards,
    limit_text,
    precedence,
    refusal_before,
    verdict,
)
from spendgate.core.window import bucket, counter, resets_at
from spendgate.errors import BudgetBusy, BudgetStopped, OverBudget, RateLimited, Refused, RequestTooExpensive
from tests.builders import NOW, a_limit, a_policy, a_state
from tests.strategies import amounts, instants, states

DAY = "usd.day.2026-11-29"
STOP = Stop(reason="a bill above the bound", at=NOW, by="ada")


def denial(state: BudgetState, asked: Amounts, now: datetime = NOW) -> Denied:
    found = verdict(state, asked, now)
    assert isinstance(found, Denied)
    return found


def guards_hold(state: BudgetState, asked: Amounts, now: datetime) -> bool:
    return all(state.counters.get(guard.counter, 0) <= guard.at_most for guard in guards(state.policy, asked, now))


@given(st.data(), amounts, instants)
def test_a_verdict_admits_exactly_where_all_guards_hold_and_nothing_refuses_before(
    data: st.DataObject, asked: Amounts, now: datetime
) -> None:
    state = data.draw(states(now))

    admitted = isinstance(verdict(state, asked, now), Admitted)

    assert admitted == (guards_hold(state, asked, now) and refusal_before(state.policy, asked, now) is None)


@given(st.data(), amounts, instants)
def test_an_eviction_makes_all_guards_hold_and_takes_only_whole_old_buckets(
    data: st.DataObject, asked: Amounts, now: datetime
) -> None:
    state = data.draw(states(now))
    found = verdict(state, asked, now)
    if not isinstance(found, AdmittedByEviction):
        return

    after = {name: value for name, value in state.counters.items() if name not in found.buckets}
    for name, value in found.buckets.items():
        assert state.counters[name] == value
        after[name.rpartition(".")[0]] -= value

    assert isinstance(verdict(replace(state, counters=after), asked, now), Admitted)
    assert not guards_hold(state, asked, now)


@given(st.data(), amounts, instants)
def test_a_budget_that_observes_denies_nothing_on_a_limit(data: st.DataObject, asked: Amounts, now: datetime) -> None:
    state = data.draw(states(now))
    observing = replace(state, policy=replace(state.policy, mode="observe"))

    assert guards(observing.policy, asked, now) == ()
    assert verdict(observing, asked, now) == Admitted()


@given(st.data(), amounts, instants)
def test_a_denial_names_the_limit_in_the_way_and_what_is_left_of_it(
    data: st.DataObject, asked: Amounts, now: datetime
) -> None:
    state = data.draw(states(now))
    found = verdict(state, asked, now)
    if not isinstance(found, Denied):
        return

    limit, facts = found.limit, found.refusal.facts
    assert limit in state.policy.limits
    assert limit is not None
    # A limit that is already exceeded denies even a call that asks for nothing of it.
    assert found.room < max(asked.of(limit.measure), 1)
    assert 0 <= found.room <= limit.maximum
    assert (facts.budget, facts.measure, facts.window) == ("acme", limit.measure, limit.window)
    assert facts.maximum == amount_text(limit.measure, limit.maximum)
    assert facts.asked == amount_text(limit.measure, asked.of(limit.measure))
    assert facts.next_action
    assert isinstance(found.refusal, BudgetBusy | RateLimited) == found.refusal.retryable


def test_money_in_the_facts_adds_up_exactly() -> None:
    state = a_state(a_limit("10"), reserved=usd("3"), unknown=usd("1"), counters={DAY: usd("9.5")})

    found = denial(state, Amounts(usd=usd("4")))

    facts = found.refusal.facts
    assert (facts.maximum, facts.settled, facts.reserved, facts.unknown, facts.asked) == ("10", "6.5", "3", "1", "4")
    assert facts.resets_at == "2026-11-30T00:00:00Z"
    assert found.room == usd("0.5")


def test_a_call_waits_where_what_is_in_flight_could_make_room() -> None:
    state = a_state(a_limit("10"), reserved=usd("3"), counters={DAY: usd("10")})

    refusal = denial(state, Amounts(usd=usd("3"))).refusal

    assert isinstance(refusal, BudgetBusy)
    assert refusal.retry_after_seconds
    assert isinstance(denial(state, Amounts(usd=usd("3.000000000001"))).refusal, OverBudget)


def test_what_is_unknown_makes_no_room_by_itself() -> None:
    state = a_state(a_limit("10"), reserved=usd("3"), unknown=usd("1"), counters={DAY: usd("10")})

    assert isinstance(denial(state, Amounts(usd=usd("2"))).refusal, BudgetBusy)
    refusal = denial(state, Amounts(usd=usd("2.5"))).refusal
    assert isinstance(refusal, OverBudget)
    assert "1 USD of it held for calls of unknown outcome" in str(refusal)


@pytest.mark.parametrize("measure", ["requests", "tokens", "tool_calls"])
def test_counts_a_minute_are_rates_and_wait_for_the_next_minute(measure: str) -> None:
    limit = Limit(measure=measure, window="minute", maximum=10)  # type: ignore[arg-type]
    state = a_state(limit, counters={f"{measure}.minute.2026-11-29T23:14Z": 10})

    refusal = denial(state, Amounts(**{measure: 1})).refusal

    assert isinstance(refusal, RateLimited)
    assert refusal.retry_after_seconds == 30
    assert refusal.facts.resets_at == "2026-11-29T23:15:00Z"
    assert refusal.facts.reserved is None


@given(instants)
def test_the_seconds_to_wait_for_lead_into_the_next_minute_and_not_past_it(now: datetime) -> None:
    limit = a_limit(0, "requests", "minute")
    full = a_state(a_limit(1, "requests", "minute"), counters={counter("requests", "minute", now): 1})

    refusal = denial(full, Amounts(requests=1), now).refusal

    assert refusal.retry_after_seconds is not None
    waited = now + timedelta(seconds=refusal.retry_after_seconds)
    assert counter("requests", "minute", waited) != counter("requests", "minute", now)
    assert waited - now < timedelta(seconds=61)
    assert isinstance(denial(a_state(limit), Amounts(requests=1), now).refusal, RequestTooExpensive)


@pytest.mark.parametrize("window", ["day", "month", "life"])
def test_counts_of_longer_windows_are_over_budget(window: str) -> None:
    limit = Limit(measure="tokens", window=window, maximum=10)  # type: ignore[arg-type]
    state = a_state(limit, counters={counter("tokens", limit.window, NOW): 8})

    refusal = denial(state, Amounts(tokens=3)).refusal

    assert isinstance(refusal, OverBudget)
    resets = resets_at(limit.window, NOW)
    assert refusal.facts.resets_at == (None if resets is None else f"{resets:%Y-%m-%dT%H:%M:%SZ}")


def test_a_call_larger_than_a_whole_window_never_fits_and_says_so_before_anything_is_read() -> None:
    policy = a_policy(a_limit("1", window="request"), a_limit("10"))

    assert refusal_before(policy, Amounts(usd=usd("1")), NOW) is None
    found = refusal_before(policy, Amounts(usd=usd("1.01")), NOW)
    assert found is not None
    assert isinstance(found.refusal, RequestTooExpensive)
    assert (found.limit, found.room) == (policy.limits[0], usd("1"))
    assert "1 USD a request" in str(found.refusal)


def test_a_stop_comes_before_everything_and_says_who_stopped_it_and_why() -> None:
    stopped = a_policy(a_limit(0), stop=replace(STOP, reservation="01ABC"), mode="observe")

    found = denial(BudgetState(policy=stopped), Amounts(usd=1))

    assert isinstance(found.refusal, BudgetStopped)
    assert "by ada: a bill above the bound (reservation 01ABC)" in str(found.refusal)
    assert found.refusal.facts.reservation == "01ABC"
    without = refusal_before(a_policy(stop=STOP), Amounts(), NOW)
    assert without is not None
    assert str(without.refusal).endswith("a bill above the bound")


def test_a_run_is_over_at_its_instant() -> None:
    run = a_policy(path="acme/run:1", expires_at=NOW)

    assert refusal_before(run, Amounts(), NOW - timedelta(microseconds=1)) is None
    found = refusal_before(run, Amounts(), NOW)
    assert found is not None
    assert isinstance(found.refusal, BudgetStopped)
    assert str(found.refusal) == "run acme/run:1 expired at 2026-11-29T23:14:30Z"


def test_of_several_limits_the_one_that_comes_first_in_the_order_is_answered() -> None:
    state = a_state(
        a_limit(1, "requests", "minute"),
        a_limit("10"),
        a_limit("10", window="month"),
        reserved=usd("10"),
        counters={"requests.minute.2026-11-29T23:14Z": 1, DAY: usd("10"), "usd.month.2026-11": usd("20")},
    )

    found = denial(state, Amounts(usd=1, requests=1))

    assert isinstance(found.refusal, OverBudget)
    assert found.limit == state.policy.limits[2]
    order: list[Refused] = [
        kind("") for kind in (BudgetStopped, RequestTooExpensive, OverBudget, BudgetBusy, RateLimited)
    ]
    assert [precedence(refusal) for refusal in order] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (a_limit("0.001"), "0.001 USD a day"),
        (a_limit("5", window="hour"), "5 USD an hour"),
        (a_limit(60, "requests", "minute"), "60 requests a minute"),
        (a_limit(9, "tool_calls", "life"), "9 tool calls in its lifetime"),
    ],
)
def test_a_limit_is_told_in_words(limit: Limit, text: str) -> None:
    assert limit_text(limit) == text


def test_the_hour_says_when_enough_of_it_is_gone() -> None:
    start = datetime(2026, 11, 29, 22, 30, tzinfo=UTC)
    state = a_state(
        a_limit("10", window="hour"),
        counters={
            "usd.hour": usd("10"),
            bucket("usd", start): usd("1"),
            bucket("usd", start + timedelta(minutes=10)): usd("9"),
            bucket("tokens", start): 5,
        },
    )

    assert denial(state, Amounts(usd=usd("1"))).refusal.facts.resets_at == "2026-11-29T23:35:00Z"
    assert denial(state, Amounts(usd=usd("2"))).refusal.facts.resets_at == "2026-11-29T23:45:00Z"


def test_the_hour_names_no_instant_where_only_reservations_fill_it() -> None:
    state = a_state(
        a_limit("10", window="hour"), reserved=usd("10"), unknown=usd("10"), counters={"usd.hour": usd("10")}
    )

    refusal = denial(state, Amounts(usd=usd("1"))).refusal

    assert isinstance(refusal, OverBudget)
    assert refusal.facts.resets_at is None


def test_an_instant_is_told_to_the_second_and_never_too_early() -> None:
    stopped = a_policy(stop=replace(STOP, at=NOW + timedelta(microseconds=1)))

    found = refusal_before(stopped, Amounts(), NOW)

    assert found is not None
    assert "2026-11-29T23:14:31Z" in str(found.refusal)


@settings(max_examples=5)
@given(st.integers(0, 2**32), st.sampled_from([300, 700, 2_000, 15_000]))
def test_the_rolling_hour_stepped_minute_by_minute_over_a_day_never_holds_more_than_its_limit(
    seed: int, size_max: int
) -> None:
    """Against the naive model, a list of (instant, amount): what counts is never below what the last hour held."""
    limit = a_limit(20_000, window="hour")
    counters: dict[str, int] = {}
    spent: list[tuple[datetime, int]] = []
    start = datetime(2028, 2, 28, 23, 0, 30, tzinfo=UTC)
    sizes = Random(seed)  # noqa: S311 - sizes of calls, no secret
    for minute in range(24 * 60):
        now, size = start + timedelta(minutes=minute), sizes.randrange(size_max)
        truth = sum(amount for at, amount in spent[-61:] if at > now - timedelta(hours=1))
        found = verdict(a_state(limit, counters=counters), Amounts(usd=size), now)
        if isinstance(found, AdmittedByEviction):
            for name, value in found.buckets.items():
                counters["usd.hour"] -= value
                del counters[name]
        assert counters.get("usd.hour", 0) >= truth
        if isinstance(found, Denied):
            # Conservative by less than one bucket: what the last 65 minutes held would not have left room either.
            held = sum(amount for at, amount in spent[-66:] if at > now - timedelta(minutes=65))
            assert held + size > limit.maximum
            continue
        assert truth + size <= limit.maximum
        counters["usd.hour"] = counters.get("usd.hour", 0) + size
        counters[bucket("usd", now)] = counters.get(bucket("usd", now), 0) + size
        spent.append((now, size))
