"""What operators see of the ledger: budgets, reservations and events as JSON-ready dicts.

Money is exact USD strings, times are ISO instants with Z. What is configured is shown by ``admin_configuration_view.py``.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit, RunPolicy, Stop, TemporaryLimits
from spendgate.core.event import Event
from spendgate.core.money import usd_text
from spendgate.core.policy import amount_text
from spendgate.core.reservation import Reservation
from spendgate.core.usage import BUCKETS, Usage
from spendgate.core.window import (
    ACTIVE,
    COUNTED,
    MEASURES,
    WINDOWS,
    Measure,
    Window,
    bucket_start,
    counter,
    is_bucket,
    outside_the_hour,
    resets_at,
)

# What was spent is shown in these, limited or not.
_COMMITTED: Final[tuple[Window, ...]] = ("day", "month", "life")


def instant_text(at: datetime) -> str:
    """Return an instant as ISO text with Z, with a fraction only where it has one."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def budget_view(state: BudgetState, now: datetime) -> dict[str, Any]:
    """Return a budget with every limited window as it stands, and what was spent whether or not it is limited."""
    policy = state.policy
    temporary = policy.temporary_at(now)
    view = {
        "path": policy.path,
        "rev": policy.rev,
        "mode": policy.mode,
        "unbudgeted": policy.unbudgeted,
        "stop": None if policy.stop is None else stop_view(policy.stop),
        "expires_at": None if policy.expires_at is None else instant_text(policy.expires_at),
        "reserved": usd_text(state.reserved),
        "unknown": usd_text(state.unknown),
        "committed": {window: usd_text(_committed(state, "usd", window, now)) for window in _COMMITTED},
        "windows": [window_view(state, limit, now) for limit in sorted(policy.limits_at(now), key=_place)],
        "temporary": None if temporary is None else temporary_view(temporary),
        "policy": policy_view(policy),
    }
    if policy.elapsed_max is not None:
        start = state.started_at
        view["elapsed"] = {
            "maximum": span_text(policy.elapsed_max),
            "started_at": None if start is None else instant_text(start),
            "ends_at": None if start is None else instant_text(start + policy.elapsed_max),
        }
    return view


def window_view(state: BudgetState, limit: Limit, now: datetime) -> dict[str, Any]:
    """Return a limit and what stands against it: settled + reserved (of it unknown) + free, never more than is known."""
    view: dict[str, Any] = {
        "measure": limit.measure,
        "window": limit.window,
        "maximum": amount_text(limit.measure, limit.maximum),
    }
    if limit.window == "request":
        return view
    committed = _committed(state, limit.measure, limit.window, now)
    # What is reserved is known for the whole budget only: of a window it is at most what is committed there.
    reserved = min(state.reserved, committed) if limit.measure == "usd" else 0
    unknown = min(state.unknown, reserved)
    amounts = {
        "committed": committed,
        "settled": committed - reserved,
        "reserved": reserved,
        "unknown": unknown,
        "free": max(limit.maximum - committed, 0),
    }
    resets = _hour_moves(state, limit, now) if limit.window == "hour" else resets_at(limit.window, now)
    view.update((name, amount_text(limit.measure, amount)) for name, amount in amounts.items())
    view["resets_at"] = None if resets is None else instant_text(resets)
    return view


def policy_view(policy: BudgetPolicy) -> dict[str, Any]:
    """Return a budget's policy in the shape of the configuration file; what it leaves out is the default."""
    view: dict[str, Any] = {}
    if policy.limits:
        view["limits"] = limits_view(policy.limits)
    if policy.mode != "enforce":
        view["mode"] = policy.mode
    for name in ("unbudgeted", "failover", "stop_on_unknown"):
        if getattr(policy, name):
            view[name] = True
    if policy.allow:
        view["allow"] = dict(policy.allow)
    if policy.default_output_tokens is not None:
        view["default_output_tokens"] = policy.default_output_tokens
    if policy.warn_at is not None:
        view["alerts"] = {"warn_at": list(policy.warn_at)}
    if policy.runs is not None:
        view["runs"] = _runs_view(policy.runs)
    return view


def _runs_view(runs: RunPolicy) -> dict[str, Any]:
    view: dict[str, Any] = {"limits": limits_view(limit for limit in runs.limits if limit.measure != ACTIVE)}
    active = next((timedelta(milliseconds=one.maximum) for one in runs.limits if one.measure == ACTIVE), None)
    spans = {"expire_after": runs.expire_after, "elapsed_max": runs.elapsed_max, "active_max": active}
    view.update((name, span_text(span)) for name, span in spans.items() if span is not None)
    for name in ("stop_on_unknown", "stop_on_refusal", "delegate"):
        if value := getattr(runs, name):
            view[name] = value
    return view


