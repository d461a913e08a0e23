"""Alerts: what people are told, and the mark by which each is told only once.

An alert has a mark: a name that holds the budget, the window with its period, the threshold and the limit. The store keeps
marks, so that what a hundred calls show is told once, and a new period (or a raised limit) is told of again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, get_args

from spendgate.core.block import Block
from spendgate.core.budget import RUN_PREFIX, BudgetState, Limit, Stop, owner, prefixes
from spendgate.core.money import usd_text
from spendgate.core.policy import Denied, amount_text, committed
from spendgate.core.reservation import Reservation
from spendgate.core.route import Candidate
from spendgate.core.window import HOUR, Window, counter, instant, resets_at
from spendgate.errors import OverBudget

Kind = Literal[
    "warn",
    "exceeded",
    "run_exceeded",
    "stopped",
    "bound_violated",
    "unknown_money",
    "unpriced",
    "provider_spend_limit",
    "catalogue_stale",
]
Severity = Literal["info", "warning", "critical"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

FULL: Final = 100
# A minute is over before anybody has read of it, and a limit per request says nothing about what is left.
TOLD_WINDOWS: Final[frozenset[Window]] = frozenset({"hour", "day", "month", "life"})
# Money of unknown outcome is told of once it is so old: until then providers are asked, and answers come late.
UNKNOWN_AFTER: Final = timedelta(hours=1)
# Nobody has looked at the providers' price pages for so many days.
STALE_DAYS: Final = 45
CATALOGUE: Final = "catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicy:
    """At which percentages of a limit to warn, and whether Slack hears of it where the stack has a channel."""

    warn_at: tuple[int, ...] = (80,)
    slack: bool = True


DEFAULTS: Final = AlertPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueState:
    """How many shipped prices there are, how many nobody has looked at for too long, and the age of the newest look."""

    rows: int
    stale: int
    age_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing to tell. ``scope`` is a budget's path, ``provider:<name>`` or ``catalogue``; amounts in ``facts`` are exact.

    ``mark`` names it among all of its kind and scope. ``rearms_at`` is when the same mark may be told of again (None: never):
    a rolling hour has no period that a name could hold.
    """

    kind: Kind
    scope: str
    mark: str
    at: datetime
    severity: Severity
    facts: Mapping[str, str]
    rearms_at: datetime | None = None

    @property
    def name(self) -> str:
        """Return what tells this alert from every other."""
        return f"{self.scope}|{self.kind}#{self.mark}"


def budget_alerts(state: BudgetState, policy: AlertPolicy, now: datetime) -> Iterator[Alert]:
    """Yield what a budget's state tells: its stop, and every threshold that its settled amounts have reached."""
    if state.policy.stop is not None:
        yield stopped(state.policy.path, state.policy.stop, now)
    for limit in state.policy.limits_at(now):
        if limit.window in TOLD_WINDOWS and limit.maximum:
            yield from _thresholds(state, limit, policy, now)


def exceeded(denied: Denied, now: datetime) -> Alert | None:
    """Return what the refusal of a call tells, None where no limit is used up.

    It has the mark of the limit's 100 %: whichever is seen first is told. Of runs, which come and go, the budget above hears
    once a day.
    """
    limit, facts = denied.limit, denied.refusal.facts
    if not isinstance(denied.refusal, OverBudget) or limit is None or limit.window not in TOLD_WINDOWS:
        return None
    path = facts.budget or ""
    told = {
        **_window_facts(limit, now),
        "used": facts.settled or "0",
        "reserved": facts.reserved or "",
        "unknown": facts.unknown or "",
        "left": amount_text(limit.measure, denied.room),
        "asked": facts.asked or "",
        "resets_at": facts.resets_at or "",
        "mode": "enforce",
        "threshold": str(FULL),
    }
    if f"/{RUN_PREFIX}" in path:
        told["run"] = path
        return Alert(kind="run_exceeded", scope=owner(path), mark=_day(now), at=now, severity="warning", facts=told)
    return Alert(
        kind="exceeded", scope=path, mark=_mark(limit, FULL, now), at=now, severity="critical", facts=told,
        rearms_at=_rearms_at(limit, now),
    )  # fmt: skip


