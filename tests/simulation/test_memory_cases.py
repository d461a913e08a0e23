"""The store in memory answers as DynamoDB's documentation says, and as an emulator does where that is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.simulation.memory_cases import ITEM, KEY, OTHER, Case, a_store
from tests.simulation.memory_cases_requests import REQUESTS
from tests.simulation.memory_cases_updates import UPDATES
from tests.simulation.twin import told

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


def asked(case: Case, store: Any, table: str) -> tuple[tuple[str, Any], Any]:
    """What a store answers to a case, and the item that it then has."""
    request = case.request
    if "TransactItems" in request:
        steps = [{kind: {"TableName": table, **step} for kind, step in one.items()} for one in request["TransactItems"]]
        request = {**request, "TransactItems": steps}
    else:
        request = {"TableName": table, **request}
    try:
        answer = getattr(store, case.operation)(**request)
    except ClientError as error:
        answer = error
    return told(case.operation, request, answer), store.get_item(TableName=table, Key=KEY).get("Item")


@pytest.mark.parametrize("case", [*UPDATES, *REQUESTS], ids=lambda case: case.name)
def test_a_request_is_answered_as_documented_and_as_the_emulator_does(
    case: Case, emulator: DynamoDBClient, table: str
) -> None:
    emulator.put_item(TableName=table, Item=ITEM)
    emulator.delete_item(TableName=table, Key=OTHER)

    ours, theirs = asked(case, a_store(table), table), asked(case, emulator, table)

    assert (ours[0][0], ours[1]) == (case.code, case.after or ITEM)
    if case.emulator is None:
        assert theirs == ours
    else:
        assert theirs[0][0] == case.emulator
