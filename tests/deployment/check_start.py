"""The cold path: the gateway of the built function and layer, started as the Web Adapter starts it, to its first answer."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.deployment.stack import EMULATOR, REGION, ROOT, free_port, until_ready

# The least of so many: what else runs on the machine only ever adds.
TRIES = 3


def environment(built: Path) -> dict[str, str]:
    """Return what Lambda gives a function of this stack; nothing is there to be reached, and nothing is asked."""
    return {
        "PATH": f"{EMULATOR}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(built / "CoreLayer" / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AWS_LAMBDA_FUNCTION_NAME": "gateway",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "SPENDGATE_LEDGER_TABLE": "ledger",
        "SPENDGATE_CONFIG_TABLE": "config",
        "SPENDGATE_REGION": REGION,
        "POWERTOOLS_SERVICE_NAME": "proof",
        "POWERTOOLS_METRICS_NAMESPACE": "Spendgate",
    }


def started(built: Path) -> float:
    """Start the gateway by its handler, and return the seconds until /healthz answers."""
    port = free_port()
    began = time.perf_counter()
    process = subprocess.Popen(
        ["./run.sh"],
        cwd=ROOT / "functions" / "gateway",
        env=environment(built) | {"PORT": str(port)},
        stdin=subprocess.DEVNULL,
    )
    try:
        # As often as the adapter asks.
        until_ready(f"http://127.0.0.1:{port}/healthz", process, every=0.01)
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()


def imported(built: Path) -> float:
    """Return the seconds that a program takes which imports boto3, of the same layer, and nothing else."""
    began = time.perf_counter()
    subprocess.run([EMULATOR / "python", "-c", "import boto3"], env=environment(built), check=True)
    return time.perf_counter() - began


def test_the_gateway_answers_after_a_start_and_how_long_that_takes(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first of each fills the machine's cache of files.
    ours, theirs = (min([one(built) for _ in range(TRIES + 1)][1:]) for one in (started, imported))

    assert ours > 0
    with capsys.disabled():
        print(f"\nfirst /healthz after {ours:.2f} s: {ours / theirs:.1f} x `import boto3`, which takes {theirs:.2f} s")  # noqa: T201
