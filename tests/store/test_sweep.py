"""The sweeper: what it asks providers about, what it puts off, and that nothing old keeps it from what is new."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.asking import Asking
from spendgate.core.bound import Quote
from spendgate.core.budget import BudgetPolicy
from spendgate.core.price import Terms
from spendgate.core.reservation import Reservation, Resolution
from spendgate.core.route import Candidate, Provider
from spendgate.core.usage import Usage, UsageReport
from spendgate.errors import LedgerUnavailable
from spendgate.providers.recovery import Recovered
from spendgate.store.ledger import Ledger
from spendgate.sweep import OVERDUE, PUT_OFF, WAITING_MAX, Swept, next_ask, sweep
from tests.builders import a_provider
from tests.store.builders import (
    NOW,
    UNKNOWN,
    a_policy,
    a_reservation,
    a_row,
    assert_conserved,
    counters,
    opened,
    settled,
)

OPENAI = a_provider(name="openai", base_url="https://api.openai.com/v1", secret="env:K")
QUOTE = Quote(candidate=Candidate(provider="openai", model="house"), rows=(a_row(),), terms=Terms())
SHOWN = Resolution(state="unknown", reason="cut", provider="openai", model="house", response_id="resp_1")
USED = UsageReport(usage=Usage(output=7), finished=True, response_id="resp_1")
NOTHING = Recovered(report=None, said="answered 404")
PROVEN = Recovered(report=USED, said="the provider's own record")
MINUTE = timedelta(minutes=1)


@dataclass
class Records:
    """Providers that show the same record of every answer, and count who is asked about."""

    shown: Recovered | LedgerUnavailable = NOTHING
    asked: list[str] = field(default_factory=list)

    def asking(self) -> Asking:
        return Asking({"openai": OPENAI}.get, self._recover, "sweeper")

    def _recover(self, provider: Provider, reservation: Reservation) -> Recovered:
        self.asked.append(reservation.id)
        if isinstance(self.shown, LedgerUnavailable):
            raise self.shown
        return self.shown


@pytest.fixture
def ledger(on_ministack: Ledger) -> Ledger:
    """A ledger for many writes."""
    return on_ministack


def lost(
    ledger: Ledger, path: tuple[BudgetPolicy, ...], how: Resolution = SHOWN, *, now: datetime = NOW
) -> Reservation:
    """Lose a call: its deadline passes with its outcome unknown."""
    one = a_reservation(path, now=now, dialect="openai-responses", quotes=(QUOTE,))
    ledger.reserve(one, path, now)
    return ledger.resolve(one.id, how, now)


def state_of(ledger: Ledger, one: Reservation) -> str:
    found = ledger.reservation(one.id)
    assert found is not None
    return found.state


def test_what_a_provider_can_prove_is_settled_by_its_own_word_and_stands_in_the_trail(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    one, records = lost(ledger, path), Records(PROVEN)

    assert sweep(ledger, one.deadline, asking=records.asking()) == Swept(unknown=0, charged=0, asked=1, proven=1)

    found = ledger.reservation(one.id)
    assert found is not None
    assert found.actual is not None
    assert (found.state, found.actual.usd, found.by) == ("settled", 7, "sweeper")
    (event,) = ledger.events(f"{one.deadline:%Y-%m-%d}")
    assert (event.kind, event.subject, event.by) == ("reservation_settled", one.id, "sweeper")
    assert counters(ledger, "acme")["usd.life"] == 7
    assert_conserved(ledger, one.deadline)


def test_where_nothing_is_proven_it_asks_less_and_less_often_and_charges_at_last(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    one, records = lost(ledger, path), Records()
    seen: list[int] = []
    for minute in (0, 1, 2, 4, 5, 6, 29, 30, 31, 89, 90, 91, 149, 150, 209, 210, 240):
        now = one.deadline + minute * MINUTE
        swept = sweep(ledger, now, asking=records.asking(), charge_after=timedelta(hours=4))
        seen += [minute] * swept.asked
    assert seen == [0, 1, 5, 30, 90, 150, 210]
    assert state_of(ledger, one) == "unknown"

    last = one.deadline + timedelta(hours=4, minutes=30)
    assert sweep(ledger, last, asking=records.asking(), charge_after=timedelta(hours=4)).charged == 1
    assert len(records.asked) == 8
    assert_conserved(ledger, last)


@given(minutes=st.integers(min_value=0, max_value=100_000))
def test_the_next_question_lies_ahead_and_no_more_than_an_hour(minutes: int) -> None:
    now = NOW + timedelta(minutes=minutes)
    assert now < next_ask(NOW, now) <= now + timedelta(hours=1)


def test_of_two_sweepers_one_asks(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    one, other = lost(ledger, path), Records(PROVEN)

    class Overlapped(Records):
        def _recover(self, provider: Provider, reservation: Reservation) -> Recovered:
            sweep(ledger, one.deadline, asking=other.asking())
            return super()._recover(provider, reservation)

    first = Overlapped(PROVEN)
    assert sweep(ledger, one.deadline, asking=first.asking()).proven == 1
    assert (first.asked, other.asked) == ([one.id], [])
    assert_conserved(ledger, one.deadline)


def test_what_a_person_has_ended_meanwhile_stays_and_stops_nothing(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    one = lost(ledger, path)

    class Overtaken(Records):
        def _recover(self, provider: Provider, reservation: Reservation) -> Recovered:
            ledger.resolve(one.id, settled(3), one.deadline)
            return super()._recover(provider, reservation)

    assert sweep(ledger, one.deadline, asking=Overtaken(PROVEN).asking()).proven == 0
    budget = ledger.budget("acme")
    assert budget is not None
    assert budget.policy.stop is None
    assert counters(ledger, "acme")["usd.life"] == 3


def test_a_secret_that_cannot_be_read_proves_nothing_and_keeps_nobody_waiting(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    one, other = lost(ledger, path), lost(ledger, path)
    records = Records(LedgerUnavailable("no secret", retry_after_seconds=1))
    assert sweep(ledger, one.deadline, asking=records.asking()).asked == 2
    assert sorted(records.asked) == sorted([one.id, other.id])
    assert {state_of(ledger, one), state_of(ledger, other)} == {"unknown"}


@pytest.mark.parametrize("how", [UNKNOWN, Resolution(state="unknown", reason="cut", provider="gone", response_id="r")])
def test_what_nobody_can_prove_is_asked_of_nobody(ledger: Ledger, how: Resolution) -> None:
    path = opened(ledger, a_policy())
    one, records = lost(ledger, path, how), Records()
    assert sweep(ledger, one.deadline, asking=records.asking()) == Swept(unknown=0, charged=0)
    assert ledger.overdue(one.deadline + MINUTE, limit=9) == ()
    assert not records.asked


def test_unknown_ones_that_wait_do_not_keep_newer_calls_from_their_deadline(ledger: Ledger) -> None:
    """However many wait for their charge: with one place in each partition each run reaches the next."""
    path = opened(ledger, a_policy())
    old = [lost(ledger, path, UNKNOWN) for _ in range(40)]
    newer = a_reservation(path, now=NOW + MINUTE)
    ledger.reserve(newer, path, NOW + MINUTE)
    for _ in range(len(old) + 1):
        sweep(ledger, newer.deadline, batch_max=1)
    found = ledger.reservation(newer.id)
    assert found is not None
    assert (found.state, found.reason) == ("unknown", OVERDUE)
    assert {state_of(ledger, one) for one in old} == {"unknown"}
    assert ledger.oldest_unknown(looked_at_max=100) == ledger.reservation(old[0].id)

    charged = old[0].deadline + timedelta(hours=72)
    for _ in range(len(old)):
        sweep(ledger, charged, batch_max=1)
    assert {state_of(ledger, one) for one in old} == {"charged"}
    assert_conserved(ledger, charged)


def test_a_run_asks_about_so_many_and_lets_no_more_than_some_wait(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    crowd = [lost(ledger, path) for _ in range(WAITING_MAX + 5)]
    now, records = crowd[0].deadline, Records()
    assert sweep(ledger, now, asking=records.asking(), asks_max=2).asked == 2
    waiting = ledger.overdue(now, limit=100)
    assert len(waiting) == WAITING_MAX
    assert not set(records.asked) & set(waiting)
    assert len(ledger.overdue(now + PUT_OFF, limit=100)) == len(crowd)


def test_a_time_after_which_it_is_charged_that_becomes_shorter_counts_within_a_day(ledger: Ledger) -> None:
    path = opened(ledger, a_policy())
    one = lost(ledger, path, UNKNOWN)
    sweep(ledger, one.deadline)
    later = one.deadline + timedelta(hours=24)
    assert sweep(ledger, later, charge_after=timedelta(hours=1)).charged == 1
