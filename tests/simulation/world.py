"""One history from one seed: everything that happens, when, to whom, and what goes wrong with it.

An event (a call, an operator's command, a sweep, a step of a clock, a death) has a number; when it comes is drawn from the
seed, and all that it does from the seed and its number. So a history can be run again with events left out, and the others
remain what they were: that is how the shortest one that still fails is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

from spendgate.settings import Settings
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.transact import Timing
from tests.simulation import events, founding
from tests.simulation.actors import Actor, Process, seeded, start_of
from tests.simulation.auditor import Auditor
from tests.simulation.bills import Bill, Tariff, cost
from tests.simulation.doors import StoreDoor
from tests.simulation.gateways import Gateways
from tests.simulation.memory_store import MemoryStore
from tests.simulation.providers import Arrival
from tests.simulation.records import CONFIG, LEDGER, Held
from tests.simulation.virtual import ACTOR, SECOND, Loop
from tests.simulation.weather import weather_of

# Of a history whose events end before its steps do.
EVENTS_MAX: Final = 100_000
_MILLISECOND: Final = SECOND // 1000
_HOUR: Final = 3600 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is run: a seed, how many steps, and of the events only these (None: all), with faults for these only."""

    seed: int
    steps: int
    kept: frozenset[int] | None = None
    troubled: frozenset[int] | None = None


