"""Random histories on the store in memory and on an emulator at once: `python -m tests.simulation.compare --seeds 100`.

Each seed is a history of all that the code does with its tables, half of them with faults. Every request goes to both
stores, which have to answer the same, and have the same in their tables at the end.
"""

from __future__ import annotations

import argparse
import math
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

import botocore.session
from botocore.config import Config

from spendgate.local import ministack
from spendgate.store.tables import create_tables
from tests.simulation.faulty_store import FaultyStore, Plan
from tests.simulation.histories import History
from tests.simulation.history_files import CONFIG, LEDGER
from tests.simulation.memory_store import MemoryStore
from tests.simulation.twin import Difference, Twin, differences

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

HELP: Final = "Compare the store in memory with an emulator, on random histories."
# Of a thousand requests, in every other history.
FAULTS: Final = 150


def patient(url: str) -> DynamoDBClient:
    """Return a client that waits for a busy machine: a request that is sent twice would be answered differently."""
    given: dict[str, Any] = {
        "region_name": "us-east-1",
        "aws_access_key_id": "local",
        "aws_secret_access_key": "local",
        "config": Config(read_timeout=300, retries={"total_max_attempts": 1, "mode": "standard"}),
    }
    session = botocore.session.get_session()
    return cast("DynamoDBClient", session.create_client("dynamodb", endpoint_url=url, **given))


def compared(seed: int, steps: int, emulator: DynamoDBClient) -> Counter[tuple[str, str]]:
    """Run a history on both stores, and return what was answered how often; Difference."""
    twins: list[Twin] = []
    tables = f"-{secrets.token_hex(6)}"

    def client(clock: Callable[[], datetime]) -> DynamoDBClient:
        twin = Twin(MemoryStore(clock), emulator, clock)
        for store in (twin.memory.client, emulator):
            create_tables(store, ledger=f"{LEDGER}{tables}", config=f"{CONFIG}{tables}")
        twins.append(twin)
        return FaultyStore(twin, Plan(Random(seed), FAULTS)).client if seed % 2 else twin.client  # noqa: S311 - no secret

    History(seed, client, tables).run(steps)
    (twin,) = twins
    found = [one for table in (LEDGER, CONFIG) for one in differences(twin, f"{table}{tables}")]
    if found:
        raise Difference("\n".join(found))
    return twin.seen


def main(arguments: Sequence[str]) -> int:
    """Compare so many seeds, and say what was answered how often; 1 at the first difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.compare", description=HELP)
    parser.add_argument("--seeds", type=int, default=20, help="how many histories (default 20)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--steps", type=int, default=200, help="operations a history (default 200)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no history after so long")
    given = parser.parse_args(arguments)
    seen: Counter[tuple[str, str]] = Counter()
    begun, histories = time.monotonic(), 0
    with _emulator() as client:
        for seed in range(given.first, given.first + given.seeds):
            if time.monotonic() - begun > given.seconds:
                break
            histories += 1
            try:
                seen += compared(seed, given.steps, client)
            except Difference as difference:
                _say(f"seed {seed}: {difference}")
                return 1
    for (operation, outcome), count in sorted(seen.items()):
        _say(f"{count:>8}  {operation} {outcome}")
    seconds = time.monotonic() - begun
    _say(f"{seen.total()} requests of {histories} histories, answered the same by both ({seconds:.0f} s)")
    return 0


@contextmanager
def _emulator() -> Iterator[DynamoDBClient]:
    with tempfile.TemporaryDirectory() as folder:
        store = ministack.start(Path(folder), persist=False, environ=os.environ)
        client = patient(store.url)
        try:
            yield client
        finally:
            client.close()
            store.stop()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
