"""The long run: ``make fuzz-parsers ARGS="--seconds 600"``, each target in turn under a coverage-guided fuzzer (atheris).

What it finds is kept as ``inputs/<target>/<hash>``, which ``make test`` tries from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.parsers.seeds import FOUND, ROOT, seeds
from tests.parsers.targets import TARGETS

# A parser that needs longer for so little hangs, even on a machine that does much else; it is the wall clock that is looked at.
INPUT_SECONDS_MAX: Final = 60
INPUT_BYTES_MAX: Final = 16 * 1024
MEMORY_MEGABYTES_MAX: Final = 2048
SAID_LINES_MAX: Final = 60
_EXECUTED: Final = re.compile(r"number_of_executed_units: (\d+)")
_COVERED: Final = re.compile(r"cov: (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of one target."""

    target: str
    inputs: int
    branches: int
    corpus: int
    found: tuple[Path, ...]
    said: str


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="make fuzz-parsers", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="this one only; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--corpus", type=Path, help="a folder that keeps what was reached, for a later run")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(chosen.workers) as pool:
        corpus = chosen.corpus or Path(scratch)
        runs = pool.map(
            lambda target: fuzz(target, corpus=corpus / target, seconds=chosen.seconds, seed=chosen.seed),
            chosen.target or list(TARGETS),
        )
        return _told(runs)


def fuzz(target: str, *, corpus: Path, seconds: int, seed: int) -> Run:
    """Fuzz one target for a time, from the corpus and the seeds."""
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds()[target]):
        (corpus / f"seed-{number:04}").write_bytes(data)
    with tempfile.TemporaryDirectory() as made:
        artifacts = Path(made) / "artifacts"
        artifacts.mkdir()
        command = [sys.executable, "-m", "tests.parsers.guided", target, str(corpus)]
        command += [f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={artifacts}/"]
        if TARGETS[target].dictionary:
            words = Path(made) / "words"
            words.write_text("".join(f'"{_quoted(word)}"\n' for word in TARGETS[target].dictionary), encoding="ascii")
            command.append(f"-dict={words}")
        command += [
            f"-timeout={INPUT_SECONDS_MAX}",
            f"-report_slow_units={INPUT_SECONDS_MAX}",
            f"-max_len={INPUT_BYTES_MAX}",
        ]
        command += [f"-rss_limit_mb={MEMORY_MEGABYTES_MAX}", "-print_final_stats=1"]
        # Twice the time: reading the corpus comes before it.
        ended, told = _heard(command, seconds_max=2 * seconds + 300)
        found = tuple(_kept(target, file) for file in sorted(artifacts.iterdir()))
    executed, covered = _EXECUTED.findall(told), _COVERED.findall(told)
    lines = [line for line in told.splitlines() if "Instrumenting" not in line]
    said = "\n".join([*lines[-SAID_LINES_MAX:], ""]) if found or not ended else ""
    return Run(
        target=target,
        inputs=int(executed[-1]) if executed else 0,
        branches=int(covered[-1]) if covered else 0,
        corpus=len(list(corpus.iterdir())),
        found=found,
        said=said,
    )


def _heard(command: list[str], *, seconds_max: int) -> tuple[bool, str]:
    """Run a command; return whether it came to a good end, and all that it said."""
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds_max,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        # The other targets go on: what they find is not lost with this one.
        heard = (error.stdout or b"").decode("utf-8", "replace")
        return False, f"{heard}\nit did not end within {seconds_max} s"
    return done.returncode == 0, done.stdout


def _told(runs: Iterable[Run]) -> int:
    broken = False
    total = 0
    for run in runs:
        total += run.inputs
        line = f"{run.target:16} {run.inputs:>11,} inputs {run.branches:>6,} branches {run.corpus:>6,} kept"
        sys.stdout.write(f"{line}  {'FOUND ' + ', '.join(map(str, run.found)) if run.found else ''}\n{run.said}")
        sys.stdout.flush()
        broken = broken or bool(run.said)
    sys.stdout.write(f"{total:,} inputs\n")
    return int(broken)


def _kept(target: str, file: Path) -> Path:
    data = file.read_bytes()
    kept = FOUND / target / hashlib.sha256(data).hexdigest()[:16]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(data)
    return kept.relative_to(ROOT)


def _quoted(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


if __name__ == "__main__":
    sys.exit(main())
