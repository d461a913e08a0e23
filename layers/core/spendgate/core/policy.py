"""The policy decision: may a call reserve on a budget, and if not, why not.

``guards`` gives the conditions that the store evaluates inside the transaction; ``verdict`` reads the same limits
on a budget's state as the failed condition returned it, and says what the failure meant. Both are pure, and a
property holds them together: ``verdict`` admits exactly where all guards hold.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit, Stop
from spendgate.core.money import usd_text
from spendgate.core.window import (
    ACTIVE,
    BUCKET,
    HOUR,
    Measure,
    bucket_start,
    counter,
    is_bucket,
    outside_the_hour,
    resets_at,
)
from spendgate.errors import (
    BudgetBusy,
    BudgetStopped,
    OverBudget,
    RateLimited,
    RefusalFacts,
    Refused,
    RequestTooExpensive,
)

# Calls settle within seconds; a caller that comes back sooner finds the same reservations in the way.
BUSY_RETRY_SECONDS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A counter may be at most ``at_most`` before the call (that is: limit - asked), or be absent."""

    counter: str
    at_most: int


@dataclass(frozen=True, slots=True)
class Admitted:
    """Nothing of this budget stands in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedByEviction:
    """The hour has room once these buckets, which lie wholly outside it, are taken off: name to value."""

    buckets: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """A limit stands in the way. ``room`` is what is left of it; ``rooms`` what is left of every limit of the budget."""

    refusal: Refused
    limit: Limit | None = None
    room: int = 0
    rooms: tuple[tuple[Measure, int], ...] = ()


Verdict = Admitted | AdmittedByEviction | Denied


def guards(policy: BudgetPolicy, asked: Amounts, now: datetime) -> tuple[Guard, ...]:
    """Return what must hold of a budget's counters so that a call fits; none where the budget only observes.

    A limit that is smaller than what is asked has no guard: ``refusal_before`` has refused the call already.
    """
    if policy.mode == "observe":
        return ()
    return tuple(
        Guard(counter=counter(limit.measure, limit.window, now), at_most=limit.maximum - asked.of(limit.measure))
        for limit in policy.limits_at(now)
        if limit.window != "request"
    )


def refusal_before(policy: BudgetPolicy, asked: Amounts, now: datetime) -> Denied | None:
    """Return why a call can never fit a budget, whatever its counters say: a stop, an expired run, a size."""
    if policy.stop is not None:
        return Denied(refusal=_stopped(policy, policy.stop))
    if policy.expires_at is not None and now >= policy.expires_at:
        return Denied(refusal=_expired(policy, policy.expires_at))
    if policy.mode == "observe":
        return None
    limits = policy.limits_at(now)
    for limit in limits:
        if asked.of(limit.measure) > limit.maximum:
            # What is left is not known here, and can only be less than the limits themselves.
            rooms = tuple((one.measure, one.maximum) for one in limits)
            return Denied(refusal=_too_expensive(policy, limit, asked), limit=limit, room=limit.maximum, rooms=rooms)
    return None


def rooms_left(state: BudgetState, now: datetime) -> tuple[tuple[Measure, int], ...]:
    """Return what is left of every limit of a budget; nothing where it only observes."""
    if state.policy.mode == "observe":
        return ()
    limits = state.policy.limits_at(now)
    return tuple((limit.measure, max(limit.maximum - committed(state, limit, now), 0)) for limit in limits)


def verdict(state: BudgetState, asked: Amounts, now: datetime) -> Verdict:
    """Return what the state of a budget means for a call."""
    never = refusal_before(state.policy, asked, now)
    if never is not None:
        return never
    over = _elapsed(state, now)
    if over is not None:
        return Denied(refusal=over)
    if state.policy.mode == "observe":
        return Admitted()
    evicted: dict[str, int] = {}
    denials: list[Denied] = []
    for limit in state.policy.limits_at(now):
        if limit.window == "request":
            continue
        committed = state.counters.get(counter(limit.measure, limit.window, now), 0)
        if committed + asked.of(limit.measure) <= limit.maximum:
            continue
        old = _evictable(state, limit, now) if limit.window == "hour" else {}
        if old and committed - sum(old.values()) + asked.of(limit.measure) <= limit.maximum:
            evicted.update(old)
        else:
            denials.append(_denied(state, limit, committed - sum(old.values()), asked, now))
    if denials:
        first = min(denials, key=lambda denial: _ORDER.index(type(denial.refusal)))
        return replace(first, rooms=rooms_left(state, now))
    return AdmittedByEviction(buckets=evicted) if evicted else Admitted()


_ORDER: Final = (BudgetStopped, RequestTooExpensive, OverBudget, BudgetBusy, RateLimited)


def precedence(refusal: Refused) -> int:
    """Return a refusal's place in the documented order: of several, the lowest is answered."""
    return _ORDER.index(type(refusal))


def committed(state: BudgetState, limit: Limit, now: datetime) -> int:
    """Return what stands against a limit once old buckets are taken off its hour."""
    if limit.window == "request":
        return 0
    stands = state.counters.get(counter(limit.measure, limit.window, now), 0)
    return stands - sum(_evictable(state, limit, now).values()) if limit.window == "hour" else stands


def amount_text(measure: str, amount: int) -> str:
    """Return an amount of a measure as it stands on the wire: exact USD, or a whole number."""
    return usd_text(amount) if measure == "usd" else str(amount)


def limit_text(limit: Limit) -> str:
    """Return a limit in words: ``0.001 USD a day``."""
    if limit.measure == ACTIVE:
        return f"{limit.maximum} ms in which calls are in flight"
    unit = "USD" if limit.measure == "usd" else limit.measure.replace("_", " ")
    span = "in its lifetime" if limit.window == "life" else f"a {limit.window}" if limit.window != "hour" else "an hour"
    return f"{amount_text(limit.measure, limit.maximum)} {unit} {span}"


