"""A deployed stack with a configuration in it, in front of a provider on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from openai import OpenAI

from tests.demo_process import DemoProvider
from tests.deployment.stack import ACCOUNT, REGION, Caller, Stack

PROVIDER_KEY: Final = "the-key-that-the-provider-knows"
FIND: Final = {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}
PUT_SECRETS: Final = {
    "Effect": "Allow",
    "Action": ["secretsmanager:CreateSecret", "secretsmanager:PutSecretValue"],
    "Resource": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:spendgate/*",
}
BUDGETS: Final = ("whole", "stream", "full", "secret", "stopped", "denied", "refused", "queue", "killed", "update")
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
  acme/full: {limits: {usd: {day: "0.01"}}}
"""


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

    def hits(self) -> int:
        """How many requests have reached the provider."""
        return int(self.provider.book()["hits"])

    def budget(self, name: str) -> dict[str, Any]:
        """Return what the admin API tells of one budget."""
        found: dict[str, Any] = self.admin("GET", f"/budgets?path=acme%2F{name}")["budgets"][0]
        return found


def configured(stack: Stack, provider: DemoProvider) -> Proof:
    """Do what an operator does after a deployment: secrets, the file, keys. The provider's address is then this machine's."""
    manager = stack.emulator.client("secretsmanager")
    manager.create_secret(Name="spendgate/demo", SecretString=PROVIDER_KEY)
    manager.create_secret(Name="payroll/database", SecretString="not for the gateway")
    # What docs/operations.md has operators given.
    operator = stack.emulator.operator("operator", may_invoke(stack, "*"), FIND, PUT_SECRETS)
    proof = Proof(stack, provider, operator, {})
    file = FILE + "".join(f"  acme/{name}: {{limits: {{usd: {{day: 10}}}}}}\n" for name in BUDGETS if name != "full")
    planned = proof.admin("POST", "/plan", {"file": file})
    proof.admin("POST", "/apply", {"file": file, "plan_id": planned["plan_id"]})
    keys = {
        name: str(proof.admin("POST", "/keys", {"name": name, "budget": f"acme/{name}"})["secret"]) for name in BUDGETS
    }
    # The deployed admin API takes public https only, and is right.
    stack.dynamodb().update_item(
        TableName=stack.outputs["ConfigTable"],
        Key={"pk": {"S": "PROVIDER#demo"}, "sk": {"S": "PROVIDER"}},
        UpdateExpression="SET base_url = :url",
        ConditionExpression="attribute_exists(pk)",
        ExpressionAttributeValues={":url": {"S": f"{provider.url}/v1"}},
    )
    return Proof(stack, provider, operator, keys)


def may_invoke(stack: Stack, method: str) -> dict[str, Any]:
    """Return the statement that lets a caller use the admin API, with one HTTP method or all."""
    arn = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{stack.outputs['ApiId']}/v/{method}/admin/*"
    return {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": arn}
