"""How often what goes wrong; each seed has its own weather, and some have none."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

# Of a thousand operations of the store, in bad weather.
_FAULTS: Final = (("conflict", 30), ("busy", 15), ("unreachable", 8), ("lost", 15), ("forgotten", 6), ("late", 6))
_WRITES_ONLY: Final = frozenset({"lost", "forgotten", "late"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """``severity`` is 0 in calm weather and 1 in bad; ``deaths`` and ``trouble`` are chances of a call."""

    severity: float
    lags: float
    deaths: float
    trouble: float

    def fault(self, random: Random, operation: str) -> str:
        """Draw what an operation meets."""
        chance = random.random() * 1000
        for name, weight in _FAULTS:
            chance -= weight * self.severity
            if chance < 0:
                if name in _WRITES_ONLY and not operation.endswith(("write_items", "update_item", "put_item")):
                    return "unreachable"
                return name
        return "none"


def weather_of(random: Random) -> Weather:
    """Draw a weather."""
    return Weather(
        severity=random.choice((0.0, 0.3, 1.0, 1.0, 3.0)),
        lags=random.choice((0.0, 0.02, 0.2)),
        deaths=random.choice((0.0, 0.01, 0.03)),
        trouble=random.choice((0.0, 0.2, 0.5, 0.8)),
    )
