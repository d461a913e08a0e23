"""Any history of calls, operators, faults and hours, against a model that only keeps a list and adds it up."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from spendgate.core.budget import BudgetPolicy, Limit, prefixes
from spendgate.core.reservation import Reservation, Resolution, State
from spendgate.core.window import bucket, bucket_start
from spendgate.errors import LedgerUnavailable, SettlementConflict, TransitionIllegal
from spendgate.store.ledger import Ledger, NotAdmitted, PolicyStale
from spendgate.store.tables import create_tables
from spendgate.store.transact import Timing
from tests.store.builders import (
    CHARGED,
    RELEASED,
    UNKNOWN,
    a_policy,
    a_reservation,
    a_stop,
    an_event,
    assert_conserved,
    path_of,
    rows,
    settled,
    usd_limits,
)
from tests.store.faults import CONFLICT, MIXED_CONFLICT, SERVER_ERROR, THROTTLED, FakeTime, faults, passing, unreachable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Trouble = Literal["none", "conflicts", "answer lost", "unreachable", "applied, never answered"]

# Shortly before midnight and the month's end, so that both come early in a history.
START: Final = datetime.fromisoformat("2026-11-30T23:40:00+00:00")
LEAVES: Final = ("a/b", "a/c", "a/c/d")
ROOMY, TIGHT = 400, 150


@dataclass(slots=True)
class Call:
    """What the model knows of a reservation: what is counted for it, and what its provider billed."""

    reservation: Reservation
    state: State = "in_flight"
    actual: int = 0
    billed: int = 0

    @property
    def open(self) -> bool:
        return self.state in ("in_flight", "unknown")

    @property
    def counted(self) -> int:
        return self.reservation.asked.usd if self.open else self.actual


@dataclass(slots=True)
class Model:
    """A list of calls; every question is answered by adding them up."""

    limits: dict[str, dict[str, int]]
    observed: set[str]
    calls: list[Call] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)
    # A limit that shrank, or a bill above its bound: here alone more may be committed than the limit says.
    excused: set[str] = field(default_factory=set)

    def on(self, budget: str) -> list[Call]:
        return [call for call in self.calls if budget in prefixes(call.reservation.path)]

    def committed(self, budget: str, window: str, now: datetime) -> int:
        return sum(call.counted for call in self.on(budget) if self._is_in(call, window, now))

    def _is_in(self, call: Call, window: str, now: datetime) -> bool:
        at = call.reservation.created_at
        match window:
            case "day":
                return at.date() == now.date()
            case "month":
                return (at.year, at.month) == (now.year, now.month)
            case "hour":
                end = bucket_start(bucket("usd", at)) + timedelta(minutes=5)
                return call.open or end > now - timedelta(hours=1)
            case _:
                return True

    def admits(self, leaf: str, usd: int, now: datetime) -> bool:
        for budget in prefixes(leaf):
            if budget in self.stopped:
                return False
            if budget in self.observed:
                continue
            for window, maximum in self.limits[budget].items():
                if self.committed(budget, window, now) + usd > maximum:
                    return False
        return True


class Histories(RuleBasedStateMachine):
    """The ledger and the model, step by step."""

    def __init__(self, client: DynamoDBClient) -> None:
        super().__init__()
        self.time = FakeTime()
        timing = Timing(
            monotonic=self.time.monotonic,
            sleep=self.time.sleep,
            random=self.time.random,
            randomness=secrets.token_bytes,
            deadline_seconds=2.0,
        )
        self.ledger = Ledger(f"ledger-{secrets.token_hex(6)}", client, timing)
        create_tables(client, ledger=self.ledger.table, config=f"{self.ledger.table}-config")
        self.now = START
        self.held_before: dict[str, int] = {}
        limits = {
            "a": {"day": ROOMY, "month": ROOMY + 200},
            "a/b": {"hour": TIGHT, "day": ROOMY},
            "a/c": {"life": ROOMY},
            "a/c/d": {"hour": ROOMY, "day": TIGHT},
        }
        self.model = Model(limits=limits, observed={"a/c"})

    @initialize()
    def open_budgets(self) -> None:
        for path, maximums in self.model.limits.items():
            policy = a_policy(
                path,
                limits=usd_limits(**maximums),
                mode="observe" if path in self.model.observed else "enforce",
                stop_on_unknown=path == "a/c/d",
            )
            self.ledger.put_budget(policy, expected_rev=None, now=self.now)
        self.stale = {leaf: path_of(self.ledger, leaf) for leaf in LEAVES}

    @contextmanager
    def trouble(self, kind: Trouble) -> Iterator[None]:
        with faults(self.ledger.client) as layer:
            match kind:
                case "conflicts":
                    layer.meet(CONFLICT, MIXED_CONFLICT, THROTTLED, SERVER_ERROR)
                case "answer lost":
                    layer.lose_answer()
                case "unreachable":
                    layer.always = unreachable
                case "applied, never answered":
                    layer.lose_answer()
                    layer.meet(passing)
                    layer.always = unreachable
            yield

    troubles = st.sampled_from(
        ["none", "none", "none", "conflicts", "answer lost", "unreachable", "applied, never answered"]
    )

    @rule(
        leaf=st.sampled_from(LEAVES),
        usd=st.sampled_from([0, 1, 30, 50, 75, TIGHT, TIGHT + 1, ROOMY]),
        stale=st.booleans(),
        kind=troubles,
    )
    def reserve(self, leaf: str, usd: int, stale: bool, kind: Trouble) -> None:
        path = self.stale[leaf] if stale else path_of(self.ledger, leaf)
        call = Call(a_reservation(path, usd=usd, now=self.now))
        fits = self.model.admits(leaf, usd, self.now)
        with self.trouble(kind):
            outcome = self._reserve(call.reservation, path)
        if outcome == "stale":
            self.stale[leaf] = path_of(self.ledger, leaf)
            with self.trouble(kind):
                call = Call(a_reservation(self.stale[leaf], usd=usd, now=self.now))
                outcome = self._reserve(call.reservation, self.stale[leaf])
        if outcome == "unavailable":
            assert kind in ("unreachable", "applied, never answered")
            if self.ledger.reservation(call.reservation.id) is None:
                return
            assert kind == "applied, never answered"
        elif outcome == "refused":
            # An old policy may refuse by itself; a current one only where nothing fits.
            assert not fits or path != path_of(self.ledger, leaf)
            return
        assert fits
        self.model.calls.append(call)

    def _reserve(self, reservation: Reservation, path: tuple[BudgetPolicy, ...]) -> str:
        try:
            self.ledger.reserve(reservation, path, self.now)
        except LedgerUnavailable:
            return "unavailable"
        except PolicyStale:
            return "stale"
        except NotAdmitted:
            return "refused"
        return "admitted"

    @precondition(lambda self: self.model.calls)
    @rule(
        data=st.data(),
        state=st.sampled_from(["settled", "settled", "settled", "released", "charged", "unknown"]),
        part=st.sampled_from([0, 1, 2, 3, 4, 4, 5]),
        informed=st.booleans(),
        kind=troubles,
    )
    def resolve(self, data: st.DataObject, state: State, part: int, informed: bool, kind: Trouble) -> None:
        # Later calls are the more likely ones to be open.
        calls = self.model.calls
        call = calls[-1 - data.draw(st.integers(0, min(5, len(calls) - 1)), label="how long ago")]
        asked = call.reservation.asked.usd
        actual = {"settled": asked * part // 4, "charged": asked}.get(state, 0)
        resolution: Resolution = {
            "settled": settled(actual),
            "released": RELEASED,
            "charged": CHARGED,
            "unknown": UNKNOWN,
        }[state]
        leaf = call.reservation.path
        known = None if informed else call.reservation
        with self.trouble(kind):
            outcome = self._resolve(call.reservation.id, resolution, known)
        if outcome == "unavailable":
            assert kind in ("unreachable", "applied, never answered")
            found = self.ledger.reservation(call.reservation.id)
            assert found is not None
            if found.state == call.state:
                self._learn_stop(leaf)
                return
        elif outcome in ("conflict", "illegal"):
            assert not call.open
            assert (call.state, call.actual) != (state, actual) or asked == 0
            assert (outcome == "conflict") == (state == "settled")
            if outcome == "conflict":
                self.model.stopped.add(leaf)
            return
        if state == "unknown":
            if call.state == "in_flight":
                call.state = state
                self.model.stopped |= {path for path in prefixes(leaf) if path == "a/c/d"}
        elif call.open:
            call.state, call.actual = state, actual
            call.billed = actual if state == "settled" else 0
            if actual > asked:
                self.model.stopped.add(leaf)
                self.model.excused |= set(prefixes(leaf))
        else:
            assert (call.state, call.actual) == (state, actual)

    def _learn_stop(self, leaf: str) -> None:
        """A conflict that was found, whose stop may have been written and not answered."""
        if path_of(self.ledger, leaf)[-1].stop is not None:
            self.model.stopped.add(leaf)

    def _resolve(self, reservation_id: str, resolution: Resolution, known: Reservation | None) -> str:
        try:
            self.ledger.resolve(reservation_id, resolution, self.now, known=known)
        except LedgerUnavailable:
            return "unavailable"
        except SettlementConflict:
            return "conflict"
        except TransitionIllegal:
            return "illegal"
        return "done"

    @rule(budget=st.sampled_from(["a", *LEAVES]))
    def stop(self, budget: str) -> None:
        self.ledger.stop(budget, a_stop(at=self.now), an_event(at=self.now))
        self.model.stopped.add(budget)

    @precondition(lambda self: self.model.stopped)
    @rule()
    def resume(self) -> None:
        for budget in sorted(self.model.stopped):
            self.ledger.resume(budget, an_event(at=self.now))
        self.model.stopped.clear()

    @rule(budget=st.sampled_from(["a", *LEAVES]), percent=st.sampled_from([0, 50, 120, 300]), kind=troubles)
    def change_limits(self, budget: str, percent: int, kind: Trouble) -> None:
        state = self.ledger.budget(budget)
        assert state is not None
        changed = tuple(
            Limit(measure="usd", window=limit.window, maximum=limit.maximum * percent // 100 + 20)
            for limit in state.policy.limits
        )
        try:
            with self.trouble(kind):
                self.ledger.put_budget(
                    replace(state.policy, limits=changed), expected_rev=state.policy.rev, now=self.now
                )
        except LedgerUnavailable:
            after = self.ledger.budget(budget)
            assert after is not None
            if after.policy.rev == state.policy.rev:
                return
        self.model.limits[budget] = {limit.window: limit.maximum for limit in changed}
        if percent < 100:
            self.model.excused.add(budget)

    @rule(minutes=st.sampled_from([1, 4, 5, 30, 65, 60 * 24]))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(kind=troubles)
    def trim(self, kind: Trouble) -> None:
        for state in self.ledger.budgets():
            try:
                with self.trouble(kind):
                    self.ledger.trim(state, self.now)
            except LedgerUnavailable:
                assert kind in ("unreachable", "applied, never answered")

    @invariant()
    def every_counter_is_the_models_sum(self) -> None:
        for state in self.ledger.budgets_on(("a", *LEAVES)):
            budget = state.policy.path
            calls = self.model.on(budget)
            # G5: what is held is what is asked by all that is not resolved.
            assert state.reserved == sum(call.counted for call in calls if call.open)
            assert state.unknown == sum(call.counted for call in calls if call.state == "unknown")
            for window, name in (("life", "usd.life"), ("day", f"usd.day.{self.now:%Y-%m-%d}")):
                assert state.counters.get(name, 0) == self.model.committed(budget, window, self.now)
            # The hour may hold what has left it, and never less than what is in it.
            if "hour" in self.model.limits[budget]:
                assert state.counters.get("usd.hour", 0) >= self.model.committed(budget, "hour", self.now)
            # G8: what is settled and reserved covers all that was billed.
            assert state.counters.get("usd.life", 0) >= sum(call.billed for call in calls)
            assert (state.policy.stop is not None) == (budget in self.model.stopped)
            # G1: at every instant, in every window.
            if budget not in self.model.excused | self.model.observed:
                for window, maximum in self.model.limits[budget].items():
                    assert self.model.committed(budget, window, self.now) <= maximum

    def teardown(self) -> None:
        if not rows(self.ledger):
            return
        assert_conserved(self.ledger, self.now)
        for call in self.model.calls:
            record = self.ledger.reservation(call.reservation.id)
            assert record is not None
            assert (record.state, record.actual.usd if record.actual else 0) == (call.state, call.actual)


def test_no_history_breaks_a_limit_frees_held_money_or_loses_count(store_client: DynamoDBClient) -> None:
    class OnMiniStack(Histories):
        def __init__(self) -> None:
            super().__init__(store_client)

    run_state_machine_as_test(
        OnMiniStack,
        settings=settings(
            max_examples=12,
            stateful_step_count=30,
            deadline=None,
            database=None,
            # A shrunk history reads better, but each try is a minute of a store's time: the steps are printed as they are.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
