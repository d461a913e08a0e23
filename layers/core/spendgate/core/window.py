"""Measures, windows and the names of their counters.

The period is part of a counter's name: a new day starts at nothing, no job resets anything, and a settlement
after midnight touches exactly the counters that its reservation names. All time is UTC.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal, get_args

Measure = Literal["usd", "requests", "tokens", "tool_calls", "active_milliseconds"]
Window = Literal["request", "minute", "hour", "day", "month", "life"]

# What a limit may be written for.
MEASURES: Final[tuple[Measure, ...]] = ("usd", "requests", "tokens", "tool_calls")
# How long a run's calls took together; it is limited by ``active_max`` of ``runs`` alone, and counted nowhere else.
ACTIVE: Final[Measure] = "active_milliseconds"
COUNTED: Final[tuple[Measure, ...]] = (*MEASURES, ACTIVE)
WINDOWS: Final[tuple[Window, ...]] = get_args(Window)

# What isoformat writes at the end, for Z. It takes a tenth of the time of strftime, and a call has twenty such names.
_OFFSET: Final = len("+00:00")

HOUR: Final = timedelta(hours=1)
BUCKET: Final = timedelta(minutes=5)

# Money of these windows is counted whether or not it is limited, so that a limit that is set later finds it.
ALWAYS_COUNTED: Final[tuple[tuple[Measure, Window], ...]] = (("usd", "day"), ("usd", "month"), ("usd", "life"))


def counter(measure: Measure, window: Window, at: datetime) -> str:
    """Return the name of the counter that a call at ``at`` moves; ValueError for ``request``, which has none."""
    match window:
        case "minute":
            return f"{measure}.minute.{_minute(at)}"
        case "hour":
            return f"{measure}.hour"
        case "day":
            return f"{measure}.day.{day(at)}"
        case "month":
            return f"{measure}.month.{day(at)[:7]}"
        case "life":
            return f"{measure}.life"
        case _:
            raise ValueError("a limit per request has no counter")


def bucket(measure: Measure, at: datetime) -> str:
    """Return the name of the five-minute bucket of the rolling hour that ``at`` lies in."""
    at = at.astimezone(UTC)
    return f"{measure}.hour.{_minute(at.replace(minute=at.minute - at.minute % 5))}"


@lru_cache(maxsize=1024)
def counter_window(name: str) -> tuple[Measure, Window]:
    """Return the measure and window of a counter's name."""
    for measure in COUNTED:
        if name.startswith(f"{measure}."):
            window = name[len(measure) + 1 :].partition(".")[0]
            for known in WINDOWS:
                if window == known:
                    return measure, known
    raise ValueError(f"{name!r} is not a counter's name")


def is_bucket(name: str) -> bool:
    """Tell a five-minute bucket (``usd.hour.<time>``) from the other counters."""
    return name.count(".") == 2 and name.split(".")[1] == "hour"


def bucket_start(name: str) -> datetime:
    """Return the instant that a bucket starts at."""
    return datetime.strptime(name.rpartition(".")[2], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC)


def outside_the_hour(names: Iterable[str], now: datetime) -> tuple[str, ...]:
    """Return the buckets that lie wholly outside the last 60 minutes; a bucket that touches them stays."""
    return tuple(name for name in names if is_bucket(name) and bucket_start(name) + BUCKET <= now - HOUR)


def is_past(name: str, now: datetime) -> bool:
    """Tell whether a minute's, day's or month's counter is of a period that is over."""
    measure, window = counter_window(name)
    return window in ("minute", "day", "month") and name < counter(measure, window, now)


def resets_at(window: Window, now: datetime) -> datetime | None:
    """Return when a fixed window that contains ``now`` ends; None where no fixed instant frees it."""
    start = now.astimezone(UTC).replace(second=0, microsecond=0)
    match window:
        case "minute":
            return start + timedelta(minutes=1)
        case "day":
            return start.replace(hour=0, minute=0) + timedelta(days=1)
        case "month":
            year, month = divmod(start.year * 12 + start.month, 12)
            return start.replace(year=year, month=month + 1, day=1, hour=0, minute=0)
        case _:
            return None


def instant(at: datetime) -> str:
    """Return an instant as text that sorts: ``2026-11-30T02:11:00.123456Z``."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")[:-_OFFSET] + "Z"


def day(at: datetime) -> str:
    """Return the UTC day of an instant: ``2026-11-30``."""
    return at.astimezone(UTC).date().isoformat()


def _minute(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="minutes")[:-_OFFSET] + "Z"


def parse_instant(text: str) -> datetime:
    """Return the instant that ``instant`` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
