"""The auditor's judgement of how a reservation ends: its state, what it comes to, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tests.simulation.books import Books
from tests.simulation.records import LEDGER, Held, Item, Place, amounts, number, text

if TYPE_CHECKING:
    from tests.simulation.actors import Actor, Process
    from tests.simulation.bills import Bill
    from tests.simulation.providers import Arrival

Changes = Mapping[Place, tuple[Item | None, Item | None]]

_NEXT: Final[Mapping[str, tuple[str, ...]]] = {
    "in_flight": ("unknown", "settled", "released", "charged"),
    "unknown": ("settled", "released", "charged"),
}
# What a sweeper waits for before it charges; docs/ledger.md.
CHARGE_AFTER: Final = timedelta(hours=72)


class Endings:
    """Judges each change of a reservation. ``prices_of`` is what an answer may come to."""

    def __init__(
        self,
        fault: Callable[[str, str], None],
        held: Mapping[str, Held],
        books: Books,
        outcomes: Counter[str],
        prices_of: Callable[[Held, Arrival, Bill], set[int]],
    ) -> None:
        self.fault = fault
        self.held = held
        self.outcomes = outcomes
        self._books = books
        self._prices_of = prices_of

    def moved(
        self,
        actor: Actor,
        process: Process,
        old: Item,
        new: Item,
        changes: Changes,
    ) -> Held:
        held = self.held[new["id"]["S"]]
        before, after = held.state, text(new, "state") or ""
        for name in ("path", "asked", "holds", "quotes", "created_at", "deadline", "fingerprint"):
            if old.get(name) != new.get(name):
                self.fault("G6", f"{name} of {held.id} changes")
        if before == after:
            if not held.open:
                self.fault("G6", f"{actor.name} writes to {held.id}, which is {before} already")
            return held
        if after not in _NEXT.get(before, ()):
            self.fault("G6", f"{actor.name} makes {held.id} {after}, which was {before}")
            return held
        self.outcomes[after] += 1
        if not text(new, "reason"):
            self.fault("G5", f"{held.id} is {after} and nothing says why")
        held.state = after
        if after == "unknown":
            self._books.unknown(held)
            for one in new.get("stops_on_unknown", {"L": []})["L"]:
                _, budget = changes.get((LEDGER, (f"BUDGET#{one['S']}", "BUDGET")), (None, None))
                if budget is None or "stop" not in budget:
                    self.fault("G1", f"{held.id} is unknown, and {one['S']} goes on")
            return held
        held.actual = amounts(new.get("actual", {"M": {}}))
        self._ended(actor, process, held, before, changes)
        return held

    def _ended(
        self,
        actor: Actor,
        process: Process,
        held: Held,
        before: str,
        changes: Changes,
    ) -> None:
        self._books.ended(held, before)
        usd = held.actual["usd"]
        if held.actual["requests"] != 1:
            self.fault("G9", f"{held.id} has ended and does not count as one request")
        if usd < held.owed:
            self.fault("G8", f"{held.id} is {held.state} at {usd} by {actor.name}; {held.billed} were billed")
        self._lawful(actor, process, held)
        _, leaf = changes.get((LEDGER, (f"BUDGET#{held.path}", "BUDGET")), (None, None))
        if usd > held.asked["usd"] and not held.unpriced:
            if leaf is None or "stop" not in leaf:
                self.fault("G1", f"{held.id} broke its bound, and {held.path} goes on")
            if not any(pk == "BLOCK" for _, (pk, _) in changes):
                self.fault("G1", f"{held.id} broke its bound, and nothing is blocked")
        spent = sum(
            number(after, "cost") - number(was or {}, "cost")
            for (_, (pk, _)), (was, after) in changes.items()
            if pk == f"USAGE#{held.path}" and after is not None
        )
        if spent != usd:
            self.fault("G9", f"the usage record of {held.path} grew by {spent} with {held.id}, which came to {usd}")

    def _lawful(self, actor: Actor, process: Process, held: Held) -> None:
        """What ends a reservation is a bill, a proof, or a charge in full; never time alone."""
        usd, asked = held.actual["usd"], held.asked["usd"]
        match held.state:
            case "released":
                if usd != 0:
                    self.fault("G6", f"{held.id} is released and came to {usd}")
                if any(not one.proves for one in held.arrivals) and actor.kind != "operator":
                    self.fault("G5", f"{actor.name} releases {held.id} without a proof")
                if actor.kind not in ("call", "message", "operator"):
                    self.fault("G5", f"{actor.name} releases {held.id}")
            case "charged":
                if usd != asked:
                    self.fault("G6", f"{held.id} is charged at {usd} and held {asked}")
                if actor.kind == "sweep" and process.clock() < held.deadline + CHARGE_AFTER:
                    self.fault("G5", f"{actor.name} charges {held.id} before its time")
            case _:
                self._settled(actor, held)

    def _settled(self, actor: Actor, held: Held) -> None:
        last = held.arrivals[-1] if held.arrivals else None
        if last is None:
            if actor.kind != "operator":
                self.fault("G6", f"{held.id} is settled and nothing was sent")
            return
        usd = held.actual["usd"]
        if last.fair and not held.unpriced and usd not in self._fair(actor, held, last):
            self.fault("G6", f"{held.id} is settled at {usd}; {last.billed} were billed and said so")
        if last.fair and actor.kind in ("call", "message"):
            self._counted(held, last)

    def _fair(self, actor: Actor, held: Held, last: Arrival) -> set[int]:
        """Return what a fair answer may be settled at."""
        found = {last.billed} | self._prices_of(held, last, last.bill)
        if actor.kind in ("sweep", "operator"):
            # Whoever asks long after does not know for how long a cache was to keep what it wrote.
            longest = replace(last.bill, written=0, written_long=last.bill.written + last.bill.written_long)
            found |= {one for one in self._prices_of(held, last, longest) if one <= held.asked["usd"]}
        return found

    def _counted(self, held: Held, last: Arrival) -> None:
        """What an answer says that it used counts for every measure."""
        if held.actual["tokens"] != last.bill.tokens:
            self.fault("G6", f"{held.id} counts {held.actual['tokens']} tokens; {last.bill.tokens} were used and told")
        if held.actual["tool_calls"] != held.asked["tool_calls"]:
            self.fault("G6", f"{held.id} brought {held.asked['tool_calls']} results of tools, and that changes")
