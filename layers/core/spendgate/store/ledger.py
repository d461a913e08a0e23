"""The ledger: the only writer of money.

Every method is one transaction (or reads), given its time by the caller. Conditions inside the transaction are the
only judge; what is read before or after decides nothing but how a refusal is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from spendgate.core import alert
from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Stop, owner
from spendgate.core.event import Event
from spendgate.core.policy import AdmittedByEviction, Denied, refusal_before, verdict
from spendgate.core.reservation import Reservation, Resolution, may_follow
from spendgate.core.route import Candidate
from spendgate.core.window import is_bucket, is_past, outside_the_hour
from spendgate.errors import (
    BudgetMissing,
    DuplicateRequest,
    LedgerError,
    LedgerUnavailable,
    RefusalFacts,
    RequestConflict,
    ReservationMissing,
    SettlementConflict,
    TransitionIllegal,
)
from spendgate.store import events, items
from spendgate.store.alerts import told_steps
from spendgate.store.budgets import Budgets
from spendgate.store.transact import ConditionsFailed, Failed, update
from spendgate.store.transactions import (
    EVICTIONS_MAX,
    latch_step,
    put_off_step,
    reserve_steps,
    resolve_steps,
    resolved_amounts,
    shown_step,
    trim_steps,
    unknown_steps,
)
from spendgate.store.write import Step

# A condition that fails on what has changed meanwhile is tried again on what was read; each try learns something new.
RESERVE_TRIES_MAX: Final = 12
RESOLVE_TRIES_MAX: Final = 4
# Clocks of functions differ a little; a period's counter stays a while after its end.
_KEEP_PAST: Final = timedelta(minutes=5)


class PolicyStale(LedgerError):
    """Budgets of the path have another revision than the caller holds; ``states`` are what stands in the ledger."""

    def __init__(self, states: Sequence[BudgetState], missing: Sequence[str] = ()) -> None:
        super().__init__("a policy changed")
        self.states = tuple(states)
        self.missing = tuple(missing)


class NotAdmitted(LedgerError):
    """Limits stand in the way, in the order of the path; ``denials`` is never empty.

    ``seen`` tells that the ledger itself said so, and not only the policies that the caller holds.
    """

    def __init__(self, denials: Sequence[Denied], *, seen: bool) -> None:
        super().__init__("a limit stands in the way")
        self.denials = tuple(denials)
        self.seen = seen


class Ledger(Budgets):
    """Budgets and reservations in one DynamoDB table."""

    __slots__ = ()

    # -- the life of a call ------------------------------------------------------------------------------------------

    def reserve(self, reservation: Reservation, path: Sequence[BudgetPolicy], now: datetime) -> None:
        """Reserve on every budget of ``path`` (root first) in one transaction, or on none.

        The windows are those that contain ``created_at``, which the reservation's counters are named by.
        NotAdmitted, PolicyStale, DuplicateRequest, RequestConflict, or LedgerUnavailable (nothing may be sent then).
        """
        never = [denied for policy in path if (denied := refusal_before(policy, reservation.asked, now)) is not None]
        if never:
            # Also what keeps a guard from being negative: a counter that has not begun would pass it.
            raise NotAdmitted(never, seen=False)
        evictions: Mapping[str, Mapping[str, int]] = {}
        for _ in range(RESERVE_TRIES_MAX):
            steps = reserve_steps(self.table, reservation, path, evictions=evictions)
            try:
                self._transact(steps, reservation.id)
            except ConditionsFailed as conditions:
                if self._is_applied(conditions.failed):
                    return
                # A budget that did not object keeps its eviction: its hour is still in the way.
                objecting = {one.step.name for one in conditions.failed}
                kept = {name: buckets for name, buckets in evictions.items() if name not in objecting}
                evictions = {**kept, **dict(self._read_failure(conditions.failed, reservation, path))}
            else:
                return
        raise LedgerUnavailable("the budget changes faster than a call can reserve on it", retry_after_seconds=1)

    def resolve(
        self,
        reservation_id: str,
        resolution: Resolution,
        now: datetime,
        *,
        event: Event | None = None,
        known: Reservation | None = None,
    ) -> Reservation:
        """Change a reservation's state and every counter that it holds; return it as it then is.

        The same resolution again is a no-op. Another one is TransitionIllegal, and for a settlement that no operator
        asks for (no ``event``) SettlementConflict, which stops the leaf budget. ``known`` saves the read.
        """
        reservation = known or self.reservation(reservation_id)
        if reservation is None:
            raise ReservationMissing(f"there is no reservation {reservation_id}")
        for _ in range(RESOLVE_TRIES_MAX):
            if not may_follow(reservation.state, resolution.state):
                return self._already(reservation, resolution, now, stops=event is None)
            steps = self._resolution_steps(reservation, resolution, now)
            if event is not None:
                steps.append(events.event_step(self.table, event, self.timing.randomness(10)))
            try:
                self._transact(steps, reservation.id)
            except ConditionsFailed as conditions:
                reservation = self._current(conditions.failed, reservation.id)
            else:
                return _resolved(reservation, resolution, now)
        raise LedgerUnavailable("the reservation changes faster than it can be resolved", retry_after_seconds=1)

    def show(self, reservation: Reservation, candidate: Candidate, response_id: str) -> bool:
        """Keep the provider's id of an answer that still comes; False where the call has ended meanwhile.

        LedgerUnavailable at once: it is tried once only, since a settlement may wait for its turn behind it.
        """
        once = replace(self.timing, deadline_seconds=0)
        return update(self.client, shown_step(self.table, reservation, candidate, response_id), once)

    def put_off(self, reservation_id: str, until: datetime, now: datetime) -> bool:
        """Have an unknown reservation looked at again at ``until``; False where it has ended, or another did so."""
        return update(self.client, put_off_step(self.table, reservation_id, until, now), self.timing)

    # -- the sweeper -------------------------------------------------------------------------------------------------

    def trim(self, state: BudgetState, now: datetime) -> bool:
        """Evict old hour buckets, remove the counters of past periods and limits that have ended; False if there was
        nothing, or it moved.

        A transaction takes so many and no more; a budget that was left alone for days takes several.
        """
        hour: dict[str, dict[str, int]] = {}
        for name in sorted(outside_the_hour(state.counters, now))[:EVICTIONS_MAX]:
            hour.setdefault(name.rpartition(".")[0], {})[name] = state.counters[name]
        past = [name for name in state.counters if not is_bucket(name) and is_past(name, now - _KEEP_PAST)]
        past = past[:EVICTIONS_MAX]
        policy = state.policy
        ended = policy.temporary is not None and policy.temporary.until <= now - _KEEP_PAST
        if not hour and not past and not ended:
            return False
        steps = trim_steps(self.table, policy.path, hour, past, ended_at_rev=policy.rev if ended else None)
        try:
            self._transact(steps, self._name())
        except ConditionsFailed:
            return False
        return True

    # -- within ------------------------------------------------------------------------------------------------------

    def _is_applied(self, failed: Sequence[Failed]) -> bool:
        """Tell whether the reservation is there: ids are random, so it is ours, and its answer was lost."""
        return any(one.step.subject == "reservation" for one in failed)

    def _read_failure(
        self, failed: Sequence[Failed], reservation: Reservation, path: Sequence[BudgetPolicy]
    ) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Return the evictions that make room; NotAdmitted, PolicyStale or a refusal where nothing does."""
        at = reservation.created_at
        for one in failed:
            if one.step.subject == "idempotency":
                raise self._repeated(one.item or {}, reservation)
        held = {policy.path: policy.rev for policy in path}
        missing = [one.step.name for one in failed if one.item is None]
        states = [items.decode_budget(one.item) for one in failed if one.item is not None]
        stale = [state for state in states if state.policy.rev != held[state.policy.path]]
        if stale or missing:
            raise PolicyStale(stale, missing)
        verdicts = [(state, verdict(state, reservation.asked, at)) for state in states]
        denials = [result for _, result in verdicts if isinstance(result, Denied)]
        if denials:
            raise NotAdmitted(denials, seen=True)
        return (
            (state.policy.path, result.buckets)
            for state, result in verdicts
            if isinstance(result, AdmittedByEviction) and self._is_evictable_at_once(state, result, at)
        )

    def _is_evictable_at_once(self, state: BudgetState, result: AdmittedByEviction, now: datetime) -> bool:
        """Tell whether one transaction can take so many buckets off; else take some, and the next try sees the rest."""
        if len(result.buckets) <= EVICTIONS_MAX:
            return True
        self.trim(state, now)
        return False

    def _repeated(self, claim: Mapping[str, Any], reservation: Reservation) -> DuplicateRequest | RequestConflict:
        earlier_id = claim.get("reservation", "")
        key = reservation.idempotency_key
        if claim.get("fingerprint") != reservation.fingerprint:
            return RequestConflict(
                f"idempotency key {key!r} was used for another request; a new request needs a new key",
                facts=RefusalFacts(reservation=earlier_id, next_action="send a new idempotency key"),
            )
        earlier = self.reservation(earlier_id)
        state = None if earlier is None else earlier.state
        return DuplicateRequest(
            f"this request was admitted before as reservation {earlier_id}, now {state}; it is not sent twice",
            facts=RefusalFacts(
                reservation=earlier_id, state=state, next_action=f"look at /v1/reservations/{earlier_id}"
            ),
        )

    def _resolution_steps(self, reservation: Reservation, resolution: Resolution, now: datetime) -> list[Step]:
        if resolution.state == "unknown":
            return unknown_steps(self.table, reservation, resolution, now)
        return resolve_steps(self.table, reservation, resolution, now, expected=reservation.state)

    def _current(self, failed: Sequence[Failed], reservation_id: str) -> Reservation:
        for one in failed:
            if one.step.subject == "reservation":
                if one.item is None:
                    raise ReservationMissing(f"there is no reservation {reservation_id}")
                return items.decode_reservation(one.item)
        names = ", ".join(f"{one.step.subject} {one.step.name}" for one in failed)
        raise BudgetMissing(f"reservation {reservation_id} cannot be resolved: {names} is gone")

    def _already(self, reservation: Reservation, resolution: Resolution, now: datetime, *, stops: bool) -> Reservation:
        """Say what a resolution means for a reservation that is past it."""
        if resolution.state == "unknown":
            # Resolved, or marked already: either says at least as much.
            return reservation
        if reservation.state == resolution.state and _is_same(
            reservation.actual, resolved_amounts(reservation, resolution)
        ):
            return reservation
        if resolution.state != "settled" or not stops:
            raise TransitionIllegal(f"reservation {reservation.id} is {reservation.state} already")
        reason = f"reservation {reservation.id} was {reservation.state} and then settled with another amount"
        self._stop_for_conflict(
            reservation.path, Stop(reason=reason, at=now, by="spendgate", reservation=reservation.id)
        )
        raise SettlementConflict(reason)

    def _stop_for_conflict(self, path: str, stop: Stop) -> None:
        if owner(path) == path:
            # Whoever tells people reads every budget.
            self.stop(path, stop)
            return
        # Nobody reads every run: what is to be told of it is written with its stop, or never again.
        told = told_steps(self.table, alert.stopped(path, stop, stop.at))
        try:
            self._transact([latch_step(self.table, path, stop), *told], self._name())
        except ConditionsFailed:
            # It is stopped already.
            return


def _is_same(actual: Amounts | None, again: Amounts) -> bool:
    """Tell whether two settlements say the same; how long the call took is what one of them may not know."""
    return actual is not None and replace(actual, active_milliseconds=again.active_milliseconds) == again


def _resolved(reservation: Reservation, resolution: Resolution, now: datetime) -> Reservation:
    changed = replace(
        reservation,
        state=resolution.state,
        reason=resolution.reason,
        usage=resolution.usage or reservation.usage,
        provider=resolution.provider or reservation.provider,
        model=resolution.model or reservation.model,
        response_model=resolution.response_model or reservation.response_model,
        response_id=resolution.response_id or reservation.response_id,
        evidence=resolution.evidence or reservation.evidence,
        by=resolution.by or reservation.by,
    )
    if resolution.state == "unknown":
        return changed
    return replace(changed, actual=resolved_amounts(reservation, resolution), resolved_at=now)
