"""``spendgate prices``: the real commands against a real admin API with the shipped catalogue."""

import json
import secrets
from datetime import UTC, datetime

import pytest

from spendgate.admin import Admin
from spendgate.catalogue_files import catalogue_in
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.catalogue.shipped import PRICES
from tests.cli.conftest import CommandLine
from tests.operators import FILE, Clock

SHIPPED = catalogue_in(PRICES)
# The house's own provider takes no shipped prices; "claude" takes Anthropic's.
WITH_SHIPPED = (
    FILE.replace("secret: env:OPENAI_API_KEY}", "secret: env:OPENAI_API_KEY, prices: none}")
    .replace(
        "prices:\n", "  claude: {dialect: anthropic, base_url: https://api.anthropic.com, prices: anthropic}\nprices:\n"
    )
    .replace(
        "routes:\n",
        "routes:\n"
        "  opus: [{provider: claude, model: claude-opus-5-5}]\n"
        "  haiku: [{provider: claude, model: claude-haiku-4-5-20251001}]\n",
    )
)


@pytest.fixture
def admin(ledger: Ledger, config: Config, clock: Clock) -> Admin:
    return Admin(ledger, config, clock=clock, randomness=secrets.token_bytes, loopback_http=True, catalogue=SHIPPED)


@pytest.fixture
def priced(run: CommandLine, admin: Admin) -> CommandLine:
    """The command line beside a gateway whose file has a provider with shipped prices, under a name of its own."""
    admin.apply(WITH_SHIPPED, by="ana")
    return run


def test_apply_loads_the_shipped_prices_of_the_files_providers_once(run: CommandLine) -> None:
    (run.folder / "spendgate.yaml").write_text(WITH_SHIPPED, encoding="utf-8")

    planned = run("plan", "-f", "spendgate.yaml")
    applied = run("apply", "-f", "spendgate.yaml", "--yes")
    again = run("plan", "-f", "spendgate.yaml", "--check")

    shipped = SHIPPED("anthropic") or ()
    assert ["+", "catalogue", "claude", "shipped_prices", str(len(shipped))] in [
        line.split() for line in planned.stdout.splitlines()
    ]
    assert "warning" not in planned.stdout
    assert applied.exit_code == 0
    assert (again.exit_code, "Nothing to change" in again.stdout) == (0, True)
    rows = run.json("prices", "list", "claude")["prices"]
    assert len(rows) == len(shipped)
    assert {row["origin"] for row in rows} == {"shipped"}
    trail = run.json("events", "--limit", "50")["events"]
    assert [event["subject"] for event in trail if event["kind"] == "prices_loaded"] == ["catalogue:claude"]


def test_list_shows_what_routes_reach_and_fits_eighty_columns(priced: CommandLine) -> None:
    listed = priced("prices", "list")
    everything = priced.json("prices", "list", "--all")["prices"]

    assert listed.exit_code == 0
    lines = listed.stdout.splitlines()
    assert lines[0].split() == ["model", "since", "input", "output", "read", "write", "row"]
    assert [line.split() for line in lines[1:]] == [
        ["claude/claude-haiku-4-5", "always", "1", "5", "0.1", "1.25", "shipped"],
        ["claude/claude-opus-5-5", "always", "4", "20", "0.2", "5", "shipped"],
        ["openai/house-model", "2026-01-01", "2.5", "10", "2.5", "2.5", "own"],
    ]
    assert max(map(len, lines)) <= 80
    assert len(everything) > 30


def test_list_marks_what_is_in_force_past_and_coming(priced: CommandLine) -> None:
    priced("prices", "add", "openai", "house-model", "--input", "3", "--output", "12", "--from", "2027-02-01")
    priced("prices", "add", "openai", "house-model", "--input", "1", "--output", "2", "--from", "2025-02-01")

    rows = priced.json("prices", "list", "openai")["prices"]
    listed = priced("prices", "list", "openai").stdout

    assert [(row["price"]["from"][:10], row["state"]) for row in rows] == [
        ("2025-02-01", "past"),
        ("2026-01-01", "in_force"),
        ("2027-02-01", "coming"),
    ]
    assert [row["routes"] for row in rows] == [["agent-model"]] * 3
    assert "2025-02-01" not in listed
    assert "2027-02-01" in listed


def test_show_has_what_is_shipped_beside_what_an_operator_changed(run: CommandLine, admin: Admin) -> None:
    # The operator's row was there first, so the shipped one of the same instant was not loaded.
    dearer = 'prices:\n  - {provider: claude, model: claude-opus-5-5, input: "4.4", cache_read: "0.2", output: 20}\n'
    admin.apply(WITH_SHIPPED.replace("prices:\n  -", f"{dearer}  -"), by="ana")

    shown = run("prices", "show", "claude", "claude-opus-5-5").stdout
    document = run.json("prices", "show", "claude", "claude-opus-5-5")

    (row,) = document["prices"]
    assert (row["origin"], row["price"]["input"], row["shipped"]["input"]) == ("changed", "4.4", "4")
    assert "claude/claude-opus-5-5 since always: in force, changed" in shown
    assert "4.4   (shipped: 4)" in shown
    assert "cache_read" in shown
    assert "0.2   (shipped" not in shown
    assert "none   (shipped: 1.1)" in shown