class World:
    """The store, the providers, the clocks and all processes of a history."""

    def __init__(self, history: History, *, tells: bool = False) -> None:
        self.history = history
        self.random = seeded(history.seed, "world")
        self.loop = Loop()  # type: ignore[abstract]
        self.weather = weather_of(self.random)
        self.epoch = start_of(self.random)
        self.store: Any = MemoryStore(self.true_time)
        self.steps = 0
        self.calm = False
        self.arrivals: list[Arrival] = []
        self.tale: list[str] | None = [] if tells else None
        self.events: list[int] = []
        self.auditor = Auditor(self)
        self.away_until = 0
        self.away_from: Process | None = None
        self.told: list[Any] = []
        self.waiting_messages = 0
        self.lost_messages = 0
        create_tables(self.store.client, ledger=LEDGER, config=CONFIG)
        self.founded = founding.found(self)
        self.auditor.learn()
        self.gateways = Gateways(self)

    # -- running

    def run(self) -> None:
        """Run the history, then let everything end."""
        try:
            self._schedule(self._times())
            self.loop.run(until=self._is_over)
            self._calm_down()
        finally:
            self.loop.close()

    def _is_over(self) -> bool:
        return self.steps >= self.history.steps or bool(self.auditor.findings)

    def _times(self) -> Any:
        """Yield the events that are kept, each with its instant and kind."""
        random = seeded(self.history.seed, "history")
        at = 0
        for number in range(EVENTS_MAX):
            gap = _gap(random)
            at += gap
            kind = events.kind_of(random)
            if gap > _HOUR and random.random() < 0.5:
                # It comes each minute: whoever is next meets it.
                kind = "sweep"
            if self.history.kept is None or number in self.history.kept:
                yield number, at, kind

    def _schedule(self, times: Any) -> None:
        for number, at, kind in times:
            self.loop.after(max(at - self.loop.micros, 0), self._begin, number, kind, times)
            return

    def _begin(self, number: int, kind: str, times: Any) -> None:
        if self.calm:
            return
        self._schedule(times)
        self.events.append(number)
        self.steps += 1
        troubled = self.history.troubled
        events.begin(self, number, kind, calm=troubled is not None and number not in troubled)

    def _calm_down(self) -> None:
        """End all faults; then every call ends, every message comes, and the sweeper does what is left."""
        self.calm = True
        self.away_until = 0
        if self.auditor.findings:
            return
        self.loop.run()
        for hours in (1, 80, 30, 30):
            self.loop.after(hours * _HOUR, events.sweep_at_last, self)
            self.loop.run()
            if self.auditor.findings:
                return
        events.tell_at_last(self)
        self.loop.run()
        self._faults_of_tasks()
        self.auditor.finished()
        events.audit_at_last(self)

    def _faults_of_tasks(self) -> None:
        for error in self.loop.troubles:
            self.auditor.fault("a fault", f"a task ended with {error!r}")

    # -- for those who act

    def step(self, actor: Actor, what: str) -> None:
        """Count a step, and let its process die at it if it is its time."""
        self.steps += 1
        actor.steps += 1
        if self.tale is not None and what:
            self.tale.append(f"{self.true_time():%m-%d %H:%M:%S.%f} {actor.process.name} {actor.name}: {what}")
        if actor.steps == actor.dies_at and not self.calm:
            actor.process.dead = True
            self.tell(actor, "its process dies")

    def tell(self, actor: Actor, what: str) -> None:
        """Write a line of the tale, which costs no step."""
        if self.tale is not None:
            self.tale.append(f"{self.true_time():%m-%d %H:%M:%S.%f} {actor.process.name} {actor.name}: {what}")

    def true_time(self) -> datetime:
        """Return the time that no clock shows exactly."""
        return self.epoch + timedelta(microseconds=self.loop.micros)

    def process(self, name: str, random: Random) -> Process:
        """Start a process, whose clock is a little wrong."""
        skew = random.choice((0, 0, 1, 5, 60)) * random.randrange(-SECOND, SECOND)
        drift = random.choice((0, 0, 100, 5000)) * random.choice((-1, 1))
        return Process(name, self.loop, self.epoch, skew=skew, drift=drift, started=self.loop.micros)

    def actor(self, number: int, kind: str, process: Process, *, calm: bool) -> Actor:
        """Return who acts in an event, with a seed of its own."""
        return Actor(number, kind, seeded(self.history.seed, number), process, calm=calm)

    def stores(self, process: Process, settings: Settings | None = None) -> tuple[Ledger, Config]:
        """Return the store as a process has it."""
        timing = Timing(
            monotonic=self.loop.time,
            sleep=lambda seconds: self.loop.wait(round(seconds * SECOND)),
            random=lambda: ACTOR.get().random.random(),  # noqa: PLW0108 - whose it is changes
            randomness=lambda count: ACTOR.get().random.randbytes(count),  # noqa: PLW0108 - as above
            deadline_seconds=2 if settings is None else settings.ledger_deadline_seconds,
        )
        door: Any = StoreDoor(self, process)
        return Ledger(LEDGER, door, timing), Config(CONFIG, LEDGER, door, timing)

    def is_away(self, process: Process) -> bool:
        """Tell whether the store cannot be reached, by all or by one."""
        return self.loop.micros < self.away_until and self.away_from in (None, process)

    def deliver(self, body: str, random: Random) -> None:
        """Let a message of the queue come: late, and now and then twice."""
        for _ in range(2 if random.random() < 0.3 else 1):
            self.waiting_messages += 1
            delay = random.choice((1, 20, 600)) * random.randrange(SECOND)
            self.loop.after(delay, events.message_comes, self, body, 1, self.waiting_messages)

    def run_as(self, actor: Actor, work: Callable[[], Any]) -> None:
        """Start a blocking piece of work of an actor."""
        token = ACTOR.set(actor)
        try:
            self.loop.offload(work).add_done_callback(lambda done: events.ended(self, actor, done))
        finally:
            ACTOR.reset(token)

    # -- prices, by arithmetic of our own

    def tariff(self, provider: str, model: str, process: Process) -> Tariff:
        """Return what tokens cost at this moment, by the clock of who asks."""
        return founding.tariff_at(self.founded, provider, model, process.clock())

    def prices_of(self, held: Held, arrival: Arrival, bill: Bill) -> set[int]:
        """Return what a bill for an answer may come to: by any price that was in force while it was made."""
        tariffs = founding.tariffs_between(
            self.founded, arrival.provider, arrival.model, held.created, self.true_time()
        )
        return {cost(bill, tariff) for tariff in tariffs}


def _gap(random: Random) -> int:
    """Draw the time to the next event: mostly none to speak of, sometimes an hour, rarely the rest of a month."""
    chance = random.random()
    if chance < 0.55:
        return random.randrange(20 * _MILLISECOND)
    if chance < 0.8:
        return random.randrange(SECOND)
    if chance < 0.94:
        return random.randrange(60 * SECOND)
    if chance < 0.985:
        return random.randrange(_HOUR)
    if chance < 0.997:
        return random.randrange(14 * _HOUR)
    return random.randrange(20 * 24 * _HOUR)
