"""Cases of windows, and of trees of budgets."""

import time
from typing import Final

from spendgate.local.conformance.case import Case, Missed, Stand

_DAY_SECONDS: Final = 86_400


def _daily(stand: Stand) -> None:
    stand.burst([stand.body()] * 24)
    stand.spend()


def _a_minute(stand: Stand) -> None:
    # At the end of a minute its limit and the next one's are both open.
    while time.time() % 60 > 50:
        time.sleep(1)
    stand.burst([stand.body()] * 24)
    if stand.provider.hits > 5:
        raise Missed(f"{stand.provider.hits} calls were sent within a minute that allows 5")


def _midnight(stand: Stand) -> None:
    stand.session.advance(0)
    stand.spend()
    first = stand.provider.billed
    stand.session.advance(_DAY_SECONDS)
    stand.spend()
    second = stand.provider.billed - first
    if not second:
        raise Missed("the limit of a day did not open again on the next one")
    if max(first, second) > 4 * 10**9:
        raise Missed("more was billed in one of two days than its limit")


def _two_children(stand: Stand) -> None:
    stand.burst([stand.body()] * 40, callers=2)
    stand.spend(caller=0)
    stand.spend(caller=1)


def _small_child(stand: Stand) -> None:
    stand.burst([stand.body()] * 24)
    stand.spend()


def _many_runs(stand: Stand) -> None:
    for number in range(8):
        stand.spend(headers=stand.session.run(f"run-{number}"), most=12)


def _one_run(stand: Stand) -> None:
    stand.spend(headers=stand.session.run("run-1"))


CASES: Final = (
    Case(
        name="day within a lifetime",
        group="windows",
        title="the limit of the day is reached before the one above it",
        play=_daily,
        limit="1",
        judged="0.004",
        daily="0.004",
    ),
    Case(
        name="requests a minute",
        group="windows",
        title="24 calls at once where five a minute are allowed",
        play=_a_minute,
        limit="1",
        requests_a_minute=5,
    ),
    Case(
        name="midnight",
        group="windows",
        title="the limit of a day opens again at midnight, once",
        play=_midnight,
        limit="1",
        judged="0.008",
        daily="0.004",
    ),
    Case(
        name="two below one",
        group="hierarchy",
        title="two callers with a limit each, whose sum is more than the one above both",
        play=_two_children,
        shares=("0.008", "0.008"),
    ),
    Case(
        name="small below large",
        group="hierarchy",
        title="one caller's small limit below a large one",
        play=_small_child,
        limit="1",
        judged="0.004",
        shares=("0.004", "0.5"),
    ),
    Case(
        name="a run",
        group="hierarchy",
        title="one run's limit below a larger one",
        play=_one_run,
        limit="1",
        judged="0.004",
        runs="0.004",
    ),
    Case(
        name="ever new runs",
        group="hierarchy",
        title="eight runs, each with a limit of its own, below one limit of all",
        play=_many_runs,
        runs="0.004",
    ),
)
