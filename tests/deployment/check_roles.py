"""What each function's role may not do, as AWS's rules decide it: the emulator evaluates the policies that were deployed."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.deployment.proof import Proof
from tests.deployment.stack import Stack

FUNCTIONS = ("GatewayFunction", "AdminFunction", "CatalogueFunction", "SweeperFunction", "AlertsFunction")
DENIED = ("AccessDenied", "AccessDeniedException", "AuthorizationError")


def _put(stack: Stack, function: str, table: str, pk: str) -> None:
    item: dict[str, Any] = {"pk": {"S": pk}, "sk": {"S": "TRIAL"}}
    client = stack.role(function).client("dynamodb", stack.emulator.url)
    client.put_item(TableName=stack.outputs[table], Item=item)


@pytest.mark.parametrize("function", ["AlertsFunction", "CatalogueFunction"])
def test_who_only_tells_or_prices_cannot_change_what_is_in_the_ledger(stack: Stack, function: str) -> None:
    # That they may put nothing but their own items is a condition that the emulator takes for true: tests/test_template.py.
    client = stack.role(function).client("dynamodb", stack.emulator.url)
    with pytest.raises(ClientError) as denied:
        client.update_item(
            TableName=stack.outputs["LedgerTable"],
            Key={"pk": {"S": "BUDGET#acme"}, "sk": {"S": "BUDGET"}},
            UpdateExpression="SET reserved = :nothing",
            ExpressionAttributeValues={":nothing": {"N": "0"}},
        )

    assert denied.value.response["Error"]["Code"] in DENIED


@pytest.mark.parametrize("function, pk", [("AlertsFunction", "ALERT#trial"), ("CatalogueFunction", "EVENT#trial")])
def test_and_can_write_what_is_its_own(stack: Stack, function: str, pk: str) -> None:
    _put(stack, function, "LedgerTable", pk)

    key: Any = {"pk": {"S": pk}, "sk": {"S": "TRIAL"}}
    assert "Item" in stack.dynamodb().get_item(TableName=stack.outputs["LedgerTable"], Key=key)


@pytest.mark.parametrize("function", ["GatewayFunction", "SweeperFunction", "AlertsFunction"])
def test_only_operators_and_the_catalogue_write_the_configuration(stack: Stack, function: str) -> None:
    with pytest.raises(ClientError) as denied:
        _put(stack, function, "ConfigTable", "KEY#trial")

    assert denied.value.response["Error"]["Code"] in DENIED


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_providers_secret_is_read_by_the_gateway_alone(proof: Proof, function: str) -> None:
    manager = proof.stack.role(function).client("secretsmanager", proof.stack.emulator.url)
    if function == "GatewayFunction":
        assert manager.get_secret_value(SecretId="spendgate/demo")["SecretString"]
        secret = "payroll/database"
    else:
        secret = "spendgate/demo"
    with pytest.raises(ClientError) as denied:
        manager.get_secret_value(SecretId=secret)

    assert denied.value.response["Error"]["Code"] in DENIED


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_role_deletes_a_table_or_changes_a_role(stack: Stack, function: str) -> None:
    role = stack.role(function)
    with pytest.raises(ClientError) as table:
        role.client("dynamodb", stack.emulator.url).delete_table(TableName=stack.outputs["LedgerTable"])
    with pytest.raises(ClientError) as policy:
        role.client("iam", stack.emulator.url).put_role_policy(
            RoleName=stack.resources[f"{function}Role"], PolicyName="more", PolicyDocument="{}"
        )

    assert table.value.response["Error"]["Code"] in DENIED
    assert policy.value.response["Error"]["Code"] in DENIED
