"""The deployed stack, end to end: real clients, through API Gateway, the adapter and uvicorn, to a provider and back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest
from openai import APIStatusError

from tests.deployment.proof import Proof, may_invoke
from tests.deployment.stack import REGION, ROOT, ROOT_KEYS, STACK, Stack

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


def test_the_release_check_finds_this_stack_in_order(proof: Proof) -> None:
    environment = (
        os.environ
        | ROOT_KEYS
        | {
            "AWS_ENDPOINT_URL": proof.stack.emulator.url,
            "SPENDGATE_KEY": proof.keys["whole"],
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "core"))),
        }
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tools.release_check",
            "--stack",
            STACK,
            "--endpoint",
            proof.stack.url,
            "--model",
            "demo",
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 8


def test_the_command_line_finds_the_stack_by_its_name_and_signs_as_the_operator(proof: Proof) -> None:
    environment = os.environ | {
        "AWS_ENDPOINT_URL": proof.stack.emulator.url,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": proof.operator.access_key,
        "AWS_SECRET_ACCESS_KEY": proof.operator.secret_key,
        "SPENDGATE_ADMIN_ENDPOINT": f"{proof.stack.url}/admin",
        "PYTHONPATH": str(ROOT / "layers" / "core"),
    }

    def spendgate(*arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "spendgate.cli.main", *arguments, "--stack", STACK],
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "whole" in spendgate("status")
    spendgate("secrets", "put", "spendgate/late", given="a secret that comes late\n")
    manager = proof.stack.emulator.client("secretsmanager")
    assert manager.get_secret_value(SecretId="spendgate/late")["SecretString"] == "a secret that comes late"
