"""What the auditor reads: DynamoDB's items as they stand, by rules of its own; it imports nothing of the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.simulation.actors import Actor
    from tests.simulation.providers import Arrival

Item = Mapping[str, Any]
Place = tuple[str, tuple[str, str]]

LEDGER: Final = "ledger"
CONFIG: Final = "config"

OPEN: Final = ("in_flight", "unknown")
MEASURES: Final = ("usd", "requests", "tokens", "tool_calls", "active_milliseconds")


@dataclass(slots=True, eq=False)
class Held:
    """A reservation, as the auditor has read it from the store."""

    id: str
    path: str
    created: datetime
    deadline: datetime
    asked: dict[str, int]
    actor: Actor
    counters: dict[str, tuple[str, ...]]
    buckets: dict[str, tuple[str, ...]]
    late: bool
    failover: bool
    unpriced: bool
    state: str = "in_flight"
    actual: dict[str, int] = field(default_factory=dict)
    arrivals: list[Arrival] = field(default_factory=list)
    idempotency: str | None = None
    attempts: int = 0
    searches_max: int = 0

    @property
    def open(self) -> bool:
        return self.state in OPEN

    @property
    def counted(self) -> dict[str, int]:
        return self.asked if self.open else self.actual

    @property
    def billed(self) -> int:
        return sum(one.billed for one in self.arrivals)

    @property
    def owed(self) -> int:
        """What must be booked at least; of a bill above the bound, which nobody has shown, the bound."""
        if self.unpriced:
            return 0
        unshown = self.state != "settled" and any(one.over for one in self.arrivals)
        return min(self.billed, self.asked["usd"]) if unshown else self.billed

    @property
    def budgets(self) -> list[str]:
        return prefixes(self.path)


def key_place(key_hash: str, *, minted: bool) -> Place:
    """Return where a key stands: those that callers mint are in the ledger."""
    return LEDGER if minted else CONFIG, (f"KEY#{key_hash}", "KEY")


def prefixes(path: str) -> list[str]:
    """Return a path and all above it, the root first."""
    names = path.split("/")
    return ["/".join(names[: end + 1]) for end in range(len(names))]


def within(path: str, budget: str) -> bool:
    return path == budget or path.startswith(budget + "/")


def text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def number(item: Item, name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def parsed(written: str) -> datetime:
    return datetime.fromisoformat(written)


def amounts(written: Item) -> dict[str, int]:
    """Return what a map of amounts says, of every measure."""
    given = written["M"]
    return {measure: int(given[measure]["N"]) if measure in given else 0 for measure in MEASURES}


def counter_name(measure: str, window: str, at: datetime) -> str:
    """Return the name of the counter of a window, by the calendar."""
    when = period(window, at)
    return f"{measure}.{window}" if when is None else f"{measure}.{window}.{when}"


def period(window: str, at: datetime) -> str | None:
    written = at.astimezone(UTC).isoformat()
    return {"minute": written[:16] + "Z", "day": written[:10], "month": written[:7]}.get(window)


def is_counter(name: str) -> bool:
    return name in ("reserved", "unknown") or name.partition(".")[0] in MEASURES


def is_bucket(name: str) -> bool:
    parts = name.split(".")
    return len(parts) == 3 and parts[1] == "hour"


def limits_in(policy: Item) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for name, value in policy.get("limits", {"M": {}})["M"].items():
        measure, _, window = name.partition(".")
        found[measure, window] = int(value["N"])
    return found


def limits_at(policy: Item, at: datetime) -> dict[tuple[str, str], int]:
    """Return the limits that count at an instant: until theirs is over, temporary ones where they are higher."""
    own = limits_in(policy)
    temporary = policy.get("temporary")
    if temporary is None or at >= parsed(temporary["M"]["until"]["S"]):
        return own
    raised = limits_in(temporary["M"])
    return {pair: max(maximum, raised.get(pair, 0)) for pair, maximum in own.items()}


def is_unbudgeted(policies: Iterable[Item]) -> bool:
    listed = list(policies)
    return not any(limits_in(one) for one in listed) and any("unbudgeted" in one for one in listed)
