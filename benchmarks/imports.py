"""What the gateway's function costs to start: its imports beside boto3's, each in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LAYER: Final = ROOT / "layers" / "core"

# What functions/gateway/app.py imports, and how; the gateway itself is not put together.
GATEWAY: Final = (
    "import gc; gc.disable(); "
    "import os, uvicorn, spendgate.asgi, spendgate.observability, spendgate.settings, spendgate.wiring; "
    "gc.freeze(); gc.enable()"
)
CLIENT: Final = "from spendgate.store.client import dynamodb; dynamodb(region='us-east-1')"
PROGRAMS: Final = {
    "python alone": "pass",
    "import boto3": "import boto3",
    "import the gateway": GATEWAY,
    "import the gateway, make its client": f"{GATEWAY}; {CLIENT}",
}
# httpx takes its command line's packages along where they are installed; in the deployed layer they are not.
_WITHOUT: Final = "import sys; sys.modules.update(dict.fromkeys(('rich', 'pygments')))"
_HARNESS: Final = """\
import json, re, resource, time
{without}
start = time.process_time()
{program}
seconds = time.process_time() - start
try:
    # getrusage would tell the parent's memory, which a child begins with.
    kilobytes = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
except OSError:
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, kilobytes]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCost:
    """CPU seconds of a program's imports (median), and the greatest memory in KB."""

    name: str
    seconds: float
    kilobytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCost:
    """One module: microseconds of itself, and with all that it was the first to import."""

    name: str
    own: int
    cumulative: int


def measure(*, repetitions: int) -> list[StartCost]:
    """Return what each program takes; in turns, so that what else the machine does meets all alike."""
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in PROGRAMS}
    for _ in range(repetitions):
        for name, program in PROGRAMS.items():
            seconds, kilobytes = json.loads(_run(["-c", _HARNESS.format(program=program, without=_WITHOUT)]).stdout)
            taken[name].append((seconds, kilobytes))
    return [
        StartCost(
            name=name,
            seconds=median(seconds for seconds, _ in found),
            kilobytes=round(median(kilobytes for _, kilobytes in found)),
        )
        for name, found in taken.items()
    ]


def modules() -> list[ImportCost]:
    """Return every module that the gateway's imports load, as ``-X importtime`` times them."""
    lines = _run(["-X", "importtime", "-c", f"{_WITHOUT}; {GATEWAY}"]).stderr.splitlines()
    fields = (line.removeprefix("import time:").split("|") for line in lines if line.startswith("import time:"))
    return [
        ImportCost(name=name.strip(), own=int(own), cumulative=int(cumulative))
        for own, cumulative, name in fields
        if own.strip().isdigit()
    ]


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": str(LAYER), "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
