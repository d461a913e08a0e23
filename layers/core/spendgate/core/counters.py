"""Every change of a budget's counters, as data.

A budget's counters are named integers: ``reserved`` and ``unknown`` (picodollars in reservations that are not
resolved, and of these in unknown ones), and one counter a measure and window (``core/window.py``) that holds
what is committed: settled and reserved. Each function returns what to add to each; the store writes just that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from spendgate.core.budget import Amounts, BudgetPolicy
from spendgate.core.window import ALWAYS_COUNTED, bucket, counter, counter_window

RESERVED: Final = "reserved"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The counters of one budget that a reservation moves, by the time of the reservation.

    ``buckets`` are the five-minute buckets of the rolling hour that its settlement goes to.
    """

    budget: str
    counters: tuple[str, ...]
    buckets: tuple[str, ...] = ()


def hold_of(policy: BudgetPolicy, now: datetime) -> Hold:
    """Return which counters of a budget a call at ``now`` moves: money by day, month and life, and what is limited."""
    pairs = dict.fromkeys(ALWAYS_COUNTED)
    pairs.update(dict.fromkeys((limit.measure, limit.window) for limit in policy.limits if limit.window != "request"))
    return Hold(
        budget=policy.path,
        counters=tuple(counter(measure, window, now) for measure, window in pairs),
        buckets=tuple(bucket(measure, now) for measure, window in pairs if window == "hour"),
    )


def on_reserve(hold: Hold, asked: Amounts) -> Mapping[str, int]:
    """Add what is asked to each counter."""
    return {RESERVED: asked.usd, **{name: asked.of(counter_window(name)[0]) for name in hold.counters}}


def on_unknown(asked: Amounts) -> Mapping[str, int]:
    """Of what is reserved, count this as unknown; nothing is freed."""
    return {UNKNOWN: asked.usd}


def on_resolve(hold: Hold, asked: Amounts, actual: Amounts, *, was_unknown: bool) -> Mapping[str, int]:
    """Replace what was reserved by what it came to; a bucket of the hour takes the latter."""
    changes = {RESERVED: -asked.usd}
    if was_unknown:
        changes[UNKNOWN] = -asked.usd
    for name in hold.counters:
        measure = counter_window(name)[0]
        changes[name] = actual.of(measure) - asked.of(measure)
    for name in hold.buckets:
        changes[name] = actual.of(counter_window(name)[0])
    return changes
