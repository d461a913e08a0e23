"""The operators' commands against a real admin API on the emulated store."""

import json

import pytest

from spendgate.admin import Admin
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.errors import LedgerUnavailable
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.cli.conftest import CommandLine
from tests.operators import FILE, LEAF, Clock, admit, lose, settle


def edit(run: CommandLine, old: str, new: str) -> None:
    path = run.folder / "spendgate.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_apply_shows_its_plan_asks_applies_and_shows_a_new_key_once(run: CommandLine) -> None:
    first = run("apply", "-f", "spendgate.yaml", input="y\n")
    again = run("apply", "-f", "spendgate.yaml")

    assert first.exit_code == 0, first.output
    assert "+  budget    acme" in first.stdout
    assert "Plan: 7 to add" in first.stdout
    assert "Apply this? [y/N]" in first.stderr
    (line,) = [line for line in first.stdout.splitlines() if "export SPENDGATE_KEY=sg-" in line]
    assert len(line.strip()) == len("export SPENDGATE_KEY=sg-") + 32
    assert again.exit_code == 0
    assert "Nothing to change" in again.stdout
    assert "sg-" not in again.stdout


def test_declining_or_not_answering_changes_nothing(run: CommandLine, ledger: Ledger) -> None:
    declined = run("apply", "-f", "spendgate.yaml", input="n\n")
    silent = run("apply", "-f", "spendgate.yaml", input="")

    assert declined.exit_code == 1
    assert silent.exit_code == 130
    assert "--yes" in silent.stderr
    assert ledger.budgets() == ()


def test_apply_in_json_is_one_document_and_asks_nothing(run: CommandLine) -> None:
    assert run("apply", "-f", "spendgate.yaml", "--json").exit_code == 2

    document = run.json("apply", "-f", "spendgate.yaml", "--yes")

    assert document["complete"]
    assert document["keys"]["triage-prod"].startswith("sg-")
    assert run.json("apply", "-f", "spendgate.yaml", "--yes")["keys"] == {}


def test_a_plan_changes_nothing_and_can_be_a_check(applied: CommandLine, ledger: Ledger) -> None:
    assert applied("plan", "-f", "spendgate.yaml", "--check").exit_code == 0
    edit(applied, "day: 40}", "day: 50, life: 7}")
    before = ledger.budgets()

    shown = applied("plan", "-f", "spendgate.yaml")
    checked = applied("plan", "-f", "spendgate.yaml", "--check", "--json")

    assert shown.exit_code == 0
    assert "usd.day 40 → 50" in shown.stdout
    assert "+ usd.life 7" in shown.stdout
    assert checked.exit_code == 1
    assert json.loads(checked.stdout)["writes"] == 1
    assert ledger.budgets() == before


def test_a_file_can_come_from_stdin(applied: CommandLine) -> None:
    result = applied("plan", "-f", "-", input=FILE)

    assert result.exit_code == 0
    assert "Nothing to change" in result.stdout


def test_every_problem_of_a_file_is_told_with_its_line(run: CommandLine) -> None:
    edit(run, "month: 5000", "month: -1")
    edit(run, "default_output_tokens", "defualt_output_tokens")

    text = run("apply", "-f", "spendgate.yaml", "--yes")
    as_json = run("apply", "-f", "spendgate.yaml", "--yes", "--json")

    assert text.exit_code == 5
    assert "error: the configuration has 2 problems" in text.stderr
    assert "  line 9: budgets.acme.limits.usd.month: " in text.stderr
    assert as_json.exit_code == 5
    assert as_json.stdout == ""
    error = json.loads(as_json.stderr)["error"]
    assert error["code"] == "configuration_invalid"
    assert [problem["line"] for problem in error["problems"]] == [9, 12]


def test_a_file_that_is_no_text_or_too_large_is_a_usage_error(run: CommandLine) -> None:
    for content in (b"\xff\xfe", b"#" * 600_000):
        (run.folder / "spendgate.yaml").write_bytes(content)
        assert run("plan", "-f", "spendgate.yaml").exit_code == 2


