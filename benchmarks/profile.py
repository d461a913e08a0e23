"""Each part of a call in CPU milliseconds: what a call costs, times the share that a sampler sees of each part."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from benchmarks import shares
from benchmarks.cpu import seconds_per_call, warm
from benchmarks.rig import Rig, chat_body

TOP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A kind of call: its CPU seconds, and of its largest parts the name, the seconds and the share."""

    name: str
    seconds: float
    parts: tuple[tuple[str, float, float], ...]


async def measure(rig: Rig, *, calls: int, repetitions: int) -> list[Profile]:
    """Profile whole and streamed calls of 1 KB, on a path of three budgets."""
    found = []
    for name, stream in (("a whole call of 1 KB", False), ("a streamed call of 1 KB and 50 chunks", True)):
        await warm(rig)
        body = chat_body(1000, stream=stream)
        seconds = median([await seconds_per_call(rig, body, calls) for _ in range(repetitions)])
        parts = await shares.measure(rig, calls=calls * repetitions, stream=stream)
        largest = tuple((part, seconds * share, share) for part, share in parts[:TOP])
        found.append(Profile(name=name, seconds=seconds, parts=largest))
    return found
