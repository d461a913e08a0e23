"""``make simulate``: histories from seeds, each with its auditor; a finding is shown with the shortest history that has it."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.simulation.page import fill
from tests.simulation.shrink import shrunk
from tests.simulation.world import History, World

STEPS: int = 1000
TALE_LINES_MAX: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one history came to."""

    seed: int
    steps: int
    events: int
    admitted: int
    findings: tuple[str, ...]
    outcomes: Counter[str]


def main(given: Sequence[str] | None = None) -> int:
    """Run histories; 1 where one has a finding."""
    arguments = _arguments(given)
    if arguments.only is not None:
        return _tell(
            History(seed=arguments.seed, steps=arguments.steps, kept=arguments.only, troubled=arguments.faults)
        )
    started, shown = time.monotonic(), time.monotonic()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    outcomes: Counter[str] = Counter()
    steps = events = admitted = 0
    failed: list[Result] = []
    for done, result in enumerate(_results([(seed, arguments.steps) for seed in seeds], arguments.processes), 1):
        steps, events, admitted = steps + result.steps, events + result.events, admitted + result.admitted
        outcomes.update(result.outcomes)
        if result.findings:
            failed.append(result)
            _say(f"seed {result.seed}: {result.findings[0]}")
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            _say(f"{done} seeds, {steps} steps, {len(failed)} with a finding")
    seconds = time.monotonic() - started
    told = [
        f"seeds {seeds.start} to {seeds.stop - 1}: {steps} steps, {events} events, {admitted} reservations",
        "ends: " + ", ".join(f"{name} {count}" for name, count in outcomes.most_common()),
        f"{seconds:.0f} s, {steps / max(seconds, 1e-9):.0f} steps a second, {_machine(arguments.processes)}",
        f"{len(failed)} seeds with a finding",
    ]
    for line in told:
        _say(line)
    if arguments.record:
        fill("run", "\n".join(["```", *told, "```"]))
    if failed and arguments.shrink:
        _show_shortest(History(seed=failed[0].seed, steps=arguments.steps))
    return 1 if failed else 0


def result_of(asked: tuple[int, int]) -> Result:
    """Run the history of a seed."""
    seed, steps = asked
    world = World(History(seed=seed, steps=steps))
    world.run()
    auditor = world.auditor
    return Result(
        seed=seed,
        steps=world.steps,
        events=len(world.events),
        admitted=auditor.admitted,
        findings=tuple(map(str, auditor.findings)),
        outcomes=auditor.outcomes,
    )


def _results(asked: Sequence[tuple[int, int]], processes: int) -> Iterator[Result]:
    if processes == 1:
        yield from map(result_of, asked)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(result_of, asked, chunksize=4)


def _show_shortest(history: History) -> None:
    _say(f"seed {history.seed}: looking for a shorter history")
    found = shrunk(history)
    kept, faults = (",".join(map(str, sorted(one or ()))) for one in (found.kept, found.troubled))
    _say(f"make simulate SEED={found.seed} STEPS={found.steps} ARGS='--only {kept} --faults {faults or '-'}'")
    _tell(found)


def _tell(history: History) -> int:
    """Run a history and tell it line by line."""
    world = World(history, tells=True)
    world.run()
    for line in (world.tale or [])[-TALE_LINES_MAX:]:
        _say(line)
    for finding in world.auditor.findings:
        _say(finding)
    return 1 if world.auditor.findings else 0


def _say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _machine(processes: int) -> str:
    return f"{processes} processes, Python {platform.python_version()}, {platform.machine()} {platform.system()}"


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(one) for one in text.split(",") if one.isdigit())


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each, before everything is let end")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--record", action="store_true", help="write the result into docs/simulation.md")
    parser.add_argument("--only", type=_numbers, help="only these events of the seed's, told line by line")
    parser.add_argument("--faults", type=_numbers, help="with faults for these only")
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