def test_show_finds_a_model_by_an_alias_and_says_where_there_is_none(priced: CommandLine) -> None:
    shown = priced("prices", "show", "claude", "claude-haiku-4-5-20251001")
    missing = priced("prices", "show", "openai", "gpt-6.2-sol")

    assert "claude/claude-haiku-4-5 since always: in force, shipped" in shown.stdout
    assert (missing.exit_code, missing.stderr) == (4, "error: there is no price of openai/gpt-6.2-sol\n")


def test_show_tells_a_shipped_row_that_is_not_loaded(priced: CommandLine, config: Config) -> None:
    (row,) = config.prices("claude", "claude-fable-5-2")
    config.client.delete_item(
        TableName=config.table,
        Key={"pk": {"S": f"PRICE#claude#{row.model}"}, "sk": {"S": "1970-01-01T00:00:00.000000Z"}},
    )
    if config.prices("claude", "claude-fable-5-2"):
        pytest.fail("the row is still there")

    (shown,) = priced.json("prices", "show", "claude", "claude-fable-5-2")["prices"]

    assert (shown["state"], shown["price"], shown["shipped"]["input"]) == ("not_loaded", None, "8")
    assert "not loaded, shipped" in priced("prices", "show", "claude", "claude-fable-5-2").stdout


def test_check_is_clean_where_every_candidate_has_a_fresh_price(priced: CommandLine) -> None:
    checked = priced("prices", "check")

    report = priced.json("prices", "check")
    shipped = SHIPPED("anthropic") or ()
    assert checked.exit_code == 0
    assert "Clean: " in checked.stdout
    assert report["clean"] is True
    assert report["providers"] == [
        {
            "provider": "claude",
            "rows": len(shipped),
            "models_priced": len({row.model for row in shipped}),
            "oldest_check": "2026-11-29",
            "newest_check": "2026-11-29",
            "without_source": 0,
        },
        {
            "provider": "openai",
            "rows": 1,
            "models_priced": 1,
            "oldest_check": None,
            "newest_check": None,
            "without_source": 1,
        },
    ]
    table = [line.split() for line in checked.stdout.splitlines()]
    assert ["openai", "1", "1", "never", "never", "1"] in table


def test_check_names_candidates_without_a_price_and_stale_prices(
    priced: CommandLine, admin: Admin, clock: Clock
) -> None:
    unknown = "routes:\n  lost: [{provider: openai, model: gpt-6.2-sol}]\n  later: [{provider: openai, model: next}]\n"
    later = "prices:\n  - {provider: openai, model: next, from: 2028-01-01, input: 1, output: 1}\n"
    admin.apply(WITH_SHIPPED.replace("routes:\n", unknown).replace("prices:\n  -", f"{later}  -"), by="ana")
    clock.now = datetime(2027, 1, 14, tzinfo=UTC)

    checked = priced("prices", "check")
    report = priced.json("prices", "check")

    assert checked.exit_code == 1
    assert [(one["route"], one["model"], one["first"]) for one in report["unpriced"]] == [
        ("later", "next", "2028-01-01T00:00:00Z"),
        ("lost", "gpt-6.2-sol", None),
    ]
    # The shipped rows that still count; an operator's own has no date of ours.
    assert {one["id"].partition("#")[0] for one in report["stale"]} == {"claude"}
    assert "claude#claude-opus-4-6#1970-01-01T00:00:00Z" not in {one["id"] for one in report["stale"]}
    assert "NOT clean: 2 unpriced" in checked.stdout


