"""A random history of everything that the code does with its tables, from one seed, on any client.

Nothing is checked here: that is for whoever looks at the requests and at the tables afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from spendgate.core.block import Shape
from spendgate.core.bound import Quote
from spendgate.core.budget import Amounts, BudgetPolicy, Limit, Stop, TemporaryLimits, prefixes
from spendgate.core.price import Terms
from spendgate.core.reservation import STATES, Reservation, Resolution, new_id
from spendgate.core.route import Candidate
from spendgate.core.usage import Usage
from spendgate.core.window import Measure, Window
from spendgate.errors import LedgerUnavailable, SpendgateError
from spendgate.store.ledger import PolicyStale
from spendgate.store.run_keys import TooManyKeys
from tests.simulation.history_files import NAMES, PATHS, START, Files
from tests.simulation.virtual import Killed
from tests.store.builders import a_reservation, a_row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_MEASURES: Final[tuple[Measure, ...]] = ("usd", "usd", "requests", "tokens")
_WINDOWS: Final[tuple[Window, ...]] = ("minute", "hour", "hour", "day", "month", "life")
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


class History(Files):
    """One caller's operations, one after another. ``done`` counts how they ended."""

    def __init__(self, seed: int, client: Callable[[Callable[[], datetime]], DynamoDBClient], tables: str = "") -> None:
        super().__init__(seed, client, tables)
        self.calls: list[Reservation] = []
        self.policies: dict[str, tuple[BudgetPolicy, ...]] = {}
        self.done: Counter[tuple[str, str]] = Counter()

    def run(self, steps: int) -> None:
        """Do so many operations."""
        for path in PATHS:
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
        state = self.ledger.budget(self.random.choice(PATHS))
        if state is not None:
            stale = self.random.random() < 0.2
            self._put(state.policy.path, max(1, state.policy.rev - 1) if stale else state.policy.rev)

    def _stop(self) -> None:
        path = self.random.choice((*PATHS, "gone"))
        self.ledger.stop(path, self._why(), self.random.choice((None, self._event())))

    def _latch(self) -> None:
        self.ledger.latch(self.random.choice((*PATHS, "gone")), self._why())

    def _resume(self) -> None:
        for path in PATHS:
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
        leaf = self.random.choice(PATHS)
        run = f"{leaf}/run:{self.random.choice(NAMES)}" if self.random.random() < 0.2 else None
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
            idempotency_key=self.random.choice((None, None, None, *NAMES)),
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

    # -- reading, and time

    def _read(self) -> None:
        leaf, call, day = self.random.choice(PATHS), self._call(), f"{self.now:%Y-%m-%d}"
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