def stopped(path: str, stop: Stop, now: datetime, *, mark: str | None = None) -> Alert:
    """Return that a budget is stopped, or a run, of which the budget hears that it belongs to; once a stop, or a ``mark``."""
    facts = {"reason": stop.reason, "by": stop.by, "since": instant(stop.at), "reservation": stop.reservation or ""}
    if owner(path) != path:
        facts["run"] = path
    mark = mark or instant(stop.at)
    return Alert(kind="stopped", scope=owner(path), mark=mark, at=now, severity="critical", facts=facts)


def run_stops(open_ones: Iterable[Reservation]) -> Mapping[str, str]:
    """Return the runs that a call of unknown outcome may have stopped, one of each budget, with the reservation's id."""
    found: dict[str, tuple[str, str]] = {}
    for one in open_ones:
        for path in one.stops_on_unknown if one.state == "unknown" else ():
            if owner(path) != path:
                found.setdefault(owner(path), (path, one.id))
    return dict(found.values())


def runs_stopped(runs: Iterable[BudgetState], stops: Mapping[str, str], now: datetime) -> Iterator[Alert]:
    """Yield, once a day and budget, that a run is stopped by a call of unknown outcome: runs come and go."""
    for state in runs:
        stop = state.policy.stop
        if stop is not None and stop.reservation == stops.get(state.policy.path):
            yield stopped(state.policy.path, stop, now, mark=f"{RUN_PREFIX}{_day(now)}")


def bound_violated(block: Block, now: datetime) -> Alert:
    """Return that a provider billed more than the bound, and what is blocked since."""
    one = block.candidate
    facts = {
        "provider": one.provider,
        "model": one.model,
        "feature": block.feature,
        "reservation": block.reservation,
        "reserved": usd_text(block.reserved),
        "billed": usd_text(block.billed),
        "since": instant(block.at),
    }
    mark = f"{one.provider}/{one.model}/{block.feature}#{instant(block.at)}"
    return Alert(kind="bound_violated", scope=block.budget, mark=mark, at=now, severity="critical", facts=facts)


def unknown_money(open_ones: Iterable[Reservation], now: datetime) -> Iterator[Alert]:
    """Yield, once a day and budget, that money has been held for over an hour for calls whose outcome nobody knows."""
    by_budget: dict[str, list[Reservation]] = {}
    for one in open_ones:
        if one.state == "unknown" and now - one.created_at >= UNKNOWN_AFTER:
            by_budget.setdefault(owner(one.path), []).append(one)
    for path, found in sorted(by_budget.items()):
        oldest = min(found, key=lambda one: one.created_at)
        facts = {
            "count": str(len(found)),
            "amount": usd_text(sum(one.asked.usd for one in found)),
            "oldest": oldest.id,
            "oldest_amount": usd_text(oldest.asked.usd),
            "provider": oldest.provider or "",
            "since": instant(oldest.created_at),
        }
        yield Alert(kind="unknown_money", scope=path, mark=_day(now), at=now, severity="warning", facts=facts)


def unpriced(path: str, *, route: str, candidate: Candidate, now: datetime) -> Alert:
    """Return that a call was refused since a candidate has no price; told once a day."""
    facts = {"route": route, "provider": candidate.provider, "model": candidate.model}
    mark = f"{candidate.provider}/{candidate.model}#{_day(now)}"
    return Alert(kind="unpriced", scope=owner(path), mark=mark, at=now, severity="warning", facts=facts)


def provider_spend_limit(candidate: Candidate, *, limit: str, path: str, now: datetime) -> Alert:
    """Return that a provider refuses the gateway's own account for its spend limit there; told once a day."""
    facts = {"provider": candidate.provider, "model": candidate.model, "limit": limit, "budget": path}
    scope = f"provider:{candidate.provider}"
    return Alert(
        kind="provider_spend_limit", scope=scope, mark=f"{limit}#{_day(now)}", at=now, severity="critical", facts=facts
    )


