"""Faults put into production code one at a time, to show that the simulation can fail; ``make simulate-mutants``.

Each is a piece of a module's text and what takes its place when the module is imported, in a process of its own. The
files stay as they are. A text that is not there exactly once is an error, so that no mutant is silently none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from tests.simulation.mutant import Mutant
from tests.simulation.mutations import MUTANTS
from tests.simulation.page import fill

SEEDS_MAX: Final = 400
STEPS: Final = 600
_ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Caught:
    """After how many seeds a mutant was caught (None: never), and by what."""

    mutant: Mutant
    seeds: int | None
    finding: str


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        if source.count(self._mutant.old) != 1:
            raise ImportError(
                f"mutant {self._mutant.name}: its text is in {fullname} {source.count(self._mutant.old)} times"
            )
        code: CodeType = compile(source.replace(self._mutant.old, self._mutant.new), self.path, "exec")
        return code


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin is None:
            return None
        spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


def catch(mutant: Mutant, *, seeds_max: int = SEEDS_MAX) -> Caught:
    """Run the mutant in a process of its own until it is caught."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulation.mutants", "--run", mutant.name, "--seeds", str(seeds_max)],
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (_ROOT, _ROOT / "layers" / "core")))},
    )
    if ran.returncode != 0:
        raise RuntimeError(f"mutant {mutant.name}: {ran.stderr}")
    said = json.loads(ran.stdout.splitlines()[-1])
    return Caught(mutant, said["seeds"], said["finding"])


def _run(mutant: Mutant, seeds_max: int) -> None:
    """Run histories on the mutated code, in this process, which holds nothing of the code yet."""
    sys.meta_path.insert(0, _Finder(mutant))
    from tests.simulation.world import History, World  # noqa: PLC0415 - after the finder is in place

    for seed in range(seeds_max):
        world = World(History(seed=seed, steps=STEPS))
        world.run()
        if world.auditor.findings:
            _say(json.dumps({"seeds": seed + 1, "finding": str(world.auditor.findings[0])}))
            return
    _say(json.dumps({"seeds": None, "finding": ""}))


def main() -> int:
    """Catch every mutant, and write the table; 1 where one gets away."""
    parser = argparse.ArgumentParser(prog="make simulate-mutants", description=__doc__)
    parser.add_argument("--run", help="one mutant, in this process")
    parser.add_argument("--only", help="those whose name contains this")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="at most so many of each")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.run:
        _run(next(one for one in MUTANTS if one.name == arguments.run), arguments.seeds)
        return 0
    chosen = [one for one in MUTANTS if arguments.only is None or arguments.only in one.name]
    with ThreadPoolExecutor(arguments.processes) as pool:
        caught = []
        for one in pool.map(lambda mutant: catch(mutant, seeds_max=arguments.seeds), chosen):
            caught.append(one)
            _say(f"{one.mutant.name}: {'NOT CAUGHT' if one.seeds is None else f'{one.seeds} seeds: {one.finding}'}")
    if arguments.only is None:
        fill("mutants", table(caught))
    return 1 if any(one.seeds is None for one in caught) else 0


def table(caught: Sequence[Caught]) -> str:
    """Return the table of docs/simulation.md."""
    rows = [
        f"| {one.mutant.told} | `{one.mutant.module.removeprefix('spendgate.')}` | {one.seeds or 'not caught'} "
        f"| {one.finding.partition(':')[0]} |"
        for one in caught
    ]
    head = ["| fault | module | seeds until caught | found as |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