def _evictable(state: BudgetState, limit: Limit, now: datetime) -> dict[str, int]:
    names = [name for name in state.counters if is_bucket(name) and name.startswith(f"{limit.measure}.")]
    return {name: state.counters[name] for name in outside_the_hour(names, now)}


def _denied(state: BudgetState, limit: Limit, committed: int, asked: Amounts, now: datetime) -> Denied:
    size = asked.of(limit.measure)
    room = max(limit.maximum - committed, 0)
    resets = _hour_frees(state, limit, committed, size, now) if limit.window == "hour" else resets_at(limit.window, now)
    budget = state.policy.path
    left = f"budget {budget} has {amount_text(limit.measure, room)} left of {limit_text(limit)}"
    unit = "USD" if limit.measure == "usd" else limit.measure.replace("_", " ")
    need = f"this call may need {amount_text(limit.measure, size)} {unit}"
    if limit.measure != "usd" and limit.window == "minute":
        seconds = math.ceil(((resets or now) - now).total_seconds()) or 1
        facts = _facts(state, limit, committed, size, resets, next_action=f"wait {seconds} s for the next minute")
        return Denied(
            refusal=RateLimited(f"{left}; {need}", facts=facts, retry_after_seconds=seconds), limit=limit, room=room
        )
    in_flight = state.reserved - state.unknown
    if limit.measure == "usd" and committed - in_flight + size <= limit.maximum:
        facts = _facts(state, limit, committed, size, resets, next_action="retry when calls in flight have settled")
        busy = BudgetBusy(
            f"{left} while calls in flight hold {usd_text(in_flight)} USD; {need}",
            facts=facts,
            retry_after_seconds=BUSY_RETRY_SECONDS,
        )
        return Denied(refusal=busy, limit=limit, room=room)
    wait = f"wait until {_z(resets)}, or " if resets is not None else ""
    held = "" if not state.unknown else f" ({usd_text(state.unknown)} USD of it held for calls of unknown outcome)"
    facts = _facts(state, limit, committed, size, resets, next_action=f"{wait}ask for a higher limit on {budget}")
    return Denied(refusal=OverBudget(f"{left}{held}; {need}", facts=facts), limit=limit, room=room)


def _hour_frees(state: BudgetState, limit: Limit, committed: int, size: int, now: datetime) -> datetime | None:
    """Return when enough buckets have left the hour for a call of this size; None if reservations stand in the way."""
    inside = sorted(
        (bucket_start(name), value)
        for name, value in state.counters.items()
        if is_bucket(name) and name.startswith(f"{limit.measure}.") and bucket_start(name) + BUCKET > now - HOUR
    )
    for start, value in inside:
        committed -= value
        if committed + size <= limit.maximum:
            return start + BUCKET + HOUR
    return None


def _facts(
    state: BudgetState, limit: Limit, committed: int, size: int, resets: datetime | None, *, next_action: str
) -> RefusalFacts:
    money = limit.measure == "usd"
    # What is reserved is known for the whole budget only: of a window it is at most what is committed there.
    reserved = min(state.reserved, committed)
    return RefusalFacts(
        budget=state.policy.path,
        measure=limit.measure,
        window=limit.window,
        maximum=amount_text(limit.measure, limit.maximum),
        settled=amount_text(limit.measure, committed - reserved if money else committed),
        reserved=usd_text(reserved) if money else None,
        unknown=usd_text(min(state.unknown, reserved)) if money else None,
        asked=amount_text(limit.measure, size),
        resets_at=None if resets is None else _z(resets),
        next_action=next_action,
    )


def _too_expensive(policy: BudgetPolicy, limit: Limit, asked: Amounts) -> RequestTooExpensive:
    size = amount_text(limit.measure, asked.of(limit.measure))
    return RequestTooExpensive(
        f"this call may need {size}, more than budget {policy.path} ever allows: {limit_text(limit)}",
        facts=RefusalFacts(
            budget=policy.path,
            measure=limit.measure,
            window=limit.window,
            maximum=amount_text(limit.measure, limit.maximum),
            asked=size,
            next_action=f"ask for less, or for a higher limit on {policy.path}",
        ),
    )


def _stopped(policy: BudgetPolicy, stop: Stop) -> BudgetStopped:
    because = f" (reservation {stop.reservation})" if stop.reservation is not None else ""
    return BudgetStopped(
        f"budget {policy.path} was stopped at {_z(stop.at)} by {stop.by}: {stop.reason}{because}",
        facts=RefusalFacts(
            budget=policy.path,
            reservation=stop.reservation,
            next_action=f"an operator resumes it: spendgate resume {policy.path} --reason TEXT",
        ),
    )


def _expired(policy: BudgetPolicy, at: datetime) -> BudgetStopped:
    return BudgetStopped(
        f"run {policy.path} expired at {_z(at)}",
        facts=RefusalFacts(budget=policy.path, next_action="start a new run"),
    )


def _elapsed(state: BudgetState, now: datetime) -> BudgetStopped | None:
    """Return that a run has had its time since its first call."""
    policy, start = state.policy, state.started_at
    if policy.elapsed_max is None or start is None or now < start + policy.elapsed_max:
        return None
    return BudgetStopped(
        f"run {policy.path} has had its time: its first call was at {_z(start)}, and it may last "
        f"{int(policy.elapsed_max.total_seconds())} s",
        facts=RefusalFacts(budget=policy.path, next_action="start a new run"),
    )


def _z(at: datetime) -> str:
    """Return an instant to the second, rounded up, so that a caller who waits for it does not come too early."""
    if at.microsecond:
        at = at.replace(microsecond=0) + timedelta(seconds=1)
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
