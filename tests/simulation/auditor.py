"""An auditor with a naive model of its own: lists of what was reserved and billed, and every question is a sum over them.

It sees each write of the store as it is applied and each request as it reaches a provider, and holds them to the
guarantees G1 to G10 of docs/architecture.md. It reads DynamoDB's items as they stand, by rules of its own, and imports nothing
of the core. What it finds is kept; the first finding ends the history.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from spendgate.errors import Refused
from tests.simulation.admissions import Admissions
from tests.simulation.books import Books
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
    import httpx

    from tests.simulation.actors import Actor, Process
    from tests.simulation.providers import Arrival
    from tests.simulation.world import World

_NEXT: Final[Mapping[str, tuple[str, ...]]] = {
    "in_flight": ("unknown", "settled", "released", "charged"),
    "unknown": ("settled", "released", "charged"),
}
# What a sweeper waits for before it charges; docs/ledger.md.
CHARGE_AFTER: Final = timedelta(hours=72)


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
        self._latest = datetime.min.replace(tzinfo=UTC)
        self.overbilled: set[str] = set()

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
        changes: Mapping[Place, tuple[Item | None, Item | None]],
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
            budgets.update(dict.fromkeys(self._moved(actor, process, old, new, changes).budgets))

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
        changes: Mapping[Place, tuple[Item | None, Item | None]],
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

    # -- a reservation moves

    def _moved(
        self,
        actor: Actor,
        process: Process,
        old: Item,
        new: Item,
        changes: Mapping[Place, tuple[Item | None, Item | None]],
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
        changes: Mapping[Place, tuple[Item | None, Item | None]],
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
            self.overbilled.add(held.id)
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
                last = held.arrivals[-1] if held.arrivals else None
                if last is None and actor.kind != "operator":
                    self.fault("G6", f"{held.id} is settled and nothing was sent")
                if (
                    last is not None
                    and last.fair
                    and not held.unpriced
                    and usd not in self._world.prices_of(held, last)
                ):
                    self.fault("G6", f"{held.id} is settled at {usd}; {last.billed} were billed and said so")

    # -- providers and callers

    def attempted(self, actor: Actor) -> None:
        """A connection to a provider is about to be made for a call."""
        held = self._sent_for(actor)
        if held is not None:
            if held.attempts and not held.failover:
                self.fault("G3", f"{actor.name} tries a further candidate, and no budget opts in")
            held.attempts += 1

    def _sent_for(self, actor: Actor) -> Held | None:
        """Return the reservation that a call is sent under: the last, unless that was written when nobody waited any more."""
        mine = self.by_call.get(actor.number, [])
        return next((one for one in reversed(mine) if not one.late), mine[-1] if mine else None)

    def arrived(self, actor: Actor, process: Process, arrival: Arrival, request: httpx.Request) -> None:
        """A request that can be billed has reached a provider."""
        held = self._sent_for(actor)
        if held is None:
            self.fault("G2", f"{actor.name} reaches {arrival.provider} without a reservation")
            return
        # A sweeper whose clock is ahead may have called it unknown already; the money is held all the same.
        if not held.open:
            self.fault("G2", f"{actor.name} reaches {arrival.provider} and {held.id} is {held.state}")
        if held.arrivals and not (held.failover and all(one.proves for one in held.arrivals)):
            self.fault("G3", f"{actor.name} reaches {arrival.provider} a second time")
        if not arrival.over and not held.unpriced and arrival.billed > held.asked["usd"]:
            self.fault("G8", f"{actor.name} is billed {arrival.billed} and holds {held.asked['usd']}")
        told = b"".join(value for _, value in request.headers.raw) + request.content
        if actor.call.secret.encode() in told:
            self.fault("G10", f"{actor.name}'s own key leaves")
        held.arrivals.append(arrival)

    def refused(self, actor: Actor, refused: Refused) -> None:
        """A call has got no answer from a provider."""
        self.outcomes[refused.code] += 1
        arrivals = [one for held in self.by_call.get(actor.number, ()) for one in held.arrivals]
        if actor.process.dead:
            return
        if refused.code == "internal_fault":
            self.fault("a fault", f"{actor.name}: {refused} {refused.__cause__!r}")
        elif refused.code not in ("outcome_unknown", "provider_unreachable", "provider_refused_us") and arrivals:
            self.fault("G2", f"{actor.name} is refused ({refused.code}) and was sent")

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
