"""The life of a stack: an update, and its end. Runs last: nothing is left of the stack but what is to be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.deployment import stack as deployed
from tests.deployment.proof import Proof
from tests.deployment.stack import Stack

ASKED: list[Any] = [{"role": "user", "content": "Count to ten. [[output:20]]"}]


def test_an_update_reaches_the_running_functions_and_keeps_what_operators_said(
    proof: Proof, built: Path, parameters: dict[str, str]
) -> None:
    client = proof.stack.emulator.client("lambda")
    sweeper = proof.stack.resources["SweeperFunction"]
    before = client.get_alias(FunctionName=sweeper, Name="live")["FunctionVersion"]
    proof.admin("POST", "/prices", {"file": CORRECTED})
    # As each build does.
    (built / "CoreLayer" / "built").write_text("another build", encoding="utf-8")
    updated = deployed.deploy(proof.stack.emulator, built, parameters | {"ChargeUnknownAfterHours": "48"})

    alias = client.get_alias(FunctionName=sweeper, Name="live")["FunctionVersion"]
    assert alias != before
    version = client.get_function_configuration(FunctionName=sweeper, Qualifier=alias)
    assert version["Environment"]["Variables"]["SPENDGATE_CHARGE_UNKNOWN_AFTER_HOURS"] == "48"
    assert updated.outputs["LedgerTable"] == proof.stack.outputs["LedgerTable"]
    now = Proof(updated, proof.provider, proof.operator, proof.keys)
    found = now.admin("GET", "/prices?provider=demo&model=corrected")["prices"]
    assert [one["price"]["input"] for one in found] == ["7"]
    with now.agent("update") as agent:
        agent.chat.completions.create(model="demo", messages=ASKED, max_tokens=50)
    assert now.admin("GET", "/audit")["differences"] == []


def test_deleting_the_stack_keeps_the_money(stack: Stack) -> None:
    cloudformation = stack.emulator.client("cloudformation")
    cloudformation.delete_stack(StackName=deployed.STACK)
    waiter = cloudformation.get_waiter("stack_delete_complete")
    waiter.wait(StackName=deployed.STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    for output in ("LedgerTable", "ConfigTable"):
        table = stack.dynamodb().describe_table(TableName=stack.outputs[output])["Table"]
        assert table["DeletionProtectionEnabled"] is True
        assert table["TableStatus"] == "ACTIVE"


CORRECTED = """\
prices:
  - {provider: demo, model: corrected, input: "7", output: "21", context_tokens: 128000, output_tokens_max: 4096}
"""
