"""Random histories of all that the code does with its tables: on the store in memory and on an emulator at once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pytest

from spendgate.store import alerts, config, reader, run_keys, transact
from spendgate.store.tables import create_tables
from tests.simulation.compare import compared
from tests.simulation.histories import History
from tests.simulation.history_files import CONFIG, LEDGER
from tests.simulation.memory_cases import CANCELLED
from tests.simulation.memory_store import MemoryStore

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

SEEDS: Final = 4
STEPS: Final = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_history_is_answered_as_the_emulator_does(seed: int, emulator: DynamoDBClient) -> None:
    seen = compared(seed, STEPS, emulator)

    assert seen["transact_write_items", ""] > 10
    assert seen["transact_write_items", f"{CANCELLED} ConditionalCheckFailed,None"] > 1


class Recorded:
    """A client that keeps the names of the operations that it is asked for."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.asked: set[str] = set()

    def __getattr__(self, operation: str) -> Any:
        self.asked.add(operation)
        return getattr(self.store, operation)


def test_the_random_histories_hold_every_operation_that_the_code_asks_for() -> None:
    made: list[Recorded] = []

    def client(clock: Callable[[], datetime]) -> Any:
        store = MemoryStore(clock)
        create_tables(store.client, ledger=LEDGER, config=CONFIG)
        made.append(Recorded(store))
        return made[-1]

    for seed in range(SEEDS):
        History(seed, client).run(STEPS)

    sources = map(inspect.getsource, (alerts, config, reader, run_keys, transact))
    in_code = {name for source in sources for name in re.findall(r"client\.([a-z_]+)\(", source)}
    assert in_code
    assert set().union(*(one.asked for one in made)) == in_code
