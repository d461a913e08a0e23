"""What people see: bars, amounts and the tree of budgets."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.cli.render import FREE, RESERVED, SETTLED, UNKNOWN, bar, clean, day, span, until
from spendgate.cli.status import status

amounts = st.integers(0, 10**30).map(lambda number: str(Decimal(number).scaleb(-12)))


@given(settled=amounts, reserved=amounts, unknown=amounts, maximum=amounts, width=st.integers(8, 60))
def test_a_bar_has_its_width_and_shows_each_part_that_is_not_nothing(
    settled: str, reserved: str, unknown: str, maximum: str, width: int
) -> None:
    drawn = bar([(SETTLED, settled), (RESERVED, reserved), (UNKNOWN, unknown)], maximum, width=width).plain
    used = Decimal(settled) + Decimal(reserved) + Decimal(unknown)

    assert len(drawn) == width
    if used or Decimal(maximum):
        assert (SETTLED in drawn) == bool(Decimal(settled))
        assert (RESERVED in drawn) == bool(Decimal(reserved))
        assert (UNKNOWN in drawn) == bool(Decimal(unknown))
        assert (FREE in drawn) == (used < Decimal(maximum))


@given(settled=amounts, reserved=amounts, maximum=amounts)
def test_the_parts_of_a_bar_stand_in_their_order(settled: str, reserved: str, maximum: str) -> None:
    drawn = bar([(SETTLED, settled), (RESERVED, reserved)], maximum).plain
    order = [mark for mark in (SETTLED, RESERVED, FREE) if mark in drawn]

    assert "".join(mark * drawn.count(mark) for mark in order) in (drawn, "")


def test_half_is_half() -> None:
    assert bar([(SETTLED, "0.0005")], "0.001", width=10).plain == "█████·····"


def test_nothing_of_what_others_wrote_reaches_the_terminal_as_a_command() -> None:
    assert clean("a\x1b[31mb\nc\u202e") == "a\ufffd[31mb\ufffdc\ufffd"


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=59), "59s"),
        (timedelta(minutes=5, seconds=7), "5m 7s"),
        (timedelta(hours=21, minutes=46, seconds=3), "21h 46m"),
        (timedelta(hours=2, seconds=59), "2h"),
        (timedelta(days=3, hours=1), "3d 1h"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(length: timedelta, text: str) -> None:
    assert span(length) == text


def test_an_instant_at_midnight_is_a_day() -> None:
    assert day("2027-01-01T00:00:00Z") == "2027-01-01"
    assert day("2027-01-01T18:30:00Z") == "2027-01-01 18:30:00Z"
    assert until("2026-12-01T00:00:00Z", "2026-11-30T02:14:00.000001Z") == "21h 45m"


def a_budget(path: str, **more: Any) -> dict[str, Any]:
    return {
        "path": path,
        "mode": "enforce",
        "unbudgeted": False,
        "stop": None,
        "expires_at": None,
        "reserved": "0",
        "unknown": "0",
        "committed": {"day": "0", "month": "0", "life": "0"},
        "windows": [],
        **more,
    }


def a_window(**more: str | None) -> dict[str, Any]:
    return {
        "measure": "usd",
        "window": "day",
        "maximum": "0.001",
        "committed": "0.000725",
        "settled": "0.0004",
        "reserved": "0.000325",
        "unknown": "0.000125",
        "free": "0.000275",
        "resets_at": "2026-12-01T00:00:00Z",
        **more,
    }


def drawn(*budgets: dict[str, Any], width: int = 80, all_runs: bool = False) -> str:
    document = {"at": "2026-11-30T02:14:00Z", "budgets": list(budgets)}
    return status(document, width=width, all_runs=all_runs).plain


def test_the_tree_shows_every_window_exactly() -> None:
    assert drawn(a_budget("acme", windows=[a_window()]), a_budget("acme/search")) == (
        "acme\n"
        "│  usd/day  █████████▒▒▒▒??·····  $0.000725 of $0.001  $0.000275 free\n"
        "│           $0.0004 settled  $0.0002 in flight  $0.000125 unknown\n"
        "│           resets in 21h 46m\n"
        "└─ search\n"
        "      no USD limit here  $0 this day  $0 this month\n"
        "\n"
        "█ settled  ▒ reserved, in flight  ? reserved, outcome unknown  · free"
    )


def test_a_stop_is_shown_with_who_when_and_why() -> None:
    stop = {"reason": "it loops", "at": "2026-11-30T02:00:00Z", "by": "ana", "reservation": None}

    assert "■ STOPPED by ana at 2026-11-30 02:00:00Z: it loops" in drawn(a_budget("acme", stop=stop))


def test_many_runs_are_counted_and_a_path_shows_them_all() -> None:
    runs = [a_budget(f"acme/run:{number:02}") for number in range(8)]

    assert "└─ and 3 more runs: spendgate status acme" in drawn(a_budget("acme"), *runs)
    assert drawn(a_budget("acme"), *runs, all_runs=True).count("run:") == 8


def test_an_empty_store_says_what_to_do() -> None:
    assert "spendgate apply -f spendgate.yaml" in drawn()


@given(depth=st.integers(1, 8), maximum=st.integers(0, 10**18), width=st.sampled_from([80, 120]))
def test_no_line_is_wider_than_the_terminal(depth: int, maximum: int, width: int) -> None:
    stop = {"reason": "word " * 40, "at": "2026-11-30T02:00:00Z", "by": "ana", "reservation": "0" * 26}
    window = a_window(maximum=str(Decimal(maximum).scaleb(-12).normalize().__format__("f")))
    paths = ["/".join(f"team{level}" for level in range(end)) for end in range(1, depth + 1)]

    text = drawn(*(a_budget(path, windows=[window], stop=stop) for path in paths), width=width)

    assert max(len(line) for line in text.splitlines()) <= width
