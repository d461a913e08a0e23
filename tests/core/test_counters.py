"""Counters: after any legal sequence of changes, each is the sum over the reservations."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.budget import Amounts, Limit
from spendgate.core.counters import RESERVED, UNKNOWN, Hold, hold_of, on_reserve, on_resolve, on_unknown
from spendgate.core.reservation import UNRESOLVED, State, may_follow
from spendgate.core.window import MEASURES, WINDOWS, bucket, counter, counter_window
from tests.builders import NOW, a_limit, a_policy
from tests.strategies import amounts, limits

NOTHING = Amounts()


@dataclass
class Record:
    """The naive model: what a reservation holds, and where it stands."""

    hold: Hold
    asked: Amounts
    state: State = "in_flight"
    actual: Amounts = NOTHING

    @property
    def committed(self) -> Amounts:
        return self.asked if self.state in UNRESOLVED else self.actual


def expected(records: list[Record]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for record in records:
        if record.state in UNRESOLVED:
            sums[RESERVED] += record.asked.usd
        if record.state == "unknown":
            sums[UNKNOWN] += record.asked.usd
        for name in record.hold.counters:
            sums[name] += record.committed.of(counter_window(name)[0])
        if record.state not in UNRESOLVED:
            for name in record.hold.buckets:
                sums[name] += record.actual.of(counter_window(name)[0])
    return sums


def actual_of(state: State, asked: Amounts, used: Amounts) -> Amounts:
    return {"released": NOTHING, "charged": asked}.get(state, used)


steps = st.one_of(
    st.tuples(st.just("reserve"), amounts, st.integers(0, 10**6)),
    st.tuples(st.sampled_from(["unknown", "settled", "released", "charged"]), amounts, st.integers(0, 20)),
)


@given(
    st.lists(limits, max_size=5, unique_by=lambda limit: (limit.measure, limit.window)), st.lists(steps, max_size=30)
)
def test_g9_each_counter_is_the_sum_over_the_reservations_after_any_legal_sequence(
    some: list[Limit], sequence: list[tuple[State, Amounts, int]]
) -> None:
    """G9. An actual amount above what was asked (a provider that bills more) is booked like any other."""
    policy = a_policy(*some)
    counters: Counter[str] = Counter()
    records: list[Record] = []
    for step, amount, number in sequence:
        if step not in {"unknown", "settled", "released", "charged"}:
            record = Record(hold=hold_of(policy, NOW + timedelta(seconds=number)), asked=amount)
            records.append(record)
            counters.update(on_reserve(record.hold, amount))
        elif records:
            record = records[number % len(records)]
            if not may_follow(record.state, step):
                continue
            if step == "unknown":
                counters.update(on_unknown(record.asked))
            else:
                record.actual = actual_of(step, record.asked, amount)
                changes = on_resolve(record.hold, record.asked, record.actual, was_unknown=record.state == "unknown")
                counters.update(changes)
            record.state = step
        assert {name: value for name, value in counters.items() if value} == {
            name: value for name, value in expected(records).items() if value
        }


@given(st.lists(limits, unique_by=lambda limit: (limit.measure, limit.window)), st.integers(0, 10**7))
def test_a_hold_names_money_by_day_month_and_life_and_whatever_is_limited(some: list[Limit], seconds: int) -> None:
    at = NOW + timedelta(seconds=seconds)

    hold = hold_of(a_policy(*some), at)

    limited = {counter(limit.measure, limit.window, at) for limit in some if limit.window != "request"}
    always = {counter("usd", "day", at), counter("usd", "month", at), counter("usd", "life", at)}
    assert set(hold.counters) == limited | always
    assert len(set(hold.counters)) == len(hold.counters)
    assert set(hold.buckets) == {bucket(limit.measure, at) for limit in some if limit.window == "hour"}
    assert hold.budget == "acme"


def test_a_settlement_after_midnight_touches_the_windows_of_its_reservation() -> None:
    """So the resolution takes no time at all: it cannot name other counters."""
    everything = [a_limit(10**15, measure, window) for measure in MEASURES for window in WINDOWS]
    reserved_at = datetime(2026, 11, 30, 23, 59, 59, 999999, tzinfo=NOW.tzinfo)
    hold = hold_of(a_policy(*everything), reserved_at)
    asked = Amounts(usd=100, requests=1, tokens=50, tool_calls=2)

    changes = on_resolve(hold, asked, Amounts(usd=30, requests=1, tokens=20, tool_calls=2), was_unknown=False)

    assert set(changes) == {RESERVED, *hold.counters, *hold.buckets}
    assert changes["usd.day.2026-11-30"] == changes["usd.month.2026-11"] == changes["usd.hour"] == -70
    assert changes["usd.hour.2026-11-30T23:55Z"] == 30
    assert changes["requests.minute.2026-11-30T23:59Z"] == 0
    assert UNKNOWN not in changes


@given(amounts)
def test_a_call_of_unknown_outcome_frees_nothing(asked: Amounts) -> None:
    assert on_unknown(asked) == {UNKNOWN: asked.usd}
