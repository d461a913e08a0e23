"""Temporary limits in the ledger: what a gateway may remember of them, and what stands in the item."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from spendgate.core.budget import BudgetPolicy, Limit, TemporaryLimits
from spendgate.errors import BudgetMissing
from spendgate.store.items import TEMPORARY_REASON_LENGTH_MAX, budget_key, policy_attributes
from spendgate.store.ledger import Ledger, NotAdmitted, PolicyStale
from spendgate.store.transact import ConditionsFailed, transact
from spendgate.store.transactions import reserve_steps
from spendgate.store.write import Step, Update
from tests.store.builders import (
    NOW,
    a_policy,
    a_reservation,
    a_stop,
    an_event,
    assert_conserved,
    counters,
    opened,
    path_of,
    rows,
    usd_limits,
)

UNTIL = NOW + timedelta(hours=1)


def raised(*limits: Limit, until: datetime = UNTIL, reason: str = "the launch") -> TemporaryLimits:
    return TemporaryLimits(limits=limits, until=until, at=NOW, by="ana", reason=reason)


def raise_to(ledger: Ledger, temporary: TemporaryLimits | None) -> tuple[BudgetPolicy, ...]:
    ledger.resume("acme", an_event("budget_raised"), temporary=temporary)
    return path_of(ledger, "acme")


def reserve(ledger: Ledger, path: tuple[BudgetPolicy, ...], usd: int, now: datetime) -> None:
    ledger.reserve(a_reservation(path, usd=usd, now=now), path, now)


def test_a_remembered_policy_admits_to_the_raised_limit_before_its_end_and_to_the_own_one_from_then_on(
    either: Ledger,
) -> None:
    opened(either, a_policy(limits=usd_limits(life=100)))
    path = raise_to(either, raised(*usd_limits(life=200)))
    reserve(either, path, 90, NOW)
    reserve(either, path, 60, UNTIL - timedelta(microseconds=1))

    for now, size in ((UNTIL, 1), (UNTIL + timedelta(days=9), 1)):
        with pytest.raises(NotAdmitted):
            reserve(either, path, size, now)
    with pytest.raises(NotAdmitted):
        reserve(either, path, 51, NOW)

    assert counters(either, "acme")["usd.life"] == 150
    assert_conserved(either, UNTIL)


def test_a_policy_of_before_is_stale_so_the_raised_limit_is_seen_and_an_end_that_was_moved_too(either: Ledger) -> None:
    before = opened(either, a_policy(limits=usd_limits(life=100)))
    first = raise_to(either, raised(*usd_limits(life=200), until=UNTIL + timedelta(hours=9)))
    with pytest.raises(PolicyStale) as stale:
        reserve(either, before, 90, NOW)
    assert [state.policy for state in stale.value.states] == list(first)

    shorter = raise_to(either, raised(*usd_limits(life=200)))
    with pytest.raises(PolicyStale):
        reserve(either, first, 150, UNTIL)
    with pytest.raises(NotAdmitted):
        reserve(either, shorter, 150, UNTIL)


def test_a_resume_sets_stop_and_temporary_limits_at_once_and_leaves_counters_alone(either: Ledger) -> None:
    path = opened(either, a_policy(limits=usd_limits(day=100)))
    reserve(either, path, 90, NOW)
    either.stop("acme", a_stop())
    temporary = raised(*usd_limits(day=200), reason="x" * 900)

    (policy,) = raise_to(either, temporary)

    assert policy.stop is None
    assert policy.temporary == replace(temporary, reason="x" * TEMPORARY_REASON_LENGTH_MAX)
    assert counters(either, "acme")["usd.day.2026-11-29"] == 90
    assert raise_to(either, None)[0].temporary is None
    (event, *_) = either.events("2026-11-29")
    assert event.kind == "budget_raised"
    with pytest.raises(BudgetMissing):
        either.resume("nowhere", an_event(), temporary=temporary)


def test_what_has_ended_is_swept_and_what_was_raised_since_stays(either: Ledger) -> None:
    opened(either, a_policy(limits=usd_limits(day=100)))
    raise_to(either, raised(*usd_limits(day=200)))
    old = either.budget("acme")
    assert old is not None
    assert not either.trim(old, UNTIL)
    later = UNTIL + timedelta(minutes=10)

    assert either.trim(old, later)
    assert path_of(either, "acme") == (replace(old.policy, temporary=None),)

    newer = raise_to(either, raised(*usd_limits(day=300), until=later + timedelta(hours=1)))
    assert not either.trim(old, later)
    assert path_of(either, "acme") == newer


def test_code_of_before_reads_and_writes_around_temporary_limits_and_admits_to_the_own_limit(either: Ledger) -> None:
    """Such code knows no attribute ``temporary``: what it reads is the policy without it, at the same revision."""
    opened(either, a_policy(limits=usd_limits(life=100)))
    (policy,) = raise_to(either, raised(*usd_limits(life=200)))
    as_read = (replace(policy, temporary=None),)

    reserve(either, as_read, 90, NOW)
    steps = reserve_steps(either.table, a_reservation(as_read, usd=11), as_read, evictions={})
    with pytest.raises(ConditionsFailed):
        transact(either.client, steps, name="an-old-call", timing=either.timing)

    # An apply of such code sets its attributes and no other.
    wider = replace(policy, default_output_tokens=9)
    update = Update(either.table, budget_key("acme")).set(policy_attributes(wider))
    update.equals("rev", policy.rev).set({"rev": policy.rev + 1})
    step = Step(write=update.write(), subject="budget", name="acme")
    transact(either.client, [step], name="an-old-apply", timing=either.timing)
    assert path_of(either, "acme") == (replace(wider, rev=policy.rev + 1),)


def test_an_item_without_the_attribute_has_no_temporary_limits(either: Ledger) -> None:
    opened(either, a_policy(limits=usd_limits(life=100)))

    assert "temporary" not in rows(either)["BUDGET#acme|BUDGET"]
    assert path_of(either, "acme")[0].temporary is None
