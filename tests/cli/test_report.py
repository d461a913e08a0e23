"""``spendgate report`` against a real admin API: what people, programs and spreadsheets are shown."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from spendgate.core.budget import Amounts
from spendgate.core.money import usd
from spendgate.core.reservation import Resolution
from spendgate.core.usage import Usage
from spendgate.store import usage as usage_store
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.usage import claim_usage
from tests.cli.conftest import CommandLine
from tests.operators import LEAF, Clock, admit, lose


@pytest.fixture
def used(applied: CommandLine, ledger: Ledger, clock: Clock) -> CommandLine:
    """Two models on two days."""
    for number, (cost, model) in enumerate((("0.04", "house-model"), ("0.0000001", "house-model"), ("0.25", "large"))):
        reservation = admit(ledger, clock(), held="0.5", number=number)
        actual = Amounts(usd=usd(cost), requests=1, tokens=1520)
        usage = Usage(input_uncached=1000, cache_read=500, output=20, fees=(("web_search", number),))
        ended = Resolution(
            state="settled", reason="answered", actual=actual, usage=usage, provider="openai", model=model
        )
        ledger.resolve(reservation.id, ended, clock())
        clock.turn(hours=-12)
    clock.turn(hours=36)
    return applied


def test_a_person_sees_a_line_for_each_with_a_bar_the_total_and_nothing_rounded(used: CommandLine) -> None:
    shown = used("report", "--by", "model")

    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[0] == ["all", "budgets,", "2026-11-01", "to", "2026-11-30", "(UTC)"]
    assert lines[1] == ["model", "calls", "input", "output", "cost"]
    assert lines[2][:5] == ["large", "1", "1,500", "20", "$0.25"]
    assert lines[3][:5] == ["house-model", "2", "3,000", "40", "$0.0400001"]
    assert lines[4] == ["total", "3", "4,500", "60", "$0.2900001"]
    full, part = lines[2][5], lines[3][5]
    assert (set(full), set(part)) == ({"█"}, {"█", "·"})
    assert len(full) == len(part)
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_days_stand_in_their_order_and_a_program_gets_one_document_whatever_the_parts(
    used: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_store, "STEPS_MAX", 1)
    shown = used("report", "--by", "day")
    found = json.loads(used("report", "--by", "day", "--json").stdout)

    assert [line[:10] for line in shown.stdout.splitlines()[2:4]] == ["2026-11-29", "2026-11-30"]
    assert [row["cost"] for row in found["rows"]] == ["0.2500001", "0.04"]
    assert found["total"]["cost"] == "0.2900001"
    assert found["total"]["usage"] == {
        "input_uncached": 3000, "cache_read": 1500, "output": 60, "fees": {"web_search": 3},
    }  # fmt: skip
    assert "next" not in found


def test_a_spreadsheet_gets_every_bucket_and_fee(used: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "november.csv"

    shown = used("report", "--by", "budget,model", "--csv", str(file))
    alone = used("report", "--by", "budget,model", "--csv", "-")

    rows = list(csv.DictReader(StringIO(file.read_text(encoding="utf-8"))))
    assert [(row["budget"], row["model"], row["cost_usd"]) for row in rows] == [
        (LEAF, "house-model", "0.0400001"),
        (LEAF, "large", "0.25"),
    ]
    assert (rows[0]["input_uncached"], rows[0]["cache_read"], rows[0]["fee:web_search"]) == ("2000", "1000", "1")
    assert "2 rows are written to" in shown.stdout
    assert alone.stdout == file.read_text(encoding="utf-8")


def test_what_is_held_is_told_beneath_with_what_to_do_and_is_no_cost(
    used: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    lose(ledger, admit(ledger, clock(), held="0.125", number=9), clock())

    shown = used("report", "--budget", "acme")

    assert "Beside it $0.125 is held now for calls that have not ended." in shown.stdout
    told = " ".join(shown.stdout.split())
    assert "$0.125 of that is of unknown outcome: spendgate reservations list --state unknown --budget acme" in told
    assert "$0.2900001" in shown.stdout
    assert "0.4150001" not in shown.stdout


def test_what_a_report_may_miss_is_told(used: CommandLine, config: Config, clock: Clock) -> None:
    claim_usage(config, clock())

    shown = used("report", "--from", "2026-01-01")

    assert "Usage of runs before 2026-12-01 may be missing" in shown.stdout


def test_a_time_without_calls_and_a_day_that_is_none_are_told(applied: CommandLine) -> None:
    nothing = applied("report", "--from", "2026-11-02", "--to", "2026-11-02")
    wrong = applied("report", "--from", "last week")

    assert nothing.stdout.splitlines() == ["all budgets, 2026-11-02 (UTC)", "Nothing was used."]
    assert wrong.exit_code != 0
    assert "from: a day like 2026-11-30, in UTC" in wrong.output
