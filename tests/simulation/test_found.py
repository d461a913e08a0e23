"""What the simulation has found in the code that it drives, each as a test of its own: a seed tells another history tomorrow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from spendgate.core.budget import BudgetPolicy
from spendgate.core.event import Event
from spendgate.core.key import Key, hash_secret
from spendgate.directory import Directory
from spendgate.errors import KeyInvalid
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.transact import Timing
from tests.simulation.actors import seeded
from tests.simulation.memory_store import MemoryStore

T = TypeVar("T")

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECRET = "sg-0123456789abcdef"


def at_once(call: Callable[[], T]) -> Awaitable[T]:
    async def done() -> T:
        return call()

    return done()


def test_a_revoked_key_is_dead_though_the_operators_clock_is_ahead() -> None:
    """Seeds 10 and 13: the key was taken to be good until this function's clock reached the instant of its revocation."""
    store = MemoryStore(lambda: NOW).client
    create_tables(store, ledger="ledger", config="config")
    timing = Timing(
        monotonic=lambda: 0.0, sleep=lambda _: None, random=lambda: 0.0, randomness=seeded("found").randbytes
    )
    config = Config("config", "ledger", store, timing)
    Ledger("ledger", store, timing).put_budget(BudgetPolicy(path="a", rev=0), expected_rev=None, now=NOW)
    event = Event(kind="k", subject="s", at=NOW, by="operator")
    key = Key(hash=hash_secret(SECRET), name="key", budget="a")
    config.put_key(key, event)
    directory = Directory(config, clock=lambda: NOW, offload=at_once, seconds=60)
    assert asyncio.run(directory.read_caller(SECRET)).key == key

    config.revoke_key(key, NOW + timedelta(seconds=40), event)

    with pytest.raises(KeyInvalid, match="revoked"):
        asyncio.run(directory.read_caller(SECRET))
