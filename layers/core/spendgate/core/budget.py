"""Budgets: nodes of a tree, named by their path; a call counts on every prefix of its path."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from spendgate.core.window import Measure, Window

Mode = Literal["enforce", "observe"]

PATH_DEPTH_MAX: Final = 8
PATH_LENGTH_MAX: Final = 256
RUN_PREFIX: Final = "run:"

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most of a measure in a window: picodollars for ``usd``, else a count. Zero denies; no Limit means none."""

    measure: Measure
    window: Window
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """What a budget gives to each run below it."""

    limits: tuple[Limit, ...] = ()
    expire_after: timedelta | None = None
    stop_on_unknown: bool = False
    # Since the first call; the time that calls took together is a limit like others: core/run.active_limit.
    elapsed_max: timedelta | None = None
    # A run that its own limits have refused makes no smaller call either.
    stop_on_refusal: bool = False
    # How deep keys may be minted below: 0 not at all, 1 by the budget's own keys, 2 by keys that these have minted.
    delegate: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A latch: no paid dispatch below this budget until an operator resumes it."""

    reason: str
    at: datetime
    by: str
    reservation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryLimits:
    """Higher maximums for some of a budget's own limits, which end by themselves: ``until`` is the first instant without.

    Nobody has to take them away: whoever judges a call reads its time, so a policy that was remembered ends with them, too.
    They only ever raise, so that code that does not know of them spends less and never more.
    """

    limits: tuple[Limit, ...]
    until: datetime
    at: datetime
    by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPolicy:
    """The policy part of a budget at one revision.

    ``rev`` is 0 for a run that has no item yet. ``expires_at`` is set on runs only: after it no call is admitted.
    """

    path: str
    rev: int
    limits: tuple[Limit, ...] = ()
    mode: Mode = "enforce"
    unbudgeted: bool = False
    default_output_tokens: int | None = None
    failover: bool = False
    runs: RunPolicy | None = None
    stop_on_unknown: bool = False
    # (feature, uses a call) of what may run at the provider: core/feature.FEATURES.
    allow: tuple[tuple[str, int], ...] = ()
    # At which percentages of its limits to warn; none warns of nothing, and None is as the budget above says.
    warn_at: tuple[int, ...] | None = None
    expires_at: datetime | None = None
    stop: Stop | None = None
    # Of runs only, as expires_at is.
    elapsed_max: timedelta | None = None
    stop_on_refusal: bool = False
    temporary: TemporaryLimits | None = None

    def temporary_at(self, now: datetime) -> TemporaryLimits | None:
        """Return the temporary limits that are in force at an instant."""
        return self.temporary if self.temporary is not None and now < self.temporary.until else None

    def limits_at(self, now: datetime) -> tuple[Limit, ...]:
        """Return the limits as they count at an instant: the budget's own, or the temporary ones where these are higher."""
        temporary = self.temporary_at(now)
        if temporary is None:
            return self.limits
        raised = {(one.measure, one.window): one for one in temporary.limits}
        higher = ((own, raised.get((own.measure, own.window), own)) for own in self.limits)
        return tuple(own if own.maximum >= other.maximum else other for own, other in higher)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A budget as it stood at one read: policy, picodollars reserved (and of these unknown), counters by name."""

    policy: BudgetPolicy
    reserved: int = 0
    unknown: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    created_at: datetime | None = None
    # When the first call of a run was admitted whose elapsed time is limited.
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """One amount of each measure; ``usd`` in picodollars."""

    usd: int = 0
    requests: int = 0
    tokens: int = 0
    tool_calls: int = 0
    active_milliseconds: int = 0

    def of(self, measure: Measure) -> int:
        """Return the amount of one measure."""
        match measure:
            case "usd":
                return self.usd
            case "requests":
                return self.requests
            case "tokens":
                return self.tokens
            case "tool_calls":
                return self.tool_calls
            case _:
                return self.active_milliseconds


def parse_path(text: str) -> str:
    """Return a budget path that a person may write; ValueError says what is allowed. Runs are not written."""
    segments = text.split("/")
    if len(text) > PATH_LENGTH_MAX or len(segments) > PATH_DEPTH_MAX:
        raise ValueError(f"a budget path has at most {PATH_DEPTH_MAX} names and {PATH_LENGTH_MAX} characters")
    for segment in segments:
        if _SEGMENT.fullmatch(segment) is None:
            raise ValueError(
                f"{segment!r} is not a budget name: letters, digits, '.', '_' and '-', 1 to 64, the first a letter or digit"
            )
    return text


def run_path(budget: str, run_id: str) -> str:
    """Return the path of a run below a budget; ValueError where the id has characters or a length not allowed."""
    if _RUN_ID.fullmatch(run_id) is None:
        raise ValueError("a run id has 1 to 64 letters, digits, '.', '_', ':' and '-', the first a letter or digit")
    return f"{budget}/{RUN_PREFIX}{run_id}"


def is_run(path: str) -> bool:
    """Tell whether a path is a run's."""
    return path.rpartition("/")[2].startswith(RUN_PREFIX)


def owner(path: str) -> str:
    """Return the budget that a run, or a run of a run, belongs to; any other path is its own."""
    return path.partition(f"/{RUN_PREFIX}")[0]


def prefixes(path: str) -> tuple[str, ...]:
    """Return the budgets that a call of ``path`` counts on, from the root down: ``a/b`` gives ``a`` and ``a/b``."""
    segments = path.split("/")
    return tuple("/".join(segments[:end]) for end in range(1, len(segments) + 1))


def parent(path: str) -> str | None:
    """Return the budget above, None for a root."""
    above, slash, _ = path.rpartition("/")
    return above if slash else None


def is_within(path: str, budget: str) -> bool:
    """Tell whether ``path`` is ``budget`` or lies below it."""
    return path == budget or path.startswith(f"{budget}/")


def is_unbudgeted(path: tuple[BudgetPolicy, ...]) -> bool:
    """Tell whether no budget of the path has a limit and one says aloud that this is meant."""
    return not any(policy.limits for policy in path) and any(policy.unbudgeted for policy in path)


def new_run(parent_policy: BudgetPolicy, path: str, now: datetime) -> BudgetPolicy:
    """Return the policy that a run starts with; ValueError where the budget above allows no runs."""
    runs = parent_policy.runs
    if runs is None:
        raise ValueError(f"budget {parent_policy.path} allows no runs")
    return BudgetPolicy(
        path=path,
        rev=0,
        limits=runs.limits,
        mode=parent_policy.mode,
        stop_on_unknown=runs.stop_on_unknown,
        expires_at=None if runs.expire_after is None else now + runs.expire_after,
        elapsed_max=runs.elapsed_max,
        stop_on_refusal=runs.stop_on_refusal,
    )