def catalogue_stale(state: CatalogueState | None, now: datetime) -> Iterator[Alert]:
    """Yield, once a month, that nobody looks at the shipped prices any more."""
    if state is not None and state.age_days > STALE_DAYS:
        facts = {"age_days": str(state.age_days), "stale": str(state.stale), "rows": str(state.rows)}
        mark = f"{now.astimezone(UTC):%Y-%m}"
        yield Alert(kind="catalogue_stale", scope=CATALOGUE, mark=mark, at=now, severity="warning", facts=facts)


def state_alerts(
    states: Sequence[BudgetState],
    policy: AlertPolicy,
    *,
    blocks: Iterable[Block],
    open_ones: Iterable[Reservation],
    catalogue: CatalogueState | None,
    now: datetime,
) -> tuple[Alert, ...]:
    """Return everything that stands to be told, told before or not."""
    own = {state.policy.path: state.policy.warn_at for state in states}
    return (
        *(
            alert
            for state in states
            for alert in budget_alerts(state, replace(policy, warn_at=_warn_at(state.policy.path, own, policy)), now)
        ),
        *(bound_violated(block, now) for block in blocks),
        *unknown_money(open_ones, now),
        *catalogue_stale(catalogue, now),
    )


def _warn_at(path: str, own: Mapping[str, tuple[int, ...] | None], policy: AlertPolicy) -> tuple[int, ...]:
    """Return where to warn of a budget: as it says itself, else the nearest above it that does, else the file."""
    said = (own.get(prefix) for prefix in reversed(prefixes(path)))
    return next((found for found in said if found is not None), policy.warn_at)


def _thresholds(state: BudgetState, limit: Limit, policy: AlertPolicy, now: datetime) -> Iterator[Alert]:
    stands = committed(state, limit, now)
    # What is reserved is known for the whole budget only. Alerts tell of what is settled: a bound is no spend yet.
    reserved = min(state.reserved, stands) if limit.measure == "usd" else 0
    used = stands - reserved
    resets = resets_at(limit.window, now)
    money = limit.measure == "usd"
    observed = state.policy.mode == "observe"
    for threshold in (*policy.warn_at, FULL):
        if used * FULL < limit.maximum * threshold:
            continue
        kind: Kind = "exceeded" if threshold == FULL else "warn"
        facts = {
            **_window_facts(limit, now, born=state.created_at),
            "used": amount_text(limit.measure, used),
            "percent": str(used * FULL // limit.maximum),
            "reserved": usd_text(reserved) if money else "",
            "unknown": usd_text(min(state.unknown, reserved)) if money else "",
            "left": amount_text(limit.measure, max(limit.maximum - stands, 0)),
            "resets_at": "" if resets is None else instant(resets),
            "mode": state.policy.mode,
            "threshold": str(threshold),
        }
        yield Alert(
            kind=kind,
            scope=state.policy.path,
            mark=_mark(limit, threshold, now),
            at=now,
            severity="critical" if kind == "exceeded" and not observed else "warning",
            facts=facts,
            rearms_at=_rearms_at(limit, now),
        )


def _window_facts(limit: Limit, now: datetime, *, born: datetime | None = None) -> dict[str, str]:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = {"hour": now - HOUR, "day": today, "month": today.replace(day=1)}.get(limit.window, born)
    return {
        "measure": limit.measure,
        "window": limit.window,
        "maximum": amount_text(limit.measure, limit.maximum),
        "since": "" if since is None else instant(since),
    }


def _day(now: datetime) -> str:
    """Return the mark of what is told once a day."""
    return f"{now.astimezone(UTC):%Y-%m-%d}"


def _mark(limit: Limit, threshold: int, now: datetime) -> str:
    return f"{counter(limit.measure, limit.window, now)}#{threshold}#{limit.maximum}"


def _rearms_at(limit: Limit, now: datetime) -> datetime | None:
    # After an hour all that was told of has left the rolling hour: it is another one.
    return now + HOUR if limit.window == "hour" else None
