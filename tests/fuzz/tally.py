"""What many cases come to: run in batches, so that every core has some."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.case import drawn, run


@dataclass(slots=True)
class Tally:
    """What one dialect's cases came to."""

    cases: int = 0
    refused: int = 0
    ratio: float = 0.0
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.refused += other.refused
        self.ratio = max(self.ratio, other.ratio)
        self.wrong += other.wrong


def batch(task: tuple[str, int, int, int]) -> tuple[str, Tally]:
    """Run the cases of one dialect from one number to another."""
    dialect, seed, start, stop = task
    tally = Tally()
    for number in range(start, stop):
        name = f"{seed}/{number}"
        outcome = run(drawn(dialect, name), name)
        tally.cases += 1
        tally.refused += outcome.refused is not None
        tally.ratio = max(tally.ratio, outcome.ratio)
        if outcome.wrong:
            tally.wrong.append((name, outcome.wrong))
    return dialect, tally
