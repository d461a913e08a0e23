"""Windows: the period is in the counter's name, in UTC, whatever the clock of the caller says."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.window import (
    BUCKET,
    HOUR,
    MEASURES,
    WINDOWS,
    Measure,
    Window,
    bucket,
    bucket_start,
    counter,
    counter_window,
    instant,
    is_bucket,
    is_past,
    outside_the_hour,
    parse_instant,
    resets_at,
)
from tests.builders import NOW
from tests.strategies import instants

counted_windows = st.sampled_from([window for window in WINDOWS if window != "request"])
zones = st.integers(-14 * 4, 14 * 4).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))


@pytest.mark.parametrize(
    ("window", "name"),
    [
        ("minute", "usd.minute.2026-11-29T23:14Z"),
        ("hour", "usd.hour"),
        ("day", "usd.day.2026-11-29"),
        ("month", "usd.month.2026-11"),
        ("life", "usd.life"),
    ],
)
def test_a_counter_is_named_by_measure_window_and_period(window: Window, name: str) -> None:
    assert counter("usd", window, NOW) == name


def test_a_limit_per_request_has_no_counter() -> None:
    with pytest.raises(ValueError, match="no counter"):
        counter("usd", "request", NOW)


@given(st.sampled_from(MEASURES), counted_windows, instants, zones)
def test_a_counter_s_name_tells_its_measure_and_window_and_not_the_zone_of_the_clock(
    measure: Measure, window: Window, at: datetime, zone: timezone
) -> None:
    name = counter(measure, window, at)

    assert counter_window(name) == (measure, window)
    assert counter(measure, window, at.astimezone(zone)) == name
    assert not is_bucket(name)


@given(st.sampled_from(MEASURES), instants, zones)
def test_a_bucket_is_the_five_minutes_that_an_instant_lies_in(measure: Measure, at: datetime, zone: timezone) -> None:
    name = bucket(measure, at.astimezone(zone))

    assert is_bucket(name)
    assert counter_window(name) == (measure, "hour")
    assert bucket_start(name) <= at < bucket_start(name) + BUCKET
    assert bucket_start(name).minute % 5 == 0


@pytest.mark.parametrize(
    "name", ["reserved", "unknown", "rev", "usd", "usd.", "usd.year.2026", "euro.day.2026-11-29", ""]
)
def test_what_is_no_counter_is_told(name: str) -> None:
    with pytest.raises(ValueError, match="not a counter"):
        counter_window(name)


@given(st.lists(instants), instants)
def test_a_bucket_leaves_the_hour_only_when_all_of_it_is_older_than_an_hour(
    times: list[datetime], now: datetime
) -> None:
    names = {bucket("usd", at): at for at in times}

    gone = outside_the_hour([*names, "usd.hour", "usd.day.2020-01-01"], now)

    for name in names:
        last = bucket_start(name) + BUCKET - timedelta(microseconds=1)
        assert (name in gone) == (last < now - HOUR)
    assert set(gone) <= set(names)


@given(st.sampled_from(MEASURES), counted_windows, instants, instants)
def test_a_counter_is_past_when_its_period_is_over(
    measure: Measure, window: Window, at: datetime, now: datetime
) -> None:
    ends = resets_at(window, at)

    assert is_past(counter(measure, window, at), now) == (ends is not None and ends <= now)
    assert not is_past(bucket(measure, at), now)


@given(st.sampled_from(["minute", "day", "month"]), instants)
def test_a_fixed_window_ends_where_the_next_counter_begins(window: Window, now: datetime) -> None:
    ends = resets_at(window, now)

    assert ends is not None
    assert now < ends
    assert counter("usd", window, ends - timedelta(microseconds=1)) == counter("usd", window, now)
    assert counter("usd", window, ends) != counter("usd", window, now)


@pytest.mark.parametrize("window", ["request", "hour", "life"])
def test_no_fixed_instant_frees_the_other_windows(window: Window) -> None:
    assert resets_at(window, NOW) is None


@pytest.mark.parametrize("month", range(1, 13))
@pytest.mark.parametrize("year", [2026, 2027, 2028])
def test_b28_a_month_is_the_calendar_s_whatever_its_length(year: int, month: int) -> None:
    """B28: 28, 29, 30 and 31 days; the next month starts whatever happened before."""
    last = datetime(year, month, monthrange(year, month)[1], 23, 59, 59, 999000, tzinfo=UTC)
    first = last + timedelta(milliseconds=1)

    assert counter("usd", "month", last) == f"usd.month.{year}-{month:02d}"
    assert counter("usd", "month", first) == f"usd.month.{first.year}-{first.month:02d}"
    assert first.day == 1
    assert resets_at("month", last) == first
    assert resets_at("month", last.replace(day=1, hour=0)) == first


def test_b28_a_leap_day_is_a_day() -> None:
    """B28: 29 February 2028."""
    assert resets_at("day", datetime(2028, 2, 28, 23, 59, tzinfo=UTC)) == datetime(2028, 2, 29, tzinfo=UTC)
    assert resets_at("day", datetime(2028, 2, 29, 12, tzinfo=UTC)) == datetime(2028, 3, 1, tzinfo=UTC)


def test_b27_a_day_is_utc_s_day() -> None:
    """B27: in a zone of UTC+8 the day still changes at midnight UTC."""
    singapore = timezone(timedelta(hours=8))

    assert counter("usd", "day", datetime(2026, 11, 30, 7, 59, tzinfo=singapore)) == "usd.day.2026-11-29"
    assert counter("usd", "day", datetime(2026, 11, 30, 8, 0, tzinfo=singapore)) == "usd.day.2026-11-30"
    assert resets_at("day", datetime(2026, 11, 30, 7, 59, tzinfo=singapore)) == datetime(2026, 11, 30, tzinfo=UTC)


@given(instants, instants, zones)
def test_an_instant_s_text_sorts_as_time_does_and_can_be_read_again(a: datetime, b: datetime, zone: timezone) -> None:
    assert parse_instant(instant(a.astimezone(zone))) == a
    assert (instant(a) < instant(b)) == (a < b)
