"""The shortest history found that still fails: events are left out, then faults, as long as a finding of the kind remains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.simulation.auditor import Finding
from tests.simulation.world import History, World

RUNS_MAX = 300


def findings_of(history: History) -> tuple[tuple[Finding, ...], World]:
    """Run a history and return what its auditor found."""
    world = World(history)
    world.run()
    return tuple(world.auditor.findings), world


def shrunk(history: History, *, said: Callable[[str], None] = lambda _: None, runs_max: int = RUNS_MAX) -> History:
    """Return a shorter history with a finding of the same guarantee; the history itself where it has none."""
    found, world = findings_of(history)
    if not found:
        return history
    guarantee = found[0].guarantee
    runs = 0

    def fails(candidate: History) -> bool:
        nonlocal runs
        runs += 1
        again, _ = findings_of(candidate)
        return bool(again) and again[0].guarantee == guarantee

    def may_go_on() -> bool:
        return runs < runs_max

    kept = _fewer(
        world.events, lambda events: fails(replace(history, kept=frozenset(events))), may_go_on, said, "events"
    )
    short = replace(history, kept=frozenset(kept))
    if not fails(short):
        return history
    troubled = _fewer(
        kept, lambda events: fails(replace(short, troubled=frozenset(events))), may_go_on, said, "events with faults"
    )
    calmer = replace(short, troubled=frozenset(troubled))
    return calmer if fails(calmer) else short


def _fewer(
    events: Sequence[int],
    fails: Callable[[Sequence[int]], bool],
    may_go_on: Callable[[], bool],
    said: Callable[[str], None],
    what: str,
) -> list[int]:
    """Leave out ever smaller parts: half, a quarter, ... one."""
    kept = list(events)
    size = len(kept)
    while size >= 1:
        at = 0
        while at < len(kept) and may_go_on():
            without = kept[:at] + kept[at + size :]
            if fails(without):
                kept = without
                said(f"{len(kept)} {what}")
            else:
                at += size
        size //= 2
    return kept
