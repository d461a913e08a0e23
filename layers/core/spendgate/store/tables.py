"""The two tables and their indexes, as the local run and the tests create them; template.yaml deploys the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from spendgate.store.transact import Timing, persist

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# An emulator that has just started loads much before it answers at all, and on a busy machine for longer than a call waits.
FIRST_ANSWER_SECONDS_MAX: Final = 60.0


def _index(name: str, hash_key: str, range_key: str) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": hash_key, "KeyType": "HASH"},
            {"AttributeName": range_key, "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }


LEDGER_INDEXES = (
    _index("tree", "tree_pk", "tree_sk"),
    _index("open", "open_pk", "open_sk"),
    _index("by_budget", "leaf_day", "id"),
)

_KEYS: Any = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]


def ledger_table(name: str) -> dict[str, Any]:
    """Return the definition of the table of budgets, reservations, usage records and events."""
    names = ("pk", "sk", "tree_pk", "tree_sk", "open_pk", "open_sk", "leaf_day", "id")
    return {
        "TableName": name,
        "KeySchema": _KEYS,
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in names],
        "GlobalSecondaryIndexes": list(LEDGER_INDEXES),
        "BillingMode": "PAY_PER_REQUEST",
    }


def config_table(name: str) -> dict[str, Any]:
    """Return the definition of the table of keys, routes, providers and prices."""
    return {
        "TableName": name,
        "KeySchema": _KEYS,
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in ("pk", "sk")],
        "BillingMode": "PAY_PER_REQUEST",
    }


def create_tables(client: DynamoDBClient, *, ledger: str, config: str) -> None:
    """Create whichever of the two tables does not exist yet."""
    for definition in (ledger_table(ledger), config_table(config)):
        try:
            client.create_table(**definition)
        except client.exceptions.ResourceInUseException:
            continue


def open_tables(client: DynamoDBClient, *, ledger: str, config: str, timing: Timing) -> None:
    """Create whichever table is missing in a store that has just started, and whose first answer takes long; LedgerUnavailable."""
    patient = replace(timing, deadline_seconds=FIRST_ANSWER_SECONDS_MAX)
    persist(lambda: create_tables(client, ledger=ledger, config=config), patient)
