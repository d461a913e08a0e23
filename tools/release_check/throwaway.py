"""A stack of its own for the check, with a name that no other has: deployed, configured, looked at, and removed with all that it leaves.

Whatever happens in between, what was made is removed: also the tables, queues and secrets that a stack keeps when it is deleted.
"""

import contextlib
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from spendgate.core.alert import KINDS
from tools.release_check.checks import Check, CheckFailed, Subject

ROOT: Final = Path(__file__).parents[2]
PREFIX: Final = "spendgate-check-"
SAMPLES: Final = len(KINDS)
FUNCTIONS: Final = ("SweeperFunction", "AlertsFunction", "CatalogueFunction")
# Its key is made up: every call is refused, or ends, before one could leave.
FILE: Final = """\
version: 1
providers:
  check: {dialect: openai, base_url: "https://api.openai.com/v1", secret: "secretsmanager:NAME/check"}
  foreign: {dialect: openai, base_url: "https://api.openai.com/v1", secret: "secretsmanager:NAME-not/for-the-gateway"}
prices:
  - {provider: check, model: check, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}
  - {provider: foreign, model: check, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}
routes:
  check: [{provider: check, model: check}]
  foreign: [{provider: foreign, model: check}]
budgets:
  check: {limits: {usd: {day: 1}}}
  check/full: {limits: {usd: {day: "0.000001"}}}
  check/open: {limits: {usd: {day: 1}}}
"""


def new_name() -> str:
    """Return a name that no stack has."""
    return PREFIX + secrets.token_hex(4)


