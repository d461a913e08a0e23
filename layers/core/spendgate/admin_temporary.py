"""Limits that are raised for a while: what may be asked for, and what an apply does with those that stand."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from spendgate.admin_input import instant_of, invalid
from spendgate.admin_view import instant_text, limits_view, stop_view, temporary_view
from spendgate.core.budget import BudgetPolicy, Limit, TemporaryLimits
from spendgate.core.policy import amount_text, limit_text

# What is needed for longer is no exception: it belongs into the file, where others see it.
TEMPORARY_MAX: Final = timedelta(days=31)

_SPAN: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_UNITS: Final = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def temporary_limits(
    policy: BudgetPolicy, limits: Sequence[Limit], until: str | None, *, now: datetime, by: str, reason: str
) -> TemporaryLimits | None:
    """Return the temporary limits that are asked for, None where none are; RequestInvalid."""
    if not limits:
        if until is not None:
            raise invalid("until", "goes with limits")
        return None
    if until is None:
        raise invalid("until", "a temporary limit needs its end: a span like 2h, or 2027-01-31T18:00:00Z")
    for limit in limits:
        _check(policy, limit)
    return TemporaryLimits(limits=tuple(limits), until=_end(until, now), at=now, by=by, reason=reason)


def kept(stored: BudgetPolicy, wanted: BudgetPolicy, now: datetime) -> TemporaryLimits | None:
    """Return what an apply keeps of temporary limits: those whose own limit it does not change, which is a newer word."""
    temporary = stored.temporary_at(now)
    if temporary is None:
        return None
    unchanged = {(one.measure, one.window) for one in set(stored.limits) & set(wanted.limits)}
    limits = tuple(one for one in temporary.limits if (one.measure, one.window) in unchanged)
    return None if not limits else replace(temporary, limits=limits)


def standing(stored: BudgetPolicy, wanted: BudgetPolicy, now: datetime) -> str | None:
    """Return in words what an apply does with temporary limits, None where there are none."""
    temporary = stored.temporary_at(now)
    if temporary is None:
        return None
    left = kept(stored, wanted, now)
    stays = () if left is None else left.limits
    ends = tuple(one for one in temporary.limits if one not in stays)
    until = f"until {instant_text(temporary.until)} (by {temporary.by}: {temporary.reason})"
    said = []
    if stays:
        said.append(f"a temporary limit of {_words(stays)} stands {until}, and an apply keeps it")
    if ends:
        said.append(f"this apply changes the limit that is raised to {_words(ends)} {until}, which ends that")
    return f"budget {stored.path}: {'; '.join(said)}"


def resumption(
    policy: BudgetPolicy, temporary: TemporaryLimits | None, now: datetime
) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """Return kind, before and after of the event of a resume: the stop, and every limit that changes, from what to what."""
    before: dict[str, Any] = {} if policy.stop is None else stop_view(policy.stop)
    ended = policy.temporary_at(now)
    touched = {(one.measure, one.window) for part in (temporary, ended) if part is not None for one in part.limits}
    if not touched:
        return "budget_resumed", before, None
    before["limits"] = limits_view(one for one in policy.limits_at(now) if (one.measure, one.window) in touched)
    if ended is not None:
        before["until"] = instant_text(ended.until)
    if temporary is None:
        own = limits_view(one for one in policy.limits if (one.measure, one.window) in touched)
        return "budget_resumed", before, {"limits": own}
    after = {name: value for name, value in temporary_view(temporary).items() if name in ("limits", "until")}
    return "budget_raised" if policy.stop is None else "budget_resumed", before, after


def _check(policy: BudgetPolicy, limit: Limit) -> None:
    place = f"limits.{limit.measure}.{limit.window}"
    own = next((one for one in policy.limits if (one.measure, one.window) == (limit.measure, limit.window)), None)
    if own is None:
        known = ", ".join(f"{one.measure}.{one.window}" for one in policy.limits)
        raise invalid(place, f"budget {policy.path} has no such limit to raise; it has: {known or 'none'}")
    if limit.maximum <= own.maximum:
        least = amount_text(own.measure, own.maximum)
        raise invalid(place, f"a temporary limit is higher than the budget's own, which is {least}")


def _end(text: str, now: datetime) -> datetime:
    match = _SPAN.fullmatch(text)
    allowed = f"in the future, and at most {TEMPORARY_MAX.days} days ahead; it is {instant_text(now)} now"
    if match is None:
        until = instant_of(text, "until", "a span like 30m, 2h or 7d, or an instant like 2027-01-31T18:00:00Z")
    else:
        # A number of days that no calendar holds is too long as well.
        until = now + min(int(match.group(1)) * _UNITS[match.group(2)], 2 * TEMPORARY_MAX)
    if not now < until <= now + TEMPORARY_MAX:
        raise invalid("until", allowed)
    return until


def _words(limits: Sequence[Limit]) -> str:
    return " and ".join(map(limit_text, limits))
