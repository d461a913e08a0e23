"""Runs: how long they may last, and what a key that is minted for one may do. It only ever narrows.

A run is a budget below another. What its calls took together is counted as a measure of its own: a call that is admitted
asks for one millisecond of it, so that nothing is admitted once it is used up, and is settled with what it took.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from spendgate.core.budget import BudgetPolicy, Limit, new_run
from spendgate.core.key import Key, allows
from spendgate.core.reservation import Reservation
from spendgate.core.window import ACTIVE, Measure, Window

# A minted key is for one task: it lives no longer than this where its policy says nothing.
KEY_LIFETIME_MAX: Final = timedelta(hours=24)
# An orchestrator of orchestrators of orchestrators: each level is one more budget in every transaction.
DELEGATE_DEPTH_MAX: Final = 3
# How many keys may be minted below one budget within an hour of the clock.
KEYS_PER_HOUR_MAX: Final = 1000
LIMITS_MAX: Final = 12

_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is asked of a new run. What is left out is as the policy gives it."""

    limits: tuple[Limit, ...] = ()
    expires_after: timedelta | None = None
    elapsed_max: timedelta | None = None
    models: tuple[str, ...] = ()
    delegate: int = 0


class TooWide(ValueError):
    """More is asked of a run than its policy gives; ``field`` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def active_limit(span: timedelta) -> Limit:
    """Return the limit on the time that a run's calls take together."""
    return Limit(measure=ACTIVE, window="life", maximum=span // _MILLISECOND)


def active_asked(path: Sequence[BudgetPolicy]) -> int:
    """Return what a call asks of the active time: as little as can be, where it counts at all."""
    return int(any(limit.measure == ACTIVE for policy in path for limit in policy.limits))


def active_milliseconds(reservation: Reservation, now: datetime) -> int:
    """Return how long a call took, where it counts."""
    if not reservation.asked.active_milliseconds:
        return 0
    return max((now - reservation.created_at) // _MILLISECOND, 1)


def minted_run(
    above: BudgetPolicy, path: str, asked: RunRequest, now: datetime, *, keys: Sequence[Key]
) -> tuple[BudgetPolicy, datetime]:
    """Return the policy of a run that a key is minted for, and when both expire; TooWide.

    ``keys`` is the key that mints, and every key above it.
    """
    runs = above.runs
    if runs is None or runs.delegate < 1:
        raise TooWide("run", f"budget {above.path} does not let its keys mint others")
    if asked.delegate >= runs.delegate:
        raise TooWide("delegate", f"the new key may mint keys {runs.delegate - 1} deep at most")
    for route in asked.models:
        if not all(allows(key, route) for key in keys):
            raise TooWide("models", f"the key that mints may not call {route!r} itself")
    given = replace(
        runs,
        limits=_narrowed(runs.limits, asked.limits),
        elapsed_max=_shorter(runs.elapsed_max, asked.elapsed_max, "elapsed_max"),
    )
    ends = now + (_shorter(runs.expire_after or KEY_LIFETIME_MAX, asked.expires_after, "expires_after") or timedelta(0))
    ends = min([ends, *(key.expires_at for key in keys if key.expires_at is not None)])
    if above.expires_at is not None:
        ends = min(ends, above.expires_at)
    # A key that may mint has nothing to give away but what it has.
    below = replace(given, delegate=asked.delegate) if asked.delegate else None
    policy = new_run(replace(above, runs=given), path, now)
    return replace(policy, rev=1, expires_at=ends, runs=below), ends


def _narrowed(given: Sequence[Limit], asked: Sequence[Limit]) -> tuple[Limit, ...]:
    limits: dict[tuple[Measure, Window], Limit] = {(one.measure, one.window): one for one in given}
    for limit in asked:
        pair = (limit.measure, limit.window)
        known = limits.get(pair)
        if known is not None and limit.maximum > known.maximum:
            raise TooWide(f"limits.{limit.measure}.{limit.window}", "more than the budget's policy gives to a run")
        limits[pair] = limit
    if len(limits) > LIMITS_MAX:
        raise TooWide("limits", f"a run has at most {LIMITS_MAX} limits, those of its policy among them")
    return tuple(limits[pair] for pair in sorted(limits))


def _shorter(given: timedelta | None, asked: timedelta | None, field: str) -> timedelta | None:
    if given is not None and asked is not None and asked > given:
        raise TooWide(field, "longer than the budget's policy gives to a run")
    return given if asked is None else asked
