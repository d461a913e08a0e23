"""What the code does with keys, with what the file configures, and with alerts: at random, from one seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from spendgate.core.alert import Alert, AlertPolicy, CatalogueState
from spendgate.core.budget import BudgetPolicy, Limit
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.core.price import PriceRow
from spendgate.core.route import Candidate, Provider, Route
from spendgate.store.alerts import AlertStore
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.run_keys import RunKeys
from spendgate.store.transact import Timing
from tests.store.builders import a_row
from tests.store.faults import FakeTime

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

START: Final = datetime.fromisoformat("2026-11-29T23:14:30+00:00")
LEDGER: Final = "ledger"
CONFIG: Final = "config"
PATHS: Final = ("a", "a/b", "a/b/c", "a/d", "e")
NAMES: Final = ("one", "two", "three")


class Files:
    """The stores of a history, its time, and what it does with all but budgets and calls."""

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
        self.minted: list[Key] = []

    def _key(self) -> None:
        name = self.random.choice(NAMES)
        key = Key(hash=f"{name:0>64}", name=name, budget=self.random.choice((*PATHS, "gone")), models=("house",))
        if self.random.random() < 0.3:
            self.config.revoke_key(key, self.now, self._event())
        else:
            self.config.put_key(key, self._event(), known=self.random.choice((None, key)))

    def _mint(self) -> None:
        above = self.random.choice(PATHS)
        name = self.random.choice(NAMES)
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
        for name in NAMES:
            key = self.config.key(f"{name:0>64}")
            if key is not None:
                self.config.key_and_path(key)
        for key in self.minted[-3:]:
            self.run_keys.key(key.hash)
            self.run_keys.keys_and_path(key)

    def _configure(self) -> None:
        name = self.random.choice(NAMES)
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
        name = self.random.choice(NAMES)
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

    def _event(self) -> Event:
        return Event(kind="changed", subject="a", at=self.now, by="ops", reason=None, before=None, after={"n": "1"})
