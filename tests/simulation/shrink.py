"""The shortest history found that still fails: events are left out, then faults, as long as a finding of the kind remains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.simulation.world import History, World

RUNS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Ran:
    """What a history came to: the guarantee of its first finding, None without one; and its events."""

    guarantee: str | None
    events: tuple[int, ...]


def run(history: History) -> Ran:
    """Run a history."""
    world = World(history)
    world.run()
    found = world.auditor.findings
    return Ran(found[0].guarantee if found else None, tuple(world.events))


def shrunk(
    history: History,
    *,
    run: Callable[[History], Ran] = run,
    said: Callable[[str], None] = lambda _: None,
    runs_max: int = RUNS_MAX,
) -> History:
    """Return a shorter history with a finding of the same guarantee; the history itself where it has none."""
    first = run(history)
    if first.guarantee is None:
        return history
    runs = 0

    def fails(candidate: History) -> bool:
        nonlocal runs
        runs += 1
        return run(candidate).guarantee == first.guarantee

    def fewer(events: Sequence[int], made: Callable[[frozenset[int]], History], what: str) -> frozenset[int]:
        """Leave out ever smaller parts: half, a quarter, ... one."""
        kept, size = list(events), len(events)
        while size >= 1:
            at = 0
            while at < len(kept) and runs < runs_max:
                without = kept[:at] + kept[at + size :]
                if fails(made(frozenset(without))):
                    kept = without
                    said(f"{len(kept)} {what}")
                else:
                    at += size
            size //= 2
        return frozenset(kept)

    kept = fewer(first.events, lambda events: replace(history, kept=events), "events")
    short = replace(history, kept=kept)
    troubled = fewer(sorted(kept), lambda events: replace(short, troubled=events), "events with faults")
    return replace(short, troubled=troubled)
