"""A deployed stack with a configuration in it, in front of a provider on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from openai import OpenAI

from tests.demo_process import DemoProvider
from tests.deployment.stack import ACCOUNT, REGION, ROOT, STACK, Caller, Stack

WAIT_SECONDS_MAX: Final = 60
PROVIDER_KEY: Final = "the-key-that-the-provider-knows"
FIND: Final = {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}
PUT_SECRETS: Final = {
    "Effect": "Allow",
    "Action": ["secretsmanager:CreateSecret", "secretsmanager:PutSecretValue"],
    "Resource": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:spendgate/*",
}
# With what each may spend in a day.
BUDGETS: Final[Mapping[str, str]] = dict.fromkeys(
    (
        "whole",
        "stream",
        "secret",
        "stopped",
        "denied",
        "refused",
        "queue",
        "killed",
        "update",
        "silent",
        "asked",
        "waiting",
        "logged",
    ),
    "10",
) | {"full": "0.01", "told": "0.0045"}
FILE: Final = """\
version: 1
providers:
  demo:
    dialect: openai
    base_url: https://provider.example/v1
    secret: secretsmanager:spendgate/demo
    framing: {request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}
  foreign: {dialect: openai, base_url: "https://foreign.example/v1", secret: "secretsmanager:payroll/database"}
prices:
  - {provider: demo, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}
  - {provider: foreign, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}
routes:
  demo: [{provider: demo, model: demo}]
  foreign: [{provider: foreign, model: demo}]
budgets:
  acme: {limits: {usd: {month: 1000}}}
"""
ALERTS: Final = "alerts: {warn_at: [80], slack: true}\n"


@dataclass(frozen=True, slots=True)
class Proof:
    """The stack, who operates it, and the agents' keys by their budgets."""

    stack: Stack
    provider: DemoProvider
    operator: Caller
    keys: Mapping[str, str]

    def admin(self, method: str, path: str, document: Any = None) -> dict[str, Any]:
        """Ask the admin API as the operator, who is let in."""
        answer = self.stack.call(method, f"/admin{path}", document, caller=self.operator)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def agent(self, name: str, *, retries: int = 2) -> Iterator[OpenAI]:
        """Return OpenAI's own client, as an agent has it; its retries are what the SDK does by itself."""
        with OpenAI(
            base_url=f"{self.stack.url}/v1", api_key=self.keys[name], max_retries=retries, timeout=60
        ) as client:
            yield client

    def move_provider_here(self) -> None:
        """Let the provider's address be this machine's, which the deployed admin API refuses, rightly: public https only."""
        self.stack.dynamodb().update_item(
            TableName=self.stack.outputs["ConfigTable"],
            Key={"pk": {"S": "PROVIDER#demo"}, "sk": {"S": "PROVIDER"}},
            UpdateExpression="SET base_url = :url",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":url": {"S": f"{self.provider.url}/v1"}},
        )

    def spendgate(self, *arguments: str, given: str = "", ends: int = 0) -> str:
        """Run the command line as the operator has it, who names the stack, and return what it printed."""
        environment = os.environ | {
            "AWS_ENDPOINT_URL": self.stack.emulator.url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.operator.access_key,
            "AWS_SECRET_ACCESS_KEY": self.operator.secret_key,
            # The emulator serves the API at another URL than the output says.
            "SPENDGATE_ADMIN_ENDPOINT": f"{self.stack.url}/admin",
            "PYTHONPATH": str(ROOT / "layers" / "core"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "spendgate.cli.main", *arguments, "--stack", STACK],
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == ends, done.stdout + done.stderr
        return done.stdout

    def hits(self) -> int:
        """How many requests have reached the provider."""
        return int(self.provider.book()["hits"])

    def budget(self, name: str) -> dict[str, Any]:
        """Return what the admin API tells of one budget."""
        found: dict[str, Any] = self.admin("GET", f"/budgets?path=acme%2F{name}")["budgets"][0]
        return found


def configured(stack: Stack, provider: DemoProvider) -> Proof:
    """Do what an operator does after a deployment: secrets, the file, keys."""
    manager = stack.emulator.client("secretsmanager")
    manager.create_secret(Name="spendgate/demo", SecretString=PROVIDER_KEY)
    manager.create_secret(Name="payroll/database", SecretString="not for the gateway")
    # What docs/operations.md has operators given.
    operator = stack.emulator.operator("operator", may_invoke(stack, "*"), FIND, PUT_SECRETS)
    proof = Proof(stack, provider, operator, {})
    file = file_of(BUDGETS)
    planned = proof.admin("POST", "/plan", {"file": file})
    proof.admin("POST", "/apply", {"file": file, "plan_id": planned["plan_id"]})
    keys = {
        name: str(proof.admin("POST", "/keys", {"name": name, "budget": f"acme/{name}"})["secret"]) for name in BUDGETS
    }
    proof.move_provider_here()
    return Proof(stack, provider, operator, keys)


@contextmanager
def without(proof: Proof, function: str, service: str) -> Iterator[None]:
    """Take a service of AWS's from a function's role until the block ends."""
    iam, role = proof.stack.emulator.client("iam"), proof.stack.resources[f"{function}Role"]
    denied = {"Effect": "Deny", "Action": f"{service}:*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    iam.put_role_policy(RoleName=role, PolicyName="denied", PolicyDocument=document)
    try:
        yield
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="denied")


def until(holds: Callable[[], bool], *, seconds: float = WAIT_SECONDS_MAX) -> None:
    """Wait for something to hold."""
    last = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < last, "it never came to hold"
        time.sleep(0.1)


def file_of(budgets: Mapping[str, str]) -> str:
    """Return the file of configuration with budgets below acme, by what each may spend in a day."""
    return (
        FILE
        + "".join(f'  acme/{name}: {{limits: {{usd: {{day: "{day}"}}}}}}\n' for name, day in budgets.items())
        + ALERTS
    )


def may_invoke(stack: Stack, method: str) -> dict[str, Any]:
    """Return the statement that lets a caller use the admin API, with one HTTP method or all."""
    arn = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{stack.outputs['ApiId']}/v/{method}/admin/*"
    return {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": arn}
