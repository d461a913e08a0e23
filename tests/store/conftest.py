"""A second emulator beside MiniStack: each refuses what AWS refuses and the other lets pass."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from tests.conftest import a_timing

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


@pytest.fixture(scope="session")
def moto_client() -> Iterator[DynamoDBClient]:
    """A client of moto's tables, which live in this process."""
    with mock_aws():
        client = boto3.session.Session().client(
            "dynamodb",
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        yield client
        client.close()


@pytest.fixture
def on_ministack(store_client: DynamoDBClient) -> Ledger:
    """A ledger for many writes: moto copies its whole table at each one."""
    return _ledger(store_client)


@pytest.fixture(params=["ministack", "moto"])
def either(request: pytest.FixtureRequest) -> Ledger:
    """A ledger on tables of the test's own, on each of the emulators in turn; for what happens in sequence only."""
    return _ledger(request.getfixturevalue("store_client" if request.param == "ministack" else "moto_client"))


def _ledger(client: DynamoDBClient) -> Ledger:
    name = f"ledger-{secrets.token_hex(6)}"
    create_tables(client, ledger=name, config=f"{name}-config")
    return Ledger(name, client, a_timing())
