"""The deployed stack, end to end: real clients, through API Gateway, the adapter and uvicorn, to a provider and back."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import APIStatusError, AuthenticationError

from spendgate.cli import exit_codes
from tests.deployment.proof import BUDGETS, FIND, Proof, file_of, may_invoke
from tests.deployment.stack import STACK, Stack

ASKED: list[Any] = [{"role": "user", "content": "Count to ten. [[output:20]]"}]


def test_a_deployment_answers_and_its_catalogue_is_loaded(stack: Stack) -> None:
    answer = stack.call("GET", "/healthz", caller=None)

    assert answer.status_code == 200
    assert int(stack.outputs["CatalogueRows"]) > 100
    assert stack.outputs["NextCommand"] == f"spendgate apply -f spendgate.yaml --stack {STACK}"


def test_what_no_dialect_has_never_reaches_the_function(stack: Stack) -> None:
    assert stack.call("GET", "/", caller=None).status_code == 403
    assert stack.call("POST", "/v2/chat/completions", {}, caller=None).status_code == 403


def test_an_agents_call_is_answered_and_settled_to_the_picodollar(proof: Proof) -> None:
    with proof.agent("whole") as client:
        answer = client.chat.completions.with_raw_response.create(model="demo", messages=ASKED, max_tokens=50)
    usage = answer.parse().usage

    assert usage is not None
    assert usage.completion_tokens == 20
    found = proof.admin("GET", f"/reservations/{answer.headers['x-spendgate-reservation']}")
    assert found["state"] == "settled"
    cost = usage.prompt_tokens * 2_500_000 + 20 * 10_000_000
    assert proof.provider.book()["requests"][-1]["billed_picodollars"] == cost
    assert answer.headers["x-spendgate-cost-usd"] == f"{cost / 10**12:.12f}".rstrip("0")


def test_a_stream_reaches_the_client_piece_by_piece(proof: Proof) -> None:
    proof.provider.behave("ok", calls=1, between_seconds=0.05)
    with proof.agent("stream") as client:
        stream = client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50, stream=True)
        arrived = [time.monotonic() for chunk in stream if chunk.choices and chunk.choices[0].delta.content]

    assert len(arrived) >= 5
    # Were they collected somewhere on the way, all would come within a few milliseconds of the end.
    assert arrived[-1] - arrived[0] > 0.05 * (len(arrived) - 1) / 2


def test_a_refusal_reaches_the_client_once_and_the_provider_never(proof: Proof) -> None:
    before = proof.hits()
    with proof.agent("full") as client, pytest.raises(APIStatusError) as refused:
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=4000)

    assert refused.value.status_code == 402
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert isinstance(refused.value.body, dict)
    assert refused.value.body["code"] in ("over_budget", "request_too_expensive")
    assert proof.hits() == before


def test_a_key_that_is_not_one_is_refused(proof: Proof) -> None:
    with httpx.Client(trust_env=False, timeout=60) as client:
        answer = client.post(
            f"{proof.stack.url}/v1/chat/completions",
            json={"model": "demo", "messages": ASKED},
            headers={"authorization": "Bearer sg-nobody"},
        )

    assert answer.status_code == 401


def test_the_admin_api_is_for_those_whom_iam_lets_in(proof: Proof) -> None:
    stack = proof.stack
    nobody = stack.emulator.operator("nobody")
    reader = stack.emulator.operator("reader", may_invoke(stack, "GET"))

    assert stack.call("GET", "/admin/keys", caller=None).status_code == 403
    assert stack.call("GET", "/admin/keys", caller=nobody).status_code == 403
    assert stack.call("GET", "/admin/keys", caller=reader).status_code == 200
    stop = {"path": "acme/stopped", "reason": "may a reader stop?"}
    assert stack.call("POST", "/admin/stop", stop, caller=reader).status_code == 403
    assert proof.budget("stopped")["stop"] is None


def test_who_changed_what_is_in_the_trail_by_the_callers_own_arn(proof: Proof) -> None:
    proof.admin("POST", "/stop", {"path": "acme/stopped", "reason": "a fire drill"})
    before = proof.hits()
    with proof.agent("stopped") as client, pytest.raises(APIStatusError) as refused:
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50)

    assert refused.value.status_code == 402
    assert proof.hits() == before
    event = proof.admin("GET", "/events?limit=1")["events"][0]
    assert (event["kind"], event["subject"]) == ("budget_stopped", "acme/stopped")
    assert event["by"].endswith(":user/operator")


def test_a_secret_outside_the_prefix_is_refused_by_the_gateways_own_role(proof: Proof) -> None:
    before = proof.hits()
    with proof.agent("secret", retries=0) as client, pytest.raises(APIStatusError) as failed:
        client.chat.completions.create(model="foreign", messages=ASKED, max_tokens=50)

    assert failed.value.status_code == 502
    assert "payroll/database cannot be read" in str(failed.value)
    assert proof.hits() == before
    assert proof.budget("secret")["reserved"] == "0"


def test_the_schedules_functions_do_their_work(proof: Proof) -> None:
    for function in ("SweeperFunction", "CatalogueFunction", "AlertsFunction"):
        error, answer = proof.stack.invoke(function, {"version": "0", "source": "aws.scheduler"})
        assert error is None, f"{function}: {answer}"


def test_the_command_line_finds_the_stack_by_its_name_and_signs_as_the_operator(proof: Proof) -> None:
    assert "whole" in proof.spendgate("status")
    proof.spendgate("secrets", "put", "spendgate/late", given="a secret that comes late\n")
    manager = proof.stack.emulator.client("secretsmanager")
    assert manager.get_secret_value(SecretId="spendgate/late")["SecretString"] == "a secret that comes late"


def test_an_operators_day_by_the_command_line_alone(proof: Proof, tmp_path: Path) -> None:
    file = tmp_path / "spendgate.yaml"
    file.write_text(file_of({**BUDGETS, "late": "5"}), encoding="utf-8")
    assert "acme/late" in proof.spendgate("plan", "-f", str(file))
    # Its questions are a person's to answer.
    proof.spendgate("apply", "-f", str(file), given="n\n", ends=1)
    assert "acme/late" in proof.spendgate("apply", "-f", str(file), given="y\n")
    proof.move_provider_here()
    made = json.loads(proof.spendgate("keys", "create", "late", "--budget", "acme/late", "--json"))
    day = replace(proof, keys={"late": made["secret"]})
    with day.agent("late") as client:
        called = client.chat.completions.with_raw_response.create(model="demo", messages=ASKED, max_tokens=50)
    reservation = called.headers["x-spendgate-reservation"]
    listed = json.loads(proof.spendgate("reservations", "list", "--budget", "acme/late", "--json"))

    assert [one["id"] for one in listed["reservations"]] == [reservation]
    assert "settled" in proof.spendgate("reservations", "show", reservation)
    reported = json.loads(proof.spendgate("report", "--budget", "acme/late", "--by", "day,model", "--json"))
    cost = called.headers["x-spendgate-cost-usd"]
    assert [(row["model"], row["calls"], row["cost"]) for row in reported["rows"]] == [("demo", 1, cost)]
    proof.spendgate("stop", "acme/late", "--reason", "the day is over")
    with day.agent("late") as client, pytest.raises(APIStatusError, match="the day is over"):
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50)
    proof.spendgate("resume", "acme/late", "--reason", "another day")
    proof.spendgate("keys", "revoke", "late")
    with day.agent("late") as client, pytest.raises(AuthenticationError):
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50)
    proof.spendgate("audit")


def test_an_operator_without_the_right_is_told_which_one(proof: Proof) -> None:
    looks_only = replace(proof, operator=proof.stack.emulator.operator("looks", may_invoke(proof.stack, "GET"), FIND))

    assert "whole" in looks_only.spendgate("status")
    looks_only.spendgate("stop", "acme/whole", "--reason", "may I?", ends=exit_codes.REFUSED)
    assert proof.budget("whole")["stop"] is None
