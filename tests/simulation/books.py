"""Each budget's counters by the auditor's own sums, and what may be done to a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.records import Held, Item, is_bucket, is_counter, number, parsed, period

if TYPE_CHECKING:
    from tests.simulation.actors import Actor, Process

_POLICY: Final = (
    "limits",
    "mode",
    "unbudgeted",
    "failover",
    "runs",
    "stop_on_unknown",
    "run_expires_at",
    "elapsed_max_seconds",
)


class Books:
    """What each counter of each budget must be: the sum over its reservations, less what was taken off in its time."""

    def __init__(self, fault: Callable[[str, str], None]) -> None:
        self.fault = fault
        self._sums: dict[str, Counter[str]] = {}
        self._gone: dict[str, Counter[str]] = {}
        # Temporary limits that were cleared away, by budget.
        self.over: dict[str, Any] = {}

    def reserved(self, held: Held) -> None:
        """Count what a reservation asks."""
        for budget in held.budgets:
            sums = self._sums.setdefault(budget, Counter())
            sums["reserved"] += held.asked["usd"]
            for name in held.counters.get(budget, ()):
                sums[name] += held.asked[name.partition(".")[0]]

    def unknown(self, held: Held) -> None:
        """Count it as unknown too."""
        for budget in held.budgets:
            self._sums[budget]["unknown"] += held.asked["usd"]

    def ended(self, held: Held, before: str) -> None:
        """Count what it came to."""
        for budget in held.budgets:
            sums = self._sums[budget]
            sums["reserved"] -= held.asked["usd"]
            if before == "unknown":
                sums["unknown"] -= held.asked["usd"]
            for name in held.counters[budget]:
                measure = name.partition(".")[0]
                sums[name] += held.actual[measure] - held.asked[measure]
            for name in held.buckets[budget]:
                sums[name] += held.actual[name.partition(".")[0]]

    def changed(self, actor: Actor, process: Process, path: str, old: Item | None, new: Item | None) -> None:
        """Only operators change a policy, and what goes has had its time."""
        if new is None:
            self.fault("G9", f"budget {path} is gone")
            return
        if old is None:
            return
        if number(new, "rev") < number(old, "rev"):
            self.fault("G1", f"the revision of {path} falls")
        if actor.kind == "operator":
            self.over.pop(path, None)
        else:
            for name in _POLICY:
                if old.get(name) != new.get(name):
                    self.fault("G10", f"{actor.name} changes {name} of {path}")
            if old.get("temporary") != new.get("temporary"):
                self._falls_back(actor, process, path, old, new)
            if "stop" in old and old["stop"] != new.get("stop"):
                self.fault("G1", f"{actor.name} takes the stop off {path}")
        self._taken_off(actor, process, path, old, new)

    def _falls_back(self, actor: Actor, process: Process, path: str, old: Item, new: Item) -> None:
        """What was raised for a while may be cleared away once it is over; by a clock that is behind it still counts."""
        if "temporary" in new or parsed(old["temporary"]["M"]["until"]["S"]) > process.clock():
            self.fault("G10", f"{actor.name} changes temporary limits of {path}")
        self.over[path] = old["temporary"]

    def _taken_off(self, actor: Actor, process: Process, path: str, old: Item, new: Item) -> None:
        gone = self._gone.setdefault(path, Counter())
        for name in filter(is_counter, old.keys() - new.keys()):
            # Evicted from its hour, or of a period that is over: a sum of what comes later begins at nothing.
            self._forgotten(actor, process, path, name)
            gone[name] += number(old, name)
            if is_bucket(name):
                gone[name.rpartition(".")[0]] += number(old, name)

    def _forgotten(self, actor: Actor, process: Process, path: str, name: str) -> None:
        now = process.clock()
        _, window, *when = name.split(".")
        if is_bucket(name):
            if parsed(when[0]) + timedelta(minutes=5) > now - timedelta(hours=1):
                self.fault("G1", f"{actor.name} evicts {name} of {path} at {now}")
        elif not when or when[0] >= (period(window, now) or ""):
            self.fault("G9", f"{actor.name} removes {name} of {path} at {now}")

    def conserved(self, path: str, item: Item | None, actor: Actor) -> None:
        """Every counter is the sum."""
        if item is None:
            return
        sums, gone = self._sums.get(path, Counter()), self._gone.get(path, Counter())
        names = {name for name in item if is_counter(name)} | sums.keys()
        for name in names:
            expected = sums.get(name, 0) - gone.get(name, 0)
            if number(item, name) != expected:
                self.fault("G9", f"{name} of {path} is {number(item, name)}, not {expected}, after {actor.name}")
