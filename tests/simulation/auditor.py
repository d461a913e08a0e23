"""An auditor with a naive model of its own: lists of what was reserved and billed, and every question is a sum over them.

It sees each write of the store as it is applied and each request as it reaches a provider, and holds them to the
guarantees G1 to G10 of docs/architecture.md. It reads DynamoDB's items as they stand, by rules of its own, and imports nothing
of the core. What it finds is kept; the first finding ends the history.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.simulation.admissions import Admissions
from tests.simulation.books import Books
from tests.simulation.egress import Egress
from tests.simulation.endings import Changes, Endings
from tests.simulation.records import (
    CONFIG,
    LEDGER,
    Held,
    Item,
    Place,
    amounts,
    is_unbudgeted,
    limits_in,
    number,
    parsed,
    prefixes,
    text,
)

if TYPE_CHECKING:
    from tests.simulation.actors import Actor, Process
    from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class Finding:
    """A guarantee that does not hold, by the step at which that was seen."""

    guarantee: str
    told: str
    step: int

    def __str__(self) -> str:
        return f"{self.guarantee}: {self.told} (step {self.step})"


class Auditor:
    """Watches one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.findings: list[Finding] = []
        self.held: dict[str, Held] = {}
        self.by_call: dict[int, list[Held]] = {}
        self.admitted = 0
        self.outcomes: Counter[str] = Counter()
        self._seen: dict[Place, Item] = {}
        self._books = Books(self.fault)
        self._admissions = Admissions(self.fault, self.held, self._seen, self._books)
        self._endings = Endings(self.fault, self.held, self._books, self.outcomes, world.prices_of)
        self.egress = Egress(self.fault, self.by_call, self._seen, self.outcomes)
        self._latest = datetime.min.replace(tzinfo=UTC)

    def fault(self, guarantee: str, told: str) -> None:
        """Keep a finding."""
        self.findings.append(Finding(guarantee, told, self._world.steps))

    def learn(self) -> None:
        """Take what stands in the store for what it began with."""
        for table in (LEDGER, CONFIG):
            for key, item in self._world.store.items(table).items():
                self._seen[table, key] = item

    # -- writes of the store

    def written(self, actor: Actor, process: Process, touched: Sequence[Place], *, late: bool) -> None:
        """Look at every item that a write has changed."""
        self._latest = max(self._latest, process.clock())
        changes = {}
        for place in touched:
            table, key = place
            old, new = self._seen.get(place), self._world.store.items(table).get(key)
            # A transaction that is repeated under its token changes nothing.
            if old is not new:
                changes[place] = (old, new)
        budgets: dict[str, None] = {}
        for place, (old, new) in changes.items():
            self._look(actor, process, place, old, new, changes, budgets, late=late)
        for (_, (pk, _sk)), (old, new) in changes.items():
            if pk.startswith("BUDGET#"):
                path = pk.removeprefix("BUDGET#")
                budgets[path] = None
                self._books.changed(actor, process, path, old, new)
                if old is None and new is not None and actor.kind != "operator":
                    self._run_begins(actor, path, new)
        for place, (_, new) in changes.items():
            if new is None:
                self._seen.pop(place, None)
            else:
                self._seen[place] = new
        for path in budgets:
            self._books.conserved(path, self._seen.get((LEDGER, (f"BUDGET#{path}", "BUDGET"))), actor)

    def _look(
        self,
        actor: Actor,
        process: Process,
        place: Place,
        old: Item | None,
        new: Item | None,
        changes: Changes,
        budgets: dict[str, None],
        *,
        late: bool,
    ) -> None:
        pk = place[1][0]
        if not pk.startswith("RES#"):
            return
        if new is None:
            self.fault("G5", f"reservation {pk} is gone, by {actor.name}")
        elif old is None:
            held = self._reserved(actor, process, new, changes, late=late)
            budgets.update(dict.fromkeys(held.budgets))
        else:
            budgets.update(dict.fromkeys(self._endings.moved(actor, process, old, new, changes).budgets))

    def _run_begins(self, actor: Actor, path: str, run: Item) -> None:
        """A run has what its budget's policy gives to each, or less."""
        above = self._seen.get((LEDGER, (f"BUDGET#{path.rpartition('/')[0]}", "BUDGET")), {})
        if "runs" not in above:
            self.fault("G10", f"{actor.name} makes budget {path}, and the one above allows no runs")
            return
        given, has = limits_in(above["runs"]["M"]), limits_in(run)
        wider = [pair for pair, maximum in given.items() if has.get(pair, maximum + 1) > maximum]
        if wider or text(run, "mode") != text(above, "mode"):
            self.fault("G10", f"{actor.name} makes run {path} with more than it is given: {wider}")

    # -- a reservation begins

    def _reserved(
        self,
        actor: Actor,
        process: Process,
        item: Item,
        changes: Changes,
        *,
        late: bool,
    ) -> Held:
        path = text(item, "path") or ""
        holds = json.loads(item["holds"]["S"])
        policies = {}
        for budget in prefixes(path):
            old, new = changes.get((LEDGER, (f"BUDGET#{budget}", "BUDGET")), (None, None))
            if new is None:
                self.fault("G4", f"{actor.name} reserves on {path} and not on {budget}")
            # A run's first call makes its budget.
            policies[budget] = old or new or {}
        held = Held(
            id=item["id"]["S"],
            path=path,
            created=parsed(item["created_at"]["S"]),
            deadline=parsed(item["deadline"]["S"]),
            asked=amounts(item["asked"]),
            actor=actor,
            counters={budget: tuple(counters) for budget, counters, _ in holds},
            buckets={budget: tuple(buckets) for budget, _, buckets in holds},
            late=late,
            failover=any("failover" in policy for policy in policies.values()),
            unpriced="unpriced" in item,
            idempotency=text(item, "idempotency_key"),
        )
        if actor.kind != "call" or text(item, "state") != "in_flight":
            self.fault("G6", f"{actor.name} makes a reservation that is {text(item, 'state')}")
        self._admissions.judge(held, policies, latest=self._latest)
        if held.unpriced and not is_unbudgeted(policies.values()):
            self.fault("G7", f"{actor.name} is admitted without a price on {path}")
        self.held[held.id] = held
        self.by_call.setdefault(actor.number, []).append(held)
        self.admitted += 1
        self._books.reserved(held)
        return held

    # -- the end

    def finished(self) -> None:
        """All faults are over, and the sweeper has come long after: nothing is held any more."""
        for one in self.held.values():
            if one.open:
                self.fault("G5", f"{one.id} is {one.state} still")
            if one.actual["usd"] < one.owed:
                self.fault("G8", f"{one.id} came to {one.actual['usd']}, {one.billed} were billed")
        for place, item in self._seen.items():
            if place[1][0].startswith("BUDGET#") and (number(item, "reserved") or number(item, "unknown")):
                self.fault("G5", f"{place[1][0]} holds money that no reservation explains")
            if place[1][0] == "BLOCK" and not self._is_told(item["reservation"]["S"]):
                self.fault("G1", f"{item['reservation']['S']} broke its bound, and nobody was told")

    def _is_told(self, word: str) -> bool:
        return any(word in message.email for message in self._world.told)
