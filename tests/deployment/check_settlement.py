"""Money of the deployed stack when something breaks: DynamoDB refuses, the queue delivers twice, a gateway is killed in the middle of a call."""

from __future__ import annotations

import json
import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from openai import APIError, APIStatusError
from openai.types import CompletionUsage

from spendgate.core.budget import Amounts
from spendgate.core.money import usd
from spendgate.core.reservation import Reservation, Resolution
from spendgate.store.ledger import Ledger
from spendgate.store.queue import encode
from tests.conftest import a_timing
from tests.deployment.proof import WAIT_SECONDS_MAX, Proof, until, without
from tests.operators import admit

ASKED: Final[list[Any]] = [{"role": "user", "content": "Count to ten. [[output:20]]"}]


def waiting(proof: Proof, output: str) -> int:
    """How many messages a queue has, visible or not."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = proof.stack.emulator.client("sqs").get_queue_attributes(
        QueueUrl=proof.stack.outputs[output], AttributeNames=names
    )
    return sum(int(found["Attributes"][name]) for name in names)


def reservations(proof: Proof, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = proof.admin("GET", f"/reservations?budget=acme%2F{name}")["reservations"]
    return found


def in_flight(proof: Proof, name: str) -> Reservation:
    """Reserve on a budget as a gateway does that is then never heard of again."""
    ledger = Ledger(proof.stack.outputs["LedgerTable"], proof.stack.dynamodb(), a_timing())
    return admit(ledger, datetime.now(UTC), held="0.50", path=f"acme/{name}", key_name=name)


def test_a_gateway_without_its_right_to_the_ledger_sends_nothing(proof: Proof) -> None:
    before = proof.hits()
    with (
        without(proof, "GatewayFunction", "dynamodb"),
        proof.agent("denied", retries=0) as client,
        pytest.raises(APIStatusError) as failed,
    ):
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50)

    assert failed.value.status_code == 503
    assert proof.hits() == before


def test_a_settlement_that_dynamodb_refuses_comes_over_the_queue_and_is_settled(proof: Proof) -> None:
    with proof.agent("refused", retries=0) as client:
        # Everything that is cached is read before the right is taken away.
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50)
        proof.provider.behave("slow", calls=1, delay_seconds=2)
        before = proof.hits()
        answers: list[CompletionUsage | None] = []

        def call() -> None:
            answers.append(client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50).usage)

        thread = threading.Thread(target=call)
        thread.start()
        until(lambda: proof.hits() == before + 1)
        with without(proof, "GatewayFunction", "dynamodb"):
            thread.join(timeout=WAIT_SECONDS_MAX)

    (usage,) = answers
    assert usage is not None
    assert usage.completion_tokens == 20
    until(lambda: all(one["state"] == "settled" for one in reservations(proof, "refused")))
    assert len(reservations(proof, "refused")) == 2
    assert proof.admin("GET", "/audit")["differences"] == []


def test_a_settlement_that_comes_twice_is_settled_once(proof: Proof) -> None:
    reservation = in_flight(proof, "queue")
    resolution = Resolution(
        state="settled", reason="answered", actual=Amounts(usd=usd("0.125"), requests=1, tokens=400)
    )
    sqs, url = proof.stack.emulator.client("sqs"), proof.stack.outputs["SettlementQueueUrl"]
    for _ in range(2):
        sqs.send_message(QueueUrl=url, MessageBody=encode(reservation.id, resolution))
    until(lambda: waiting(proof, "SettlementQueueUrl") == 0)

    found = proof.admin("GET", f"/reservations/{reservation.id}")
    assert (found["state"], found["actual"]["usd"]) == ("settled", "0.125")
    assert proof.budget("queue")["reserved"] == "0"
    assert proof.admin("GET", "/audit")["differences"] == []


def test_a_message_that_is_no_settlement_ends_among_the_dead_letters(proof: Proof) -> None:
    sqs, url = proof.stack.emulator.client("sqs"), proof.stack.outputs["SettlementQueueUrl"]
    redrive = json.loads(
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]["RedrivePolicy"]
    )
    # Twenty times six minutes are not for a test.
    quick = {"VisibilityTimeout": "1", "RedrivePolicy": json.dumps(redrive | {"maxReceiveCount": 2})}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=quick)
    sqs.send_message(QueueUrl=url, MessageBody='{"version": 1, "reservation": "nobody"}')
    until(lambda: waiting(proof, "SettlementDeadLettersUrl") == 1)

    assert waiting(proof, "SettlementQueueUrl") == 0


def test_a_killed_gateways_call_holds_its_money_until_a_person_decides(proof: Proof) -> None:
    proof.provider.behave("hang", calls=1)
    before = proof.hits()
    failures: list[APIError] = []

    def call() -> None:
        with proof.agent("killed", retries=0) as client:
            try:
                client.chat.completions.create(model="demo", messages=ASKED, max_tokens=50)
            except APIError as error:
                failures.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    until(lambda: proof.hits() == before + 1)
    for pid in gateways(proof):
        os.kill(pid, signal.SIGKILL)
    thread.join(timeout=WAIT_SECONDS_MAX)
    (one,) = reservations(proof, "killed")

    assert failures
    assert one["state"] == "in_flight"
    held = proof.budget("killed")["reserved"]
    assert held != "0"
    overdue(proof, one["id"])
    error, answer = proof.stack.invoke("SweeperFunction", {})
    assert error is None, answer
    assert proof.admin("GET", f"/reservations/{one['id']}")["state"] == "unknown"
    assert proof.budget("killed")["reserved"] == held
    ended = {"action": "charge", "evidence": "the log of the provider has the request and no answer"}
    proof.admin("POST", f"/reservations/{one['id']}/reconcile", ended)
    assert proof.admin("GET", f"/reservations/{one['id']}")["state"] == "charged"
    assert proof.admin("GET", "/audit")["differences"] == []


def test_a_function_without_its_right_to_the_ledger_fails_in_its_own_way_and_changes_nothing(proof: Proof) -> None:
    with without(proof, "SweeperFunction", "dynamodb"), without(proof, "AdminFunction", "dynamodb"):
        error, answer = proof.stack.invoke("SweeperFunction", {})
        listed = proof.stack.call("GET", "/admin/budgets", caller=proof.operator)

    # A failed invocation rings; the next minute's run does what this one did not.
    assert (error, answer["errorType"]) == ("Unhandled", "LedgerUnavailable")
    assert listed.status_code == 503
    assert listed.json()["error"]["code"] == "ledger_unavailable"
    assert proof.stack.invoke("SweeperFunction", {})[0] is None


def gateways(proof: Proof) -> list[int]:
    """Return the processes of the gateway that the emulator runs: of its process group, and so of this test."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
                group = os.getpgid(int(entry.name))
            except (OSError, ProcessLookupError):
                continue
            if group == proof.stack.emulator.group and command.split(b"\0")[1:3] == [b"-m", b"app"]:
                found.append(int(entry.name))
    return found


def overdue(proof: Proof, reservation_id: str) -> None:
    """Let fifteen minutes have passed for one reservation."""
    past = "2026-01-01T00:00:00.000000Z"
    client, table = proof.stack.dynamodb(), proof.stack.outputs["LedgerTable"]
    key: Any = {"pk": {"S": f"RES#{reservation_id}"}, "sk": {"S": "RES"}}
    item = client.get_item(TableName=table, Key=key)["Item"]
    assert {"deadline", "open_sk"} <= set(item)
    client.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="SET deadline = :past, open_sk = :past",
        ExpressionAttributeValues={":past": {"S": past}},
    )
