"""The check before a release, as it is run against an account: on a throwaway stack, of which nothing is left; and on one that is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.deployment.proof import Proof
from tests.deployment.stack import REGION, ROOT, ROOT_KEYS, SAM, STACK, Emulator, for_sam
from tools.release_check.throwaway import PREFIX


def release_check(
    emulator: Emulator, *arguments: str | Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the check with the account's root as who runs it."""
    environment = (
        os.environ
        | for_sam(emulator.folder, ROOT_KEYS)
        | {
            "AWS_ENDPOINT_URL": emulator.url,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "core"))),
            **(more or {}),
        }
    )
    endpoint = f"{emulator.url}/_aws/execute-api/{{ApiId}}/v"
    command = [sys.executable, "-m", "tools.release_check", "--emulated", "--endpoint", endpoint, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def left_of_throwaways(emulator: Emulator) -> list[str]:
    """Return the names of everything of a throwaway stack that is still there."""
    stacks = emulator.client("cloudformation").list_stacks()["StackSummaries"]
    found = [one["StackName"] for one in stacks if one["StackStatus"] != "DELETE_COMPLETE"]
    found += emulator.client("dynamodb").list_tables()["TableNames"]
    found += emulator.client("sqs").list_queues().get("QueueUrls", [])
    found += [one["Name"] for one in emulator.client("secretsmanager").list_secrets()["SecretList"]]
    found += [one["RoleName"] for one in emulator.client("iam").list_roles()["Roles"]]
    found += [one["FunctionName"] for one in emulator.client("lambda").list_functions()["Functions"]]
    return [one for one in found if PREFIX in one]


def test_a_throwaway_stack_passes_and_nothing_is_left_of_it(
    emulator: Emulator, built: Path, parameters: Mapping[str, str]
) -> None:
    mine = [part for name, value in parameters.items() for part in ("--parameter", f"{name}={value}")]
    done = release_check(emulator, "--built", built, "--sam", SAM, *mine)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 15
    assert "FAILED" not in done.stdout
    assert "removed  stack spendgate-check-" in done.stdout
    assert left_of_throwaways(emulator) == []


def test_a_deployment_that_fails_leaves_nothing_either(emulator: Emulator, built: Path, tmp_path: Path) -> None:
    fails = tmp_path / "sam"
    fails.write_text("#!/bin/sh\necho no rights to do so\nexit 3\n", encoding="utf-8")
    fails.chmod(0o755)
    done = release_check(emulator, "--built", built, "--sam", fails)

    assert done.returncode == 1
    assert "no rights to do so" in done.stdout
    assert left_of_throwaways(emulator) == []


def test_a_stack_that_is_there_is_looked_at_and_stays_as_it_is(proof: Proof) -> None:
    key = {"SPENDGATE_KEY": proof.keys["whole"]}
    done = release_check(proof.stack.emulator, "--stack", STACK, "--region", REGION, "--model", "demo", more=key)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 8