@dataclass(frozen=True, slots=True)
class Sam:
    """SAM's command line, and what it has built."""

    program: Path
    built: Path

    def run(self, *arguments: str | Path, region: str, say: Callable[[str], None]) -> None:
        """Run a command to its end; CheckFailed with its last words where it fails."""
        environment = os.environ | {"AWS_DEFAULT_REGION": region, "SAM_CLI_TELEMETRY": "0"}
        say(f"        sam {arguments[0]} ...")
        done = subprocess.run(  # noqa: S603 - the program that the command line names
            [self.program, *arguments],
            cwd=self.built,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise CheckFailed(f"sam {arguments[0]} ended with {done.returncode}: {done.stdout[-2000:]}")


@contextlib.contextmanager
def deployed(
    session: boto3.Session, name: str, sam: Sam, parameters: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[Mapping[str, str]]:
    """Deploy a stack and yield its outputs; remove it with what it leaves, whatever happens in the block."""
    if not name.startswith(PREFIX):
        raise ValueError(f"a throwaway stack's name begins with {PREFIX}")
    mine = {"SecretPrefix": f"{name}/", "ApiLogging": "no", **parameters}
    command: list[str | Path] = [
        "deploy", "--template-file", sam.built / "template.yaml", "--config-file", ROOT / "samconfig.toml",
        "--stack-name", name, "--no-confirm-changeset", "--no-progressbar",
        "--parameter-overrides", *(f"{key}={value}" for key, value in mine.items()),
    ]  # fmt: skip
    manager = session.client("secretsmanager")
    try:
        for secret in _secrets(name):
            manager.create_secret(Name=secret, SecretString="sk-no-provider-knows-this")
        sam.run(*command, region=session.region_name, say=say)
        yield outputs_of(session, name)
    finally:
        remove(session, name, sam, say)


def outputs_of(session: boto3.Session, name: str) -> Mapping[str, str]:
    """Return a stack's outputs by their names; ClientError where there is no such stack."""
    found = session.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
    return {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}


def remove(session: boto3.Session, name: str, sam: Sam, say: Callable[[str], None]) -> None:
    """Delete the stack, then what it keeps; CheckFailed where something of it is left."""
    cloudformation = session.client("cloudformation")
    kept, left = [], None
    if _exists(cloudformation, name):
        kept = [
            (one["ResourceType"], one["PhysicalResourceId"])
            for one in cloudformation.describe_stack_resources(StackName=name)["StackResources"]
            if one["ResourceType"] in KEPT and one.get("PhysicalResourceId")
        ]
        try:
            # It deletes what was uploaded too.
            command = ("delete", "--stack-name", name, "--no-prompts", "--region", session.region_name)
            sam.run(*command, region=session.region_name, say=say)
        except CheckFailed as failed:
            left = failed
    for kind, physical in kept:
        KEPT[kind](session, physical)
    manager = session.client("secretsmanager")
    for secret in _secrets(name):
        with contextlib.suppress(manager.exceptions.ResourceNotFoundException):
            manager.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    if left is not None or _exists(cloudformation, name):
        raise CheckFailed(f"stack {name} is still there, delete it by hand: {left}")
    say(f"removed  stack {name}, {len(kept)} tables and queues that it kept, {len(_secrets(name))} secrets")


def _delete_table(session: boto3.Session, name: str) -> None:
    client = session.client("dynamodb")
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.get_waiter("table_exists").wait(TableName=name)
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name)


def _delete_queue(session: boto3.Session, url: str) -> None:
    session.client("sqs").delete_queue(QueueUrl=url)


# What a stack keeps when it is deleted, and how it goes.
KEPT: Final[Mapping[str, Callable[[boto3.Session, str], None]]] = {
    "AWS::DynamoDB::Table": _delete_table,
    "AWS::SQS::Queue": _delete_queue,
}


def _secrets(name: str) -> tuple[str, str]:
    """Return the secret within the prefix, and the one outside of it."""
    return f"{name}/check", f"{name}-not/for-the-gateway"


@dataclass(slots=True)
class Throwaway:
    """What is tried on a stack that nobody else uses."""

    subject: Subject
    name: str
    key: str = ""

    def configure(self) -> str:
        """An operator's file is planned and applied, and keys are made."""
        file = FILE.replace("NAME", self.name)
        planned = self.subject.admin("POST", "/plan", {"file": file})
        applied = self.subject.admin("POST", "/apply", {"file": file, "plan_id": planned["plan_id"]})
        if applied["complete"] is not True:
            raise CheckFailed(str(applied["failure"]))
        self.key = str(self.subject.admin("POST", "/keys", {"name": "open", "budget": "check/open"})["secret"])
        return f"{planned['writes']} writes"

    def over_budget(self) -> str:
        """A call that does not fit is refused with 402, once, and reserves nothing."""
        key = str(self.subject.admin("POST", "/keys", {"name": "full", "budget": "check/full"})["secret"])
        answer = self._call(key)
        if (answer.status_code, answer.headers.get("x-should-retry")) != (402, "false"):
            raise CheckFailed(f"{answer.status_code}: {answer.text[:300]}")
        self._reserves_nothing("check/full")
        return str(answer.json()["error"]["code"])

    def foreign_secret(self) -> str:
        """The gateway's role may read no secret outside of its prefix; nothing is sent, and the money is released."""
        answer = self._call(self.key, model="foreign")
        if answer.status_code != 502 or "cannot be read" not in answer.text:
            raise CheckFailed(f"{answer.status_code}: {answer.text[:300]}")
        self._reserves_nothing("check/open")
        return "502"

    def stopped(self) -> str:
        """A stop holds from the next call on, and its reason reaches the caller."""
        self.subject.admin("POST", "/stop", {"path": "check/open", "reason": "the check stops it"})
        answer = self._call(self.key)
        if answer.status_code != 402 or "the check stops it" not in answer.text:
            raise CheckFailed(f"{answer.status_code}: {answer.text[:300]}")
        return "402"

    def revoked(self) -> str:
        """A revoked key is refused from the next call on."""
        self.subject.admin("POST", "/keys/open/revoke", {})
        answer = self._call(self.key)
        if answer.status_code != 401:
            raise CheckFailed(f"{answer.status_code}: {answer.text[:300]}")
        return "401"

    def functions(self) -> str:
        """The schedules' functions do their work."""
        client = self.subject.session.client("lambda")
        names = self.subject.session.client("cloudformation")
        for logical in FUNCTIONS:
            detail = names.describe_stack_resource(StackName=self.name, LogicalResourceId=logical)
            physical = detail["StackResourceDetail"]["PhysicalResourceId"]
            answer: Any = client.invoke(FunctionName=f"{physical}:live", Payload=b"{}")
            if "FunctionError" in answer:
                raise CheckFailed(f"{logical}: {answer['Payload'].read()[:300]!r}")
        return ", ".join(FUNCTIONS)

    def alerts(self) -> str:
        """Alerts are published, one of each kind."""
        done = self.subject.admin("POST", "/alerts/test", {})
        if (done["published"], done["failed"]) != (SAMPLES, 0):
            raise CheckFailed(str(done))
        return f"{SAMPLES} published"

    def checks(self) -> Sequence[Check]:
        """Return all of them, in the order in which they build on one another."""
        tried = (self.configure, self.over_budget, self.foreign_secret, self.stopped, self.revoked)
        return (*tried, self.functions, self.alerts)

    def _call(self, key: str, *, model: str = "check") -> Any:
        body = {"model": model, "max_tokens": 1000, "messages": [{"role": "user", "content": "Never sent."}]}
        return self.subject.ask("POST", "/v1/chat/completions", {"authorization": f"Bearer {key}"}, body)

    def _reserves_nothing(self, path: str) -> None:
        (found,) = self.subject.admin("GET", f"/budgets?path={path.replace('/', '%2F')}")["budgets"]
        if found["reserved"] != "0":
            raise CheckFailed(f"{path} still holds {found['reserved']} USD")


def _exists(cloudformation: Any, name: str) -> bool:
    try:
        status = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
    except ClientError:
        return False
    return bool(status != "DELETE_COMPLETE")