def limits_view(limits: Iterable[Limit]) -> dict[str, dict[str, str]]:
    """Return limits as the file nests them: measure, window, maximum."""
    view: dict[str, dict[str, str]] = {}
    for limit in sorted(limits, key=_place):
        view.setdefault(limit.measure, {})[limit.window] = amount_text(limit.measure, limit.maximum)
    return view


def span_text(span: timedelta) -> str:
    """Return a length of time in its largest whole unit: ``24h``, ``90m``, ``45s``."""
    seconds = int(span.total_seconds())
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def stop_view(stop: Stop) -> dict[str, Any]:
    return {"reason": stop.reason, "at": instant_text(stop.at), "by": stop.by, "reservation": stop.reservation}


def temporary_view(temporary: TemporaryLimits) -> dict[str, Any]:
    """Return higher limits that end by themselves: which, until when, by whom and why."""
    return {
        "limits": limits_view(temporary.limits),
        "until": instant_text(temporary.until),
        "at": instant_text(temporary.at),
        "by": temporary.by,
        "reason": temporary.reason,
    }


def reservation_view(reservation: Reservation) -> dict[str, Any]:
    """Return a reservation's record: what was held, what it came to, who served it, how it ended."""
    one = reservation
    return {
        "id": one.id,
        "state": one.state,
        "budget": one.path,
        "budgets": [hold.budget for hold in one.holds],
        "key": one.key_name,
        "route": one.route,
        "dialect": one.dialect,
        "provider": one.provider,
        "model": one.model,
        "response_model": one.response_model,
        "response_id": one.response_id,
        "reserved": amounts_view(one.asked),
        "actual": None if one.actual is None else amounts_view(one.actual),
        "usage": None if one.usage is None else usage_view(one.usage),
        "output_cap": one.output_cap,
        "output_cap_stamped": one.stamped,
        "input_tokens_max": one.input_tokens_max,
        "prices": list(dict.fromkeys(row.id for quote in one.quotes for row in quote.rows)),
        "unpriced": one.unpriced,
        "fingerprint": one.fingerprint,
        "idempotency_key": one.idempotency_key,
        "created_at": instant_text(one.created_at),
        "deadline": instant_text(one.deadline),
        "resolved_at": None if one.resolved_at is None else instant_text(one.resolved_at),
        "reason": one.reason,
        "evidence": one.evidence,
        "by": one.by,
    }


def amounts_view(amounts: Amounts) -> dict[str, str]:
    shown = (*MEASURES, ACTIVE) if amounts.active_milliseconds else MEASURES
    return {measure: amount_text(measure, amounts.of(measure)) for measure in shown}


def usage_view(usage: Usage) -> dict[str, Any]:
    """Return the buckets that are not empty."""
    view: dict[str, Any] = {name: getattr(usage, name) for name in BUCKETS if getattr(usage, name)}
    if usage.fees:
        view["fees"] = dict(usage.fees)
    return view


def event_view(event: Event) -> dict[str, Any]:
    return {
        "at": instant_text(event.at),
        "by": event.by,
        "kind": event.kind,
        "subject": event.subject,
        "reason": event.reason,
        "before": None if event.before is None else dict(event.before),
        "after": None if event.after is None else dict(event.after),
    }


def _place(limit: Limit) -> tuple[int, int]:
    """Return where a limit stands in a list: money first, short windows first."""
    return COUNTED.index(limit.measure), WINDOWS.index(limit.window)


def _committed(state: BudgetState, measure: Measure, window: Window, now: datetime) -> int:
    committed = state.counters.get(counter(measure, window, now), 0)
    if window != "hour":
        return committed
    # The counter still holds buckets that have left the hour: the next call that needs their room evicts them.
    old = outside_the_hour((name for name in state.counters if name.startswith(f"{measure}.")), now)
    return committed - sum(state.counters[name] for name in old)


def _hour_moves(state: BudgetState, limit: Limit, now: datetime) -> datetime | None:
    """Return when the oldest five minutes in the rolling hour leave it; None where nothing is settled in it."""
    names = [name for name in state.counters if is_bucket(name) and name.startswith(f"{limit.measure}.")]
    old = set(outside_the_hour(names, now))
    starts = [bucket_start(name) for name in names if name not in old and state.counters[name]]
    return min(starts) + timedelta(minutes=65) if starts else None
