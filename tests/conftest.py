"""What holds for every test, and the emulated store that the sequential and the concurrent tests share."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import settings

from spendgate.local import ministack
from spendgate.store.client import dynamodb
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.transact import Timing
from tests.answers import checked, checked_refusal
from tests.scenarios.figures import table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# A shared machine pauses at will; how long an example took says nothing about the code.
settings.register_profile("spendgate", deadline=None)
settings.load_profile("spendgate")


def a_timing(*, deadline_seconds: float = 20.0) -> Timing:
    """Real time and randomness; patient, since the machine that runs the tests may be busy."""
    return Timing(
        monotonic=time.monotonic,
        sleep=time.sleep,
        random=random.random,
        randomness=secrets.token_bytes,
        deadline_seconds=deadline_seconds,
    )


@pytest.fixture(scope="session")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MiniStack of the session's own, on a free port of 127.0.0.1."""
    state_dir: Path = tmp_path_factory.mktemp("ministack")
    store = ministack.start(state_dir, persist=False, environ=os.environ)
    # Its first answer of DynamoDB's loads much; on a busy machine that takes longer than a client of ours waits.
    patient = dynamodb(region="us-east-1", endpoint_url=store.url, read_seconds=60)
    patient.list_tables()
    patient.close()
    yield store.url
    store.stop()


@pytest.fixture(scope="session")
def store_client(store_url: str) -> Iterator[DynamoDBClient]:
    """A client of the session's store; making one costs more than most tests."""
    client = dynamodb(region="us-east-1", endpoint_url=store_url, validate=True)
    yield client
    client.close()


@pytest.fixture
def ledger(store_client: DynamoDBClient) -> Ledger:
    """A ledger on tables of the test's own."""
    name = f"ledger-{secrets.token_hex(6)}"
    create_tables(store_client, ledger=name, config=f"{name}-config")
    return Ledger(name, store_client, a_timing())


@pytest.fixture
def config(ledger: Ledger) -> Config:
    """The configuration beside the ledger, for the same test."""
    return Config(f"{ledger.table}-config", ledger.table, ledger.client, ledger.timing)


@pytest.fixture(scope="session", autouse=True)
def _documented_answers() -> Iterator[None]:
    """Hold every answer of the admin API and every refusal of the gateway, in whichever test, to what its document says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spendgate.local.admin_api.respond", checked)
        patch.setattr("spendgate.admin_resolver.respond", checked)
        patch.setattr("spendgate.asgi.refusal", checked_refusal)
        yield


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print the scenarios' figures; here, since a run on several processes loads no folder's own hooks at its head."""
    reports = [one for state in ("passed", "failed") for one in terminalreporter.stats.get(state, ())]
    for number, line in enumerate(table(one for one in reports if getattr(one, "when", "") == "call")):
        if not number:
            terminalreporter.section("scenarios")
        terminalreporter.line(line)
