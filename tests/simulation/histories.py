"""A random history of everything that the code does with its tables, from one seed, on any client.

Nothing is checked here: that is for whoever looks at the requests and at the tables afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Final

from spendgate.core.alert import Alert, AlertPolicy, CatalogueState
from spendgate.core.block import Shape
from spendgate.core.bound import Quote
from spendgate.core.budget import Amounts, BudgetPolicy, Limit, Stop, TemporaryLimits, prefixes
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.core.price import PriceRow, Terms
from spendgate.core.reservation import STATES, Reservation, Resolution, new_id
from spendgate.core.route import Candidate, Provider, Route
from spendgate.core.usage import Usage
from spendgate.core.window import Measure, Window
from spendgate.errors import LedgerUnavailable, SpendgateError
from spendgate.store.alerts import AlertStore
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger, PolicyStale
from spendgate.store.run_keys import RunKeys, TooManyKeys
from spendgate.store.transact import Timing
from tests.simulation.virtual import Killed
from tests.store.builders import a_reservation, a_row
from tests.store.faults import FakeTime

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

START: Final = datetime.fromisoformat("2026-11-29T23:14:30+00:00")
LEDGER: Final = "ledger"
CONFIG: Final = "config"

_PATHS: Final = ("a", "a/b", "a/b/c", "a/d", "e")
_MEASURES: Final[tuple[Measure, ...]] = ("usd", "usd", "requests", "tokens")
_WINDOWS: Final[tuple[Window, ...]] = ("minute", "hour", "hour", "day", "month", "life")
_NAMES: Final = ("one", "two", "three")
_WEIGHTS: Final = {
    "reserve": 30,
    "resolve": 30,
    "wait": 8,
    "change_budget": 5,
    "show": 3,
    "put_off": 2,
    "trim": 3,
    "stop": 1,
    "resume": 5,
    "latch": 1,
    "lift": 2,
    "read": 8,
    "key": 3,
    "mint": 3,
    "read_keys": 3,
    "configure": 4,
    "read_configuration": 3,
    "alert": 5,
    "tell": 5,
}


class History:
    """One caller's operations, one after another. ``done`` counts how they ended."""

    def __init__(self, seed: int, client: Callable[[Callable[[], datetime]], DynamoDBClient], tables: str = "") -> None:
        self.random = Random(seed)  # noqa: S311 - no secret
        self.now = START
        time = FakeTime()
        timing = Timing(
            monotonic=time.monotonic,
            sleep=time.sleep,
            random=self.random.random,
            randomness=self.random.randbytes,
        )
        made = client(lambda: self.now)
        self.ledger = Ledger(f"{LEDGER}{tables}", made, timing)
        self.config = Config(f"{CONFIG}{tables}", self.ledger.table, made, timing)
        self.alerts = AlertStore(self.ledger.table, made, timing)
        self.run_keys = RunKeys(self.config)
        self.calls: list[Reservation] = []
        self.policies: dict[str, tuple[BudgetPolicy, ...]] = {}
        self.minted: list[Key] = []
        self.done: Counter[tuple[str, str]] = Counter()

    def run(self, steps: int) -> None:
        """Do so many operations."""
        for path in _PATHS:
            self._attempt("open", lambda path=path: self._put(path, None))  # type: ignore[misc]
        names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for name in self.random.choices(names, weights, k=steps):
            self._attempt(name, getattr(self, f"_{name}"))

    def _attempt(self, name: str, operation: Callable[[], object]) -> None:
        try:
            operation()
        except (SpendgateError, TooManyKeys, Killed) as error:
            self.done[name, type(error).__name__] += 1
        else:
            self.done[name, ""] += 1

    # -- budgets

    def _put(self, path: str, rev: int | None) -> None:
        pairs = [(measure, window) for measure in _MEASURES for window in _WINDOWS]
        limits = [
            Limit(measure=measure, window=window, maximum=self.random.choice((60, 200, 300, 300, 1000, 10**20)))
            for measure, window in dict.fromkeys(self.random.choices(pairs, k=self.random.randrange(3)))
        ]
        policy = BudgetPolicy(
            path=path,
            rev=rev or 0,
            limits=tuple(limits),
            mode=self.random.choice(("enforce", "enforce", "observe")),
            stop_on_unknown=self.random.random() < 0.2,
            default_output_tokens=self.random.choice((None, 100)),
            elapsed_max=self.random.choice((None, None, timedelta(hours=1))),
        )
        self.ledger.put_budget(policy, expected_rev=rev, now=self.now, event=self.random.choice((None, self._event())))

    def _change_budget(self) -> None:
        state = self.ledger.budget(self.random.choice(_PATHS))
        if state is not None:
            stale = self.random.random() < 0.2
            self._put(state.policy.path, max(1, state.policy.rev - 1) if stale else state.policy.rev)

    def _stop(self) -> None:
        path = self.random.choice((*_PATHS, "gone"))
        self.ledger.stop(path, self._why(), self.random.choice((None, self._event())))

    def _latch(self) -> None:
        self.ledger.latch(self.random.choice((*_PATHS, "gone")), self._why())

    def _resume(self) -> None:
        for path in _PATHS:
            self.ledger.resume(path, self._event(), temporary=self.random.choice((None, self._temporary(path))))

    def _temporary(self, path: str) -> TemporaryLimits | None:
        held = self.policies.get(path, ())
        raised = tuple(replace(one, maximum=one.maximum * 2) for one in held[-1].limits) if held else ()
        until = self.now + timedelta(minutes=self.random.choice((10, 600)))
        return TemporaryLimits(limits=raised, until=until, at=self.now, by="ops", reason="a peak") if raised else None

    def _trim(self) -> None:
        for state in self.ledger.budgets(runs=self.random.random() < 0.5):
            self.ledger.trim(state, self.now)

    def _lift(self) -> None:
        for block in self.ledger.blocks():
            stale = self.random.random() < 0.2
            self.ledger.lift(replace(block, violations=block.violations + stale), self._event())

    # -- calls

    def _reserve(self) -> None:
        leaf = self.random.choice(_PATHS)
        run = f"{leaf}/run:{self.random.choice(_NAMES)}" if self.random.random() < 0.2 else None
        path = self.policies.get(run or leaf)
        if path is None or self.random.random() < 0.3:
            path = self._path(leaf, run)
            if not path:
                # Whoever was to open the budget has died before.
                return
            self.policies[run or leaf] = path
        usd = self.random.choice((0, 1, 30, 50, 50, 70, 301))
        candidate = Candidate(provider="openai", model=self.random.choice(("house", "mini")))
        reservation = a_reservation(
            path,
            now=self.now,
            asked=Amounts(usd=usd, requests=1, tokens=self.random.choice((0, 10, 50)), tool_calls=1),
            id=new_id(self.now, self.random.randbytes(10)),
            quotes=(Quote(candidate=candidate, rows=(a_row(candidate.model, valid_from=START),), terms=Terms()),),
            idempotency_key=self.random.choice((None, None, None, *_NAMES)),
            fingerprint=self.random.choice("ff0") * 64,
            unpriced=self.random.random() < 0.1,
            shape=self.random.choice((Shape(), Shape(features=("vision", "text"), stream=True))),
        )
        try:
            self.ledger.reserve(reservation, path, self.now)
        except PolicyStale:
            self.policies.pop(run or leaf)
            raise
        except (LedgerUnavailable, Killed):
            # Of which nobody knows whether it was made.
            self.calls.append(reservation)
            raise
        self.calls.append(reservation)

    def _path(self, leaf: str, run: str | None) -> tuple[BudgetPolicy, ...]:
        states = self.ledger.budgets_on([*prefixes(leaf), *([run] if run else [])])
        found = tuple(state.policy for state in states)
        if run is not None and found and found[-1].path != run:
            limit = Limit(measure="usd", window="life", maximum=200)
            return (*found, BudgetPolicy(path=run, rev=0, limits=(limit,), elapsed_max=timedelta(hours=2)))
        return found

    def _resolve(self) -> None:
        call = self._call()
        if call is None:
            return
        usd = call.asked.usd * self.random.choice((0, 1, 2, 4, 4, 4, 5)) // 4
        served: dict[str, Any] = {"provider": "openai", "model": call.quotes[0].candidate.model}
        served = self.random.choice((served, served, {}))
        resolution = self.random.choice(
            (
                Resolution(
                    state="settled",
                    reason="usage",
                    actual=Amounts(usd=usd, requests=1, tokens=self.random.choice((3, 90))),
                    usage=Usage(input_uncached=3, output=usd, fees=(("web_search", 2),)),
                    response_id="response",
                    **served,
                ),
                Resolution(state="settled", reason="usage", actual=Amounts(usd=usd, requests=1)),
                Resolution(state="released", reason="never connected"),
                Resolution(state="unknown", reason="the stream was cut", **served),
                Resolution(state="charged", reason="unknown for too long", by="ops", evidence="a bill"),
            )
        )
        known = call if self.random.random() < 0.5 else None
        event = self._event() if self.random.random() < 0.2 else None
        for _ in range(self.random.choice((1, 1, 2))):
            self.ledger.resolve(call.id, resolution, self.now, known=known, event=event)

    def _show(self) -> None:
        call = self._call()
        if call is not None:
            self.ledger.show(call, call.quotes[0].candidate, "response")

    def _put_off(self) -> None:
        for reservation_id in self.ledger.overdue(self.now, limit=self.random.choice((1, 5))):
            self.ledger.put_off(reservation_id, self.now + timedelta(minutes=self.random.randrange(60)), self.now)

    # -- the file, keys, alerts

    def _key(self) -> None:
        name = self.random.choice(_NAMES)
        key = Key(hash=f"{name:0>64}", name=name, budget=self.random.choice((*_PATHS, "gone")), models=("house",))
        if self.random.random() < 0.3:
            self.config.revoke_key(key, self.now, self._event())
        else:
            self.config.put_key(key, self._event(), known=self.random.choice((None, key)))

    def _mint(self) -> None:
        above = self.random.choice(_PATHS)
        name = self.random.choice(_NAMES)
        run = BudgetPolicy(path=f"{above}/run:{name}", rev=1, limits=(Limit(measure="usd", window="life", maximum=90),))
        key = Key(
            hash=self.random.randbytes(32).hex(),
            name=name,
            budget=run.path,
            expires_at=self.now + timedelta(hours=1),
            minted_by=((f"{name:0>64}", above), *((one.hash, one.budget) for one in self.minted[-1:])),
        )
        self.run_keys.mint(key, run, above, self.now, self._event())
        self.minted.append(key)

    def _read_keys(self) -> None:
        self.config.keys()
        for name in _NAMES:
            key = self.config.key(f"{name:0>64}")
            if key is not None:
                self.config.key_and_path(key)
        for key in self.minted[-3:]:
            self.run_keys.key(key.hash)
            self.run_keys.keys_and_path(key)

    def _configure(self) -> None:
        name = self.random.choice(_NAMES)
        event, row = self._event(), self._row()
        self.random.choice(
            (
                lambda: self.config.put_provider(Provider(name=name, dialect="openai", base_url="https://x"), event),
                lambda: self.config.put_route(
                    Route(name=name, candidates=(Candidate(provider="openai", model=name),), allow=(("web", 1),)), event
                ),
                lambda: self.config.delete_route(name, event),
                lambda: self.config.add_price(row, event),
                lambda: self.config.add_prices([row, self._row(), self._row()], lambda _: event),
                self.config.claim_data,
                lambda: self.config.put_managed(frozenset({name})),
                lambda: self.config.put_alerts(AlertPolicy(warn_at=(50, 80), slack=False), event),
                lambda: self.config.put_catalogue_state(CatalogueState(rows=3, stale=1, age_days=5)),
            )
        )()

    def _row(self) -> PriceRow:
        name = self.random.choice(_NAMES)
        row = a_row(name, valid_from=START + timedelta(days=self.random.randrange(3)))
        return replace(row, aliases=self.random.choice(((), (f"{name}-latest",))))

    def _read_configuration(self) -> None:
        self.config.providers()
        self.config.routes()
        self.config.provider("one")
        self.config.route("one")
        self.config.all_prices()
        self.config.prices("openai", self.random.choice(("one", "one-latest", "none")))
        self.config.managed()
        self.config.alerts()
        self.config.catalogue_state()

    def _alert(self) -> None:
        rearms_at = self.random.choice((None, self.now + timedelta(minutes=30)))
        marks = [f"usd.day#{self.random.randrange(4)}" for _ in range(3)]
        alerts = [
            Alert(
                kind="warn", scope="a", mark=mark, at=self.now, severity="info", facts={"u": "8"}, rearms_at=rearms_at
            )
            for mark in marks
        ]
        for alert in self.alerts.unmarked(alerts) if self.random.random() < 0.5 else alerts:
            self.alerts.post(alert)

    def _tell(self) -> None:
        for alert in self.alerts.outbox():
            if self.alerts.claim(alert, self.now):
                if self.random.random() < 0.3:
                    self.alerts.let_go(alert, self.now)
                elif self.random.random() < 0.8:
                    self.alerts.sent(alert, self.now)
        self.alerts.told(f"{self.now:%Y-%m-%d}")

    # -- reading, and time

    def _read(self) -> None:
        leaf, call, day = self.random.choice(_PATHS), self._call(), f"{self.now:%Y-%m-%d}"
        state = self.random.choice(STATES)
        self.random.choice(
            (
                lambda: self.ledger.reservations(budget=leaf, limit=5, now=self.now),
                lambda: self.ledger.reservations(state=state, limit=5, now=self.now),
                lambda: self.ledger.oldest_unknown(looked_at_max=20),
                lambda: self.ledger.usage_records(leaf),
                lambda: self.ledger.events(day),
                lambda: self.ledger.reservations_of_day(leaf, day),
                lambda: self.ledger.reservation("nobody" if call is None else call.id),
            )
        )()

    def _wait(self) -> None:
        self.now += timedelta(minutes=self.random.choice((0, 1, 4, 5, 30, 65, 65, 60 * 24)))

    def _call(self) -> Reservation | None:
        """Return one of the latest calls, so that most are open."""
        return self.random.choice(self.calls[-6:]) if self.calls else None

    def _why(self) -> Stop:
        return Stop(reason=self.random.choice(("enough", "too much")), at=self.now, by="ops")

    def _event(self) -> Event:
        return Event(kind="changed", subject="a", at=self.now, by="ops", reason=None, before=None, after={"n": "1"})
