"""A wrong file, or a missing secret: told before anything starts, and before anything is spent."""

import json
from pathlib import Path

import pytest

from spendgate.core.money import usd
from tests.scenarios.caller import Plan
from tests.scenarios.configurations import configuration, key_of
from tests.scenarios.processes import Money, callers, gateway, provider, spendgate

# Each with the line that the error must name, and a word of what it says; None: the whole file is meant.
WRONG_FILES = {
    "not-yaml": (b"version: 1\nbudgets: [acme\n", 3, ""),
    "not-text": b"version: 1\n# \xff\n",
    "unknown-and-negative": (b"version: 1\nbudgets:\n  acme: {limits: {usd: {month: -5}}}\nbogus: 1\n", 3, "month"),
    "said-twice": (b"version: 1\nbudgets:\n  acme: {limits: {usd: {day: 1}}}\nbudgets: {}\n", 4, "budgets"),
    "contradictory": (
        b"version: 1\nbudgets:\n  acme: {limits: {usd: {day: 1}}}\nkeys:\n  triage: {budget: other}\n",
        5,
        "keys.triage.budget",
    ),
    "of-no-version": (b"budgets:\n  acme: {limits: {usd: {day: 1}}}\n", None, "version"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file_is_told_line_by_line_and_starts_nothing(tmp_path: Path, name: str) -> None:
    wrong = WRONG_FILES[name]
    content, line, word = wrong if isinstance(wrong, tuple) else (wrong, None, "UTF-8")
    file = tmp_path / "spendgate.yaml"
    file.write_bytes(content)
    done = spendgate("local", "--config", str(file), "--port", "0", state=tmp_path / "state")

    assert done.returncode == 5
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    told = [one for one in done.stderr.splitlines()[1:] if line is None or f"line {line}: " in one]
    assert told
    assert any(word in one for one in told)
    # Not even the folder of its state.
    assert [entry.name for entry in tmp_path.iterdir()] == ["spendgate.yaml"]


def test_a_program_gets_each_problem_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "spendgate.yaml"
    file.write_bytes(b"version: 1\nbudgets:\n  acme: {limits: {usd: {month: -5}}}\nbogus: 1\n")
    done = spendgate("local", "--config", str(file), "--port", "0", "--json", state=tmp_path / "state")
    assert done.returncode == 5
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "configuration_invalid"
    assert [problem["line"] for problem in error["problems"]] == [3, 4]


def test_a_missing_secret_of_a_provider_refuses_the_call_and_frees_its_money(tmp_path: Path) -> None:
    with provider() as demo, callers(1) as group:
        text = configuration(demo.url, {"acme": usd("1")}).replace(
            "    dialect: openai\n", "    dialect: openai\n    secret: env:A_KEY_THAT_NOBODY_SET\n"
        )
        with gateway(tmp_path / "state", text) as running:
            (refused,) = group.call(Plan(url=running.url, key=key_of("acme"), calls=1))
            assert (refused.status, refused.code) == (502, "provider_refused_us")
            assert "A_KEY_THAT_NOBODY_SET" in refused.facts["message"]
            assert demo.hits() == 0
            assert running.money("acme") == Money(ledger=0, held=0)
            running.audit()
