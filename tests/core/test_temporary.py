"""Temporary limits: they raise until an instant, and from then on it is as if they had never been."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from spendgate.core.alert import AlertPolicy, budget_alerts
from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit, TemporaryLimits
from spendgate.core.money import usd
from spendgate.core.policy import Denied, Verdict, guards, refusal_before, rooms_left, verdict
from spendgate.core.window import counter
from tests.builders import NOW, a_limit, a_policy, a_state
from tests.strategies import amounts, instants, limits, policies, states

MOMENT = timedelta(microseconds=1)
spans = st.integers(0, 10**9).map(lambda microseconds: timedelta(microseconds=microseconds))
some_limits = st.lists(limits, max_size=6, unique_by=lambda limit: (limit.measure, limit.window)).map(tuple)


def temporary(*raised: Limit, until: datetime) -> TemporaryLimits:
    return TemporaryLimits(limits=raised, until=until, at=NOW, by="ana", reason="the launch")


def said(found: Verdict | None) -> object:
    """Return what can be compared: a refusal is an exception, and each is its own."""
    if not isinstance(found, Denied):
        return found
    return found.limit, found.room, found.rooms, type(found.refusal), str(found.refusal), found.refusal.facts


@settings(max_examples=50)
@given(st.data(), amounts, instants, some_limits, spans)
def test_from_its_end_on_a_temporary_limit_decides_nothing(
    data: st.DataObject, asked: Amounts, now: datetime, raised: tuple[Limit, ...], since: timedelta
) -> None:
    own = data.draw(states(now))
    ended = replace(own, policy=replace(own.policy, temporary=temporary(*raised, until=now - since)))

    assert said(verdict(ended, asked, now)) == said(verdict(own, asked, now))
    assert guards(ended.policy, asked, now) == guards(own.policy, asked, now)
    assert said(refusal_before(ended.policy, asked, now)) == said(refusal_before(own.policy, asked, now))
    assert rooms_left(ended, now) == rooms_left(own, now)


@settings(max_examples=50)
@given(st.data(), amounts, instants, some_limits, spans)
def test_before_its_end_a_temporary_limit_counts_where_it_is_higher_and_nowhere_else(
    data: st.DataObject, asked: Amounts, now: datetime, raised: tuple[Limit, ...], ahead: timedelta
) -> None:
    own = data.draw(states(now))
    standing = replace(own, policy=replace(own.policy, temporary=temporary(*raised, until=now + ahead + MOMENT)))
    known = {(one.measure, one.window): one.maximum for one in raised}
    higher = tuple(
        replace(one, maximum=max(one.maximum, known.get((one.measure, one.window), 0))) for one in own.policy.limits
    )
    as_if_its_own = replace(own, policy=replace(own.policy, limits=higher))

    assert guards(standing.policy, asked, now) == guards(as_if_its_own.policy, asked, now)
    assert said(verdict(standing, asked, now)) == said(verdict(as_if_its_own, asked, now))
    assert rooms_left(standing, now) == rooms_left(as_if_its_own, now)


@given(policies, some_limits, instants, instants)
def test_a_temporary_limit_lowers_nothing_and_adds_none(
    policy: BudgetPolicy, raised: tuple[Limit, ...], until: datetime, now: datetime
) -> None:
    effective = replace(policy, temporary=temporary(*raised, until=until)).limits_at(now)

    assert [(one.measure, one.window) for one in effective] == [(one.measure, one.window) for one in policy.limits]
    assert all(own.maximum <= other.maximum for own, other in zip(policy.limits, effective, strict=True))


@settings(max_examples=100)
@given(
    own=st.integers(0, 50),
    more=st.integers(1, 100),
    calls=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40), st.booleans()), max_size=25),
    end=st.integers(0, 200),
)
def test_nothing_is_admitted_over_the_raised_limit_before_its_end_nor_over_the_own_one_from_then_on(
    own: int, more: int, calls: list[tuple[int, int, bool]], end: int
) -> None:
    """Each gateway knows the raised limit or remembers the policy of before; a revision keeps the latter out."""
    until = NOW + timedelta(seconds=end)
    before = a_policy(a_limit(own, window="life"))
    stored = replace(before, rev=2, temporary=temporary(a_limit(own + more, window="life"), until=until))
    name, committed, now = counter("usd", "life", NOW), 0, NOW
    for seconds, size, remembers_before in calls:
        now += timedelta(seconds=seconds)
        held = before if remembers_before else stored
        asked = Amounts(usd=size)
        if refusal_before(held, asked, now) is not None:
            # Whoever refuses by an older policy has to look again before it says so.
            continue
        holds = all(committed <= guard.at_most for guard in guards(held, asked, now) if guard.counter == name)
        if not holds or held.rev != stored.rev:
            continue
        committed += size
        assert committed <= (own + more if now < until else own)


def test_a_raised_limit_is_told_of_anew_and_the_own_one_not_again_when_it_is_back() -> None:
    state = a_state(a_limit("10"), counters={counter("usd", "day", NOW): usd("12")})
    raised = replace(
        state, policy=replace(state.policy, temporary=temporary(a_limit("15"), until=NOW + timedelta(hours=1)))
    )

    def marks(of: BudgetState, now: datetime) -> list[str]:
        return [one.mark for one in budget_alerts(of, AlertPolicy(), now)]

    (warned,) = marks(raised, NOW)
    assert warned.endswith(f"#80#{usd('15')}")
    # The hundred percent of the budget's own limit has the mark that it had before it was raised.
    assert marks(raised, NOW + timedelta(minutes=45)) == [warned]
    assert marks(state, NOW) == marks(replace(raised, policy=replace(raised.policy, temporary=None)), NOW)