def test_add_writes_a_dated_row_with_its_event_and_never_over_an_old_one(priced: CommandLine) -> None:
    first = priced(
        "prices", "add", "openai", "new-model", "--input", "2.50", "--output", "10", "--cache-read", "0.25",
        "--cache-write", "3", "--cache-write-long", "5", "--context-tokens", "128000", "--output-tokens-max", "4096",
        "--from", "2026-11-01", "--source", "https://example.com",
    )  # fmt: skip
    same = priced.json("prices", "add", "openai", "new-model", "--input", "2.5", "--output", "10", "--cache-read", "0.25",
        "--cache-write", "3", "--cache-write-long", "5", "--context-tokens", "128000", "--output-tokens-max", "4096",
        "--from", "2026-11-01")  # fmt: skip
    over = priced("prices", "add", "openai", "new-model", "--input", "1", "--output", "1", "--from", "2026-11-01")

    assert (first.exit_code, first.stdout) == (0, "Added openai/new-model since 2026-11-01.\n")
    assert same == {"added": [], "kept": ["openai#new-model#2026-11-01T00:00:00Z"]}
    assert over.exit_code == 4
    assert "never overwritten" in over.stderr
    (row,) = priced.json("prices", "show", "openai", "new-model")["prices"]
    assert row["price"]["cache_write_long"] == "5"
    assert (row["origin"], row["state"], row["source"]) == ("own", "in_force", "https://example.com")
    event = priced.json("events", "--limit", "1")["events"][0]
    assert (event["kind"], event["subject"]) == ("price_added", "openai#new-model#2026-11-01T00:00:00Z")
    assert event["after"]["input"] == "2.5"


def test_add_begins_now_where_nothing_else_is_said(priced: CommandLine) -> None:
    before = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    added = priced.json("prices", "add", "openai", "new-model", "--input", "1", "--output", "2")["added"]

    assert [row["from"] >= before for row in added] == [True]


def test_add_takes_rows_of_a_file_or_none_of_them(priced: CommandLine) -> None:
    rows = "prices:\n  - {provider: openai, model: a, input: 1, output: 2}\n  - {provider: openai, model: b, input: 1, output: 2}\n"
    (priced.folder / "rows.yaml").write_text(rows, encoding="utf-8")
    (priced.folder / "bad.yaml").write_text(
        rows.replace("model: b", "model: c").replace("2}\n  -", "x}\n  -"), encoding="utf-8"
    )

    bad = priced("prices", "add", "-f", "bad.yaml")
    good = priced("prices", "add", "-f", "rows.yaml")
    again = priced("prices", "add", "-f", "rows.yaml")

    assert bad.exit_code == 5
    assert "line 2: prices[0].output" in bad.stderr
    assert priced("prices", "show", "openai", "c").exit_code == 4
    assert good.stdout == "Added openai/a since always.\nAdded openai/b since always.\n"
    assert again.stdout.count("is as it was") == 2


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["openai", "x", "--input", "1"], 2, "PROVIDER MODEL --input USD --output USD"),
        ([], 2, "-f FILE"),
        (["openai", "x", "--input", "-1", "--output", "1"], 5, "must be a rate"),
        (["openai", "x", "--input", "0.0000001", "--output", "1"], 5, "at most 6 decimal places"),
        (["openai", "x", "--input", "1", "--output", "1", "--from", "soon"], 5, "must be a date"),
        (["nobody", "x", "--input", "1", "--output", "1"], 5, "is not in providers"),
        (
            ["claude", "claude-haiku-4-5-20251001", "--input", "1", "--output", "1"],
            5,
            "is a name of claude/claude-haiku-4-5",
        ),
        (["openai", "-f", "spendgate.yaml"], 2, "leave provider, model and options out"),
        (["-f", "spendgate.yaml"], 5, "must be a mapping with prices:"),
    ],
)
def test_add_says_what_is_wrong(priced: CommandLine, args: list[str], code: int, told: str) -> None:
    result = priced("prices", "add", *args)

    assert result.exit_code == code, result.output
    assert told in " ".join(result.stderr.split())


def test_a_catalogue_that_is_not_shipped_is_a_problem_of_the_file(run: CommandLine) -> None:
    (run.folder / "spendgate.yaml").write_text(
        WITH_SHIPPED.replace("prices: anthropic", "prices: antropic"), encoding="utf-8"
    )

    planned = run("plan", "-f", "spendgate.yaml")

    assert planned.exit_code == 5
    assert "providers.claude.prices: there is no shipped catalogue 'antropic'" in planned.stderr


def test_a_plan_knows_what_is_shipped_and_warns_of_a_row_that_is_overtaken(run: CommandLine) -> None:
    own = "prices:\n  - {provider: openai, model: gpt-5.6-sol, input: 1, output: 1}\n"
    routes = (
        "routes:\n  sol: [{provider: openai, model: gpt-5.6-sol}]\n  lost: [{provider: openai, model: gpt-6.2-sol}]\n"
    )
    (run.folder / "spendgate.yaml").write_text(
        FILE.replace("prices:\n", own).replace("routes:\n", routes), encoding="utf-8"
    )

    warnings = json.loads(run("plan", "-f", "spendgate.yaml", "--json").stdout)["warnings"]

    assert warnings == [
        "route lost: openai/gpt-6.2-sol has no price row: calls that can reach it are refused (price_unknown)",
        (
            "openai/gpt-5.6-sol: the shipped price from 2026-08-21T00:00:00Z is newer than the file's and counts; give the "
            "file's row a later `from`, or the provider `prices: none`"
        ),
    ]
