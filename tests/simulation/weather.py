"""How often what goes wrong; each seed has its own weather, and some have none."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.simulation.store_faults import Fault, faults_of

# Of a thousand operations of the store, in bad weather; of those of one weight any may come.
_FAULTS: Final[tuple[tuple[tuple[Fault, ...], int], ...]] = (
    (("conflict", "mixed", "throttled step"), 30),
    (("throttled", "over capacity", "in progress", "server error"), 15),
    (("unreachable",), 8),
    (("lost",), 15),
    (("forgotten",), 6),
    (("late",), 6),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """``severity`` is 0 in calm weather and 1 in bad; ``deaths`` and ``trouble`` are chances of a call."""

    severity: float
    lags: float
    deaths: float
    trouble: float

    def fault(self, random: Random, operation: str) -> Fault:
        """Draw what an operation meets: where it cannot meet what is drawn, the store is not reached."""
        chance = random.random() * 1000
        for names, weight in _FAULTS:
            chance -= weight * self.severity
            if chance < 0:
                able = [name for name in names if name in faults_of(operation, timed=True)]
                return random.choice(able) if able else "unreachable"
        return "none"


def weather_of(random: Random) -> Weather:
    """Draw a weather."""
    return Weather(
        severity=random.choice((0.0, 0.3, 1.0, 1.0, 3.0)),
        lags=random.choice((0.0, 0.02, 0.2)),
        deaths=random.choice((0.0, 0.01, 0.03)),
        trouble=random.choice((0.0, 0.2, 0.5, 0.8)),
    )