def test_status_shows_exact_small_amounts_and_never_nothing_for_something(
    applied: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    settle(ledger, admit(ledger, clock.now, held="0.0004", number=1), clock.now, cost="0.000000000001")
    lose(ledger, admit(ledger, clock.now, held="0.00025", number=2), clock.now)

    result = applied("status")

    assert result.exit_code == 0
    assert "$0.000000000001 settled" in result.stdout
    assert "$0.00025 unknown" in result.stdout
    assert "$0.000250000001 of $40" in result.stdout
    assert "$0.00 " not in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())


def test_status_of_one_budget_shows_it_and_what_is_below(applied: CommandLine) -> None:
    document = applied.json("status", "acme/search")

    assert [budget["path"] for budget in document["budgets"]] == ["acme/search", LEAF]
    missing = applied("status", "acme/nowhere")
    assert (missing.exit_code, missing.stderr) == (4, "error: there is no budget 'acme/nowhere'\n")


def test_a_stop_and_a_resume_tell_what_they_did_and_are_in_the_trail(applied: CommandLine) -> None:
    stopped = applied("stop", LEAF, "--reason", "it [red]loops")
    tree = applied("status")
    resumed = applied("resume", LEAF, "--reason", "fixed")
    again = applied("resume", LEAF, "--reason", "fixed")
    trail = applied.json("events", "--limit", "2")["events"]

    assert stopped.exit_code == 0
    assert f"spendgate resume {LEAF} --reason TEXT" in stopped.stdout
    assert ": it [red]loops" in tree.stdout
    assert (resumed.exit_code, resumed.stdout) == (0, f"{LEAF} is resumed.\n")
    assert again.exit_code == 4
    assert [event["kind"] for event in trail] == ["budget_resumed", "budget_stopped"]
    assert [event["reason"] for event in trail] == ["fixed", "it [red]loops"]
    assert trail[0]["by"] not in ("", "admin")


def test_a_key_is_made_listed_and_revoked(applied: CommandLine) -> None:
    made = applied("keys", "create", "ci", "--budget", LEAF, "--model", "agent-model", "--expires", "2027-01-01")
    listed = applied("keys", "list")
    revoked = applied("keys", "revoke", "ci")

    assert made.exit_code == 0, made.output
    assert f"Key ci for {LEAF}: agent-model, until 2027-01-01. Shown this once:" in made.stdout
    secret = made.stdout.partition("SPENDGATE_KEY=")[2].strip()
    assert len(secret) == 35
    assert f"ci           {LEAF}  agent-model  2027-01-01  live\n" in listed.stdout
    assert secret not in listed.stdout
    assert (revoked.exit_code, revoked.stdout) == (0, "Key ci is revoked.\n")
    assert [key["state"] for key in applied.json("keys", "list")["keys"]] == ["revoked", "live"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["keys", "create", "ci", "--budget", "nowhere"], "there is no budget 'nowhere'"),
        (["keys", "create", "triage-prod", "--budget", LEAF], "there is a key triage-prod already"),
        (["keys", "create", "ci", "--budget", LEAF, "--expires", "soon"], "expires_at: a date like 2027-01-31"),
        (["keys", "create", "ci", "--budget", LEAF, "--expires", "2020-01-01"], "expires_at: must lie in the future"),
        (["keys", "revoke", "a.b-c_d"], "there is no key a.b-c_d"),
        (["reservations", "show", "nonsense"], "id: a reservation's id has 26 capital letters and digits"),
        (["reservations", "show", "0" * 26], "there is no reservation 000"),
        (["stop", LEAF, "--reason", "  "], "reason: one line of 1 to 1000 characters"),
        (["reconcile", "settle", "0" * 26, "--cost", "0,5", "--evidence", "x"], "cost: '0,5' is not a decimal number"),
    ],
)
def test_what_the_gateway_refuses_is_told_in_its_words(applied: CommandLine, arguments: list[str], told: str) -> None:
    result = applied(*arguments)

    assert result.exit_code == 4
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {told}")


