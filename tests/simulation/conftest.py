"""The emulator that the store in memory is held to."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from spendgate.store.tables import ledger_table
from tests.simulation.compare import patient

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


@pytest.fixture(scope="module")
def emulator(store_url: str) -> Iterator[DynamoDBClient]:
    """A client of MiniStack that no busy machine makes repeat itself."""
    client = patient(store_url)
    yield client
    client.close()


@pytest.fixture(scope="module")
def table(emulator: DynamoDBClient) -> str:
    """A table of MiniStack, for all cases."""
    name = f"cases-{secrets.token_hex(6)}"
    emulator.create_table(**ledger_table(name))
    return name
