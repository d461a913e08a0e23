"""``spendgate alerts``: the real commands against a real admin API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from spendgate.admin import Admin
from spendgate.alerts import store_of
from spendgate.core.alert import stopped
from spendgate.core.budget import Stop
from spendgate.errors import AlertUndelivered
from spendgate.store.ledger import Ledger
from tests.cli.conftest import CommandLine
from tests.operators import Clock

DONE: dict[str, Any] = {"published": 9, "failed": 0}


@pytest.fixture
def admin(admin: Admin) -> Admin:
    """An admin API whose tests of alerts come to what ``DONE`` says, or fail."""

    def tester() -> Mapping[str, Any]:
        if DONE["published"] is None:
            raise AlertUndelivered("the alerts function failed; its log says why")
        return DONE

    return replace(admin, alert_tester=tester)


def test_where_nobody_was_told_of_anything_that_is_said(applied: CommandLine) -> None:
    shown = applied("alerts", "list")

    assert (shown.exit_code, shown.stdout) == (0, "Nobody was told of anything in the last seven days.\n")
    assert applied.json("alerts", "list") == {"waiting": [], "alerts": []}


def test_what_waits_is_listed_first_and_then_what_was_told_the_newest_first(
    applied: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    store = store_of(ledger)
    for path in ("acme", "acme/b\x1b[31m", "acme/c"):
        alert = stopped(path, Stop(reason="it loops", at=clock.now, by="ada"), clock.now)
        store.post(alert)
        if path != "acme/c":
            clock.turn(minutes=1)
            store.sent(alert, clock.now)

    lines = applied("alerts", "list").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["sent", "waits", "2026-11-30", "2026-11-30"]
    assert ["acme/c" in lines[1], "acme/b" in lines[2], "acme is stopped" in lines[3]] == [True] * 3
    assert all("critical" in line for line in lines[1:])
    assert "\x1b" not in "".join(lines)
    assert len(applied.json("alerts", "list", "--limit", "1")["alerts"]) == 1
    assert applied("alerts", "list", "--limit", "0").exit_code == 2


def test_a_test_says_how_many_were_sent_and_exits_with_1_where_some_were_not(
    applied: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = applied("alerts", "test")
    monkeypatch.setitem(DONE, "failed", 2)
    part = applied("alerts", "test")
    as_json = applied.json("alerts", "test")

    assert (whole.exit_code, whole.stdout) == (0, "9 test alerts were sent.\n")
    assert part.exit_code == 1
    assert " ".join(part.stdout.split()) == (
        "9 test alerts were sent. 2 were not taken: the log of the alerts function says why."
    )
    assert as_json == {"published": 9, "failed": 2}


def test_a_test_that_reaches_nobody_says_why(applied: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DONE, "published", None)
    done = applied("alerts", "test")

    assert done.exit_code not in (0, 1)
    assert "the alerts function failed; its log says why" in done.stderr