def test_reservations_are_listed_and_shown(applied: CommandLine, ledger: Ledger, clock: Clock) -> None:
    settle(ledger, admit(ledger, clock.now, held="0.4", number=1), clock.now, cost="0.25")
    lost = admit(ledger, clock.now, held="0.3", number=2)
    lose(ledger, lost, clock.now)

    listed = applied("reservations", "list")
    unknown = applied.json("reservations", "list", "--state", "unknown", "--budget", "acme", "--limit", "5")
    shown = applied("reservations", "show", lost.id)

    assert f"{lost.id}  " in listed.stdout
    assert "$0.3 held" in listed.stdout
    assert [one["id"] for one in unknown["reservations"]] == [lost.id]
    assert "because      no answer before the deadline" in shown.stdout
    assert applied.json("reservations", "show", lost.id)["reserved"]["usd"] == "0.3"


def test_an_unknown_call_is_settled_by_hand_and_the_audit_is_clean(
    applied: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    lost = admit(ledger, clock.now, held="0.3")
    lose(ledger, lost, clock.now)

    done = applied("reconcile", "settle", lost.id, "--cost", "0.0125", "--evidence", "usage page")
    other = applied("reconcile", "release", lost.id, "--evidence", "usage page")
    audit = applied("audit")

    assert done.exit_code == 0
    assert f"{lost.id} is settled: $0.0125 of $0.3 that were held" in done.stdout
    assert other.exit_code == 4
    assert "already settled at 0.0125 USD" in other.stderr
    assert (audit.exit_code, audit.stdout) == (0, "Clean: 3 budgets against 1 reservation, no difference.\n")


def test_asking_a_provider_that_proves_nothing_changes_nothing_and_exits_1(
    applied: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    lost = admit(ledger, clock.now, held="0.3")
    lose(ledger, lost, clock.now)

    done = applied("reconcile", "ask", lost.id)

    assert done.exit_code == 1
    assert "Nothing is proven, and nothing was changed: " in done.stdout
    assert applied.json("reservations", "show", lost.id)["state"] == "unknown"


def test_settling_above_what_was_held_says_that_the_budget_is_stopped(
    applied: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    lost = admit(ledger, clock.now, held="0.3")
    lose(ledger, lost, clock.now)

    done = applied("reconcile", "settle", lost.id, "--cost", "0.5", "--evidence", "the bill")

    assert f"  spendgate resume {LEAF} --reason TEXT\n" in done.stdout
    assert applied.json("status", LEAF)["budgets"][0]["stop"]["reservation"] == lost.id


def test_an_audit_that_finds_a_difference_prints_it_and_exits_1(
    applied: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    admit(ledger, clock.now, held="0.4")
    ledger.client.update_item(
        TableName=ledger.table,
        Key={"pk": {"S": f"BUDGET#{LEAF}"}, "sk": {"S": "BUDGET"}},
        UpdateExpression="ADD #r :x",
        ExpressionAttributeNames={"#r": "reserved"},
        ExpressionAttributeValues={":x": {"N": "-1"}},
    )

    text, document = applied("audit"), applied.json("audit")

    assert text.exit_code == 1
    assert "NOT clean" in text.stdout
    assert "0.399999999999" in text.stdout
    assert document["differences"][0]["found"] == "0.399999999999"


def test_a_plan_that_is_overtaken_is_refused(run: CommandLine, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    def yes_but_meanwhile(*args: object, **more: object) -> bool:
        admin.apply(FILE, by="bob")
        return True

    monkeypatch.setattr("click.confirm", yes_but_meanwhile)

    result = run("apply", "-f", "spendgate.yaml")

    assert result.exit_code == 4
    assert "plan again" in result.stderr


def test_a_plan_shows_what_is_added_changed_and_taken_away(applied: CommandLine) -> None:
    edit(applied, "agent-model: [{", "other-model: [{provider: openai, model: other-model}, {")
    edit(applied, "triage-prod: {budget: acme/search/triage, models: [agent-model]", "second: {budget: acme")
    edit(applied, 'request: "0.50", hour: 5, ', "")
    edit(applied, 'input: "2.50"', 'input: "1"')

    result = applied("plan", "-f", "spendgate.yaml")

    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in (
        "- key triage-prod revoked",
        "- route agent-model deleted",
        "~ budget acme/search/triage - usd.request 0.5",
        "- usd.hour 5",
        "+ key second budget acme",
        "= provider openai as it is",
        "Plan: 2 to add, 1 to change, 1 to revoke, 1 to delete",
    ):
        assert line in lines, result.stdout
    assert "candidates openai/other-model," in result.stdout
    assert "! price" in " ".join(result.stdout.split())
    assert "warning: route other-model: openai/other-model has no price row" in result.stdout.replace("\n", " ")


def test_an_apply_that_breaks_off_shows_the_keys_it_made_and_says_to_run_it_again(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(run, "keys:\n", "keys:\n  second: {budget: acme}\n")
    put_key = Config.put_key

    def put_only_the_first(self: Config, key: Key, event: Event) -> None:
        if key.name != "second":
            raise LedgerUnavailable("the store cannot be reached")
        put_key(self, key, event)

    monkeypatch.setattr(Config, "put_key", put_only_the_first)
    broken = run("apply", "-f", "spendgate.yaml", "--yes")
    monkeypatch.setattr(Config, "put_key", put_key)
    finished = run.json("apply", "-f", "spendgate.yaml", "--yes")

    assert broken.exit_code == 4
    assert broken.stdout.count("export SPENDGATE_KEY=sg-") == 1
    assert "error: applying ended early: the store cannot be reached; run it again to finish" in broken.stderr
    assert list(finished["keys"]) == ["triage-prod"]


def test_a_limit_is_raised_for_a_while_shown_in_the_tree_and_kept_in_the_trail(applied: CommandLine) -> None:
    raised = applied(
        "resume", LEAF, "--reason", "the launch", "--limit", "day=80", "--limit", "requests.minute=120", "--until", "6h"
    )
    tree = " ".join(applied("status").stdout.replace("│", " ").split())
    trail = " ".join(applied("events", "--limit", "1").stdout.split())

    assert raised.exit_code == 0, raised.output
    assert f"{LEAF} is resumed, with $80 a day, 120 requests a minute until 2026-11-30 08:14:00Z." in " ".join(
        raised.stdout.split()
    )
    assert "▲ RAISED by" in tree
    assert "until 2026-11-30 08:14:00Z (in 5h 59m) to $80 a day, 120 requests a minute, instead of $40 a day, " in tree
    assert "60 requests a minute: the launch" in tree
    assert "of $80" in tree
    assert "budget raised" in trail
    assert "to $80" in trail


def test_a_raise_that_cannot_be_is_told_at_its_field(applied: CommandLine) -> None:
    wrong: list[tuple[tuple[str, ...], int, str]] = [
        (("--limit", "80"), 2, "write it like day=80"),
        (("--limit", "day=80", "--limit", "day=90"), 2, "is given twice"),
        (("--limit", "week=80", "--until", "1h"), 4, "limits.usd.week"),
        (("--limit", "day=1e3", "--until", "1h"), 4, "limits.usd.day: must be an amount in USD"),
        (("--limit", "requests.minute=many", "--until", "1h"), 4, "limits.requests.minute: must be a whole number"),
        (("--limit", "day=80", "--until", "60d"), 4, "at most 31 days ahead"),
    ]
    for options, code, said in wrong:
        answer = applied("resume", LEAF, "--reason", "the launch", *options)

        assert (answer.exit_code, said in answer.stderr) == (code, True), answer.stderr
