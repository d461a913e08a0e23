"""``spendgate demo``, as anybody runs it: in a process of its own, over HTTP, within a bounded time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spendgate.core.money import usd
from spendgate.local import demo, demo_render
from spendgate.local.demo_agent import Agent, Look, PromiseBroken, Standing

LAYER = Path(__file__).parents[2] / "layers" / "core"
SECONDS_MAX = 120


def _ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spendgate.cli.main", "demo", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(LAYER), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS_MAX,
        check=False,
    )


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    ran = _ran(tmp_path_factory.mktemp("demo"), "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def test_at_every_step_settled_and_reserved_stay_within_a_tenth_of_a_cent(facts: dict[str, Any]) -> None:
    steps = [*facts["steps"], facts["fitted"]]

    assert {usd(step["maximum"]) for step in steps} == {usd("0.001")}
    assert all(usd(step["settled"]) + usd(step["reserved"]) <= usd("0.001") for step in steps)


def test_what_the_provider_billed_is_never_more_than_what_the_ledger_holds(facts: dict[str, Any]) -> None:
    runaway = [*facts["steps"], facts["fitted"]]

    assert all(usd(step["billed_usd"]) <= usd(step["settled"]) + usd(step["reserved"]) for step in runaway)
    assert usd(facts["billed_usd"]) <= usd(facts["ledger_usd"])


def test_each_step_costs_more_than_the_last_and_no_more_than_was_reserved(facts: dict[str, Any]) -> None:
    answered = [step for step in facts["steps"] if step["status"] == 200]
    costs = [usd(step["cost_usd"]) for step in answered]

    assert len(answered) >= 2
    assert costs == sorted(set(costs))
    assert all(usd(step["cost_usd"]) <= usd(step["bound_usd"]) for step in answered)


def test_the_refused_step_does_not_reach_the_provider_and_says_what_would_fit(facts: dict[str, Any]) -> None:
    refusal = facts["refusal"]

    assert (refusal["status"], refusal["code"], refusal["retryable"]) == (402, "over_budget", False)
    assert refusal["hits_before"] == refusal["hits_after"] == len(facts["steps"]) - 1
    assert usd(refusal["settled"]) + usd(refusal["reserved"]) + usd(refusal["asked"]) > usd("0.001")
    assert facts["fitted"]["output_cap"] == refusal["fits"]["max_output_tokens"]
    assert facts["fitted"]["status"] == 200


def test_of_a_crowd_only_what_was_admitted_reaches_the_provider(facts: dict[str, Any]) -> None:
    crowd = facts["crowd"]

    assert crowd["hits"] == crowd["admitted"] >= 1
    assert crowd["admitted"] + sum(crowd["refused"].values()) == crowd["calls"] == 20
    assert usd(crowd["most_usd"]) <= usd(crowd["maximum"])


def test_the_money_of_a_call_that_hangs_stays_held_as_unknown(facts: dict[str, Any]) -> None:
    hung = facts["hung"]

    assert (hung["status"], hung["code"]) == (504, "outcome_unknown")
    assert usd(hung["unknown"]) == usd(hung["reserved"]) >= usd(hung["billed_usd"]) > 0
    assert hung["then"]["code"] == "over_budget"
    assert hung["command"].startswith(f"spendgate reconcile settle {hung['reservation']} ")


def test_as_many_calls_are_admitted_as_reach_the_provider(facts: dict[str, Any]) -> None:
    assert facts["provider_hits"] == facts["admitted_calls"] == facts["reservations"]
    assert facts["audit_differences"] == 0


def test_of_the_crowd_as_many_are_admitted_as_fit_into_the_limit(facts: dict[str, Any]) -> None:
    crowd = facts["crowd"]

    assert crowd["admitted"] == usd(crowd["maximum"]) // usd(crowd["bound_usd"])
    assert set(crowd["refused"]) == {"429 budget_busy"}


def test_people_see_the_same_without_a_traceback_on_eighty_columns(tmp_path: Path) -> None:
    ran = _ran(tmp_path)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "over_budget" in ran.stdout
    assert "outcome_unknown" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert max(len(line) for line in ran.stdout.splitlines()) <= 80
    assert [line for line in ran.stdout.splitlines() if line != line.rstrip()] == []
    assert list(tmp_path.iterdir()) == []
    assert _masked(ran.stdout) == _masked(_shown_in_the_readme())


def _masked(text: str) -> str:
    """Return the demo's text without what differs each time: the ids of reservations."""
    return re.sub(r"\b[0-9A-Z]{26}\b", "ID", text)


def _shown_in_the_readme() -> str:
    readme = (LAYER.parents[1] / "README.md").read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    return next(block for block in blocks if block.startswith("spendgate demo"))


class _Screen:
    def __init__(self) -> None:
        self.text = ""

    def print(self, *objects: Any, end: str = "\n", style: str | None = None, soft_wrap: bool | None = None) -> None:
        self.text += "".join(map(str, objects)) + end


def test_a_promise_that_does_not_hold_ends_the_demo_with_exit_code_1_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def look(self: Agent, key: str) -> Look:
        raise PromiseBroken("demo/runaway: settled 1 + reserved 1 > limit 1")

    monkeypatch.setattr(Agent, "look", look)
    screen = _Screen()

    assert demo.run_demo(console=screen, as_json=False) == 1
    assert "A promise did not hold: demo/runaway: settled 1 + reserved 1 > limit 1" in screen.text


@pytest.mark.parametrize(
    ("settled", "reserved", "unknown", "maximum", "marks"),
    [
        (0, 0, 0, 100, "·"),
        (100, 0, 0, 100, "█"),
        (1, 2, 1, 10**12, "█▒?·"),
        (25, 50, 25, 125, "█▒?·"),
        (0, 0, 0, 0, "·"),
    ],
)
def test_in_a_bar_what_is_not_nothing_has_a_cell(
    settled: int, reserved: int, unknown: int, maximum: int, marks: str
) -> None:
    budget = Standing(path="a", maximum=maximum, settled=settled, reserved=reserved, unknown=unknown)

    text = "".join(str(piece[0]) for piece in demo_render.bar(budget))

    assert len(text) == demo_render.BAR_WIDTH
    assert "".join(dict.fromkeys(text)) == marks
