"""Who acts in a history: processes that may die at any step, each with a clock of its own, and what acts within them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from tests.simulation.virtual import SECOND, Killed, Loop

# Clocks differ by so much at most: less than half of what the sweeper leaves the counters of a period that is over.
SKEW_MAX: Final = 100 * SECOND


@dataclass(slots=True, eq=False)
class Process:
    """What dies as one: a gateway's function, a sweeper's, an operator's."""

    name: str
    loop: Loop
    epoch: datetime
    skew: int = 0
    # Of a million microseconds so many are added.
    drift: int = 0
    dead: bool = False
    started: int = 0

    def clock(self) -> datetime:
        """Return the time by this process's clock."""
        return self.epoch + timedelta(microseconds=self.loop.micros + self.offset)

    @property
    def offset(self) -> int:
        """How far the clock is ahead of the truth."""
        off = self.skew + (self.loop.micros - self.started) * self.drift // SECOND
        return max(-SKEW_MAX, min(SKEW_MAX, off))

    def check(self) -> None:
        """Killed where the process is dead: nothing of it does anything any more."""
        if self.dead:
            raise Killed(self.name)


@dataclass(slots=True, eq=False)
class Actor:
    """One thread of a history: a call, a sweep, an operator's command; all that it draws comes from a seed of its own."""

    number: int
    kind: str
    random: Random
    process: Process
    # Nothing goes wrong for it.
    calm: bool = False
    steps: int = 0
    # The process dies at this step of it.
    dies_at: int | None = None
    # What the call is about, for those who serve it.
    call: Any = None
    story: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.kind} {self.number}"


def seeded(*words: object) -> Random:
    """Return a generator that these words alone decide."""
    return Random("/".join(map(str, words)))  # noqa: S311 - it is to be repeated


def start_of(random: Random) -> datetime:
    """Return an instant that is soon followed by the end of something."""
    ends = ("2026-11-30T23:40", "2026-11-30T23:59", "2026-12-31T23:55", "2027-02-28T22:58", "2026-12-05T10:03")
    return datetime.fromisoformat(random.choice(ends)).replace(tzinfo=UTC, second=random.randrange(60))
