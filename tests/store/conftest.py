"""A second emulator beside MiniStack: each refuses what AWS refuses and the other lets pass."""

import secrets
from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from tests.conftest import a_timing


@pytest.fixture
def moto_ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger on moto's tables, which live in this process and for this test alone."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.session.Session().client("dynamodb", region_name="us-east-1")
        name = f"ledger-{secrets.token_hex(6)}"
        create_tables(client, ledger=name, config=f"{name}-config")
        yield Ledger(name, client, a_timing())
