"""What people get: the stack's own topic, its email and its chat's form, filters of subscriptions, and a topic that takes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from openai import APIStatusError

from spendgate.core.alert import KINDS
from tests.chat_form import content_of
from tests.deployment.proof import Proof, until, without
from tests.deployment.stack import Stack

ASKED: list[Any] = [{"role": "user", "content": "Count to ten. [[output:400]]"}]


@dataclass(slots=True)
class Subscriber:
    """A queue that is subscribed to the alerts."""

    stack: Stack
    url: str
    got: list[Mapping[str, Any]] = field(default_factory=list)

    def of(self, scope: str, kind: str) -> list[Mapping[str, Any]]:
        """Return what has come so far of one scope and kind."""
        client = self.stack.emulator.client("sqs")
        while found := client.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages"):
            for one in found:
                self.got.append(json.loads(one["Body"]))
                client.delete_message(QueueUrl=self.url, ReceiptHandle=one["ReceiptHandle"])
        return [one for one in self.got if (_told(one, "scope"), _told(one, "kind")) == (scope, kind)]


def _told(one: Mapping[str, Any], attribute: str) -> str:
    return str(one["MessageAttributes"][attribute]["Value"])


def subscribed(stack: Stack, name: str, **filters: list[str]) -> Subscriber:
    """Subscribe a new queue to the stack's topic of alerts."""
    topic = stack.outputs["AlertsTopicArn"]
    sqs, sns = stack.emulator.client("sqs"), stack.emulator.client("sns")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    allowed = {
        "Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }  # fmt: skip
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": document})
    attributes = {"FilterPolicy": json.dumps(filters)} if filters else {}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=attributes)
    return Subscriber(stack, url)


@pytest.fixture(scope="module")
def everything(stack: Stack) -> Subscriber:
    return subscribed(stack, "everything")


def mail_of(proof: Proof, *words: str) -> list[dict[str, str]]:
    """Return the emails of the topic of alerts that say all of these words."""
    topic = proof.stack.outputs["AlertsTopicArn"]
    return [
        one
        for one in proof.stack.emulator.mail()
        if one["topic"] == topic and all(word in one["subject"] + one["text"] for word in words)
    ]


def run_alerts(proof: Proof) -> dict[str, int]:
    """Do a minute's work; the schedule may have done some of it before."""
    error, answer = proof.stack.invoke("AlertsFunction", {})
    assert error is None, answer
    found: dict[str, int] = answer
    return found


def test_people_are_told_of_a_budget_near_its_limit_and_of_its_first_refusal(
    proof: Proof, everything: Subscriber
) -> None:
    critical = subscribed(proof.stack, "critical", severity=["critical"])
    with proof.agent("told", retries=0) as client:
        client.chat.completions.create(model="demo", messages=ASKED, max_tokens=400)
        with pytest.raises(APIStatusError):
            client.chat.completions.create(model="demo", messages=ASKED, max_tokens=400)
    run_alerts(proof)
    until(lambda: bool(everything.of("acme/told", "warn") and everything.of("acme/told", "exceeded")))
    run_alerts(proof)
    settled = proof.budget("told")["windows"]

    (warned,) = everything.of("acme/told", "warn")
    (exceeded,) = everything.of("acme/told", "exceeded")
    assert "acme/told" in content_of(warned["Message"])["title"]
    assert f"--stack {proof.stack.outputs['NextCommand'].split()[-1]}" in str(content_of(exceeded["Message"]))
    (mail,) = mail_of(proof, "acme/told", "80%")
    assert mail["to"] == "platform@example.com"
    assert mail["subject"] == warned["Subject"]
    used = next(one["committed"] for one in settled if (one["measure"], one["window"]) == ("usd", "day"))
    assert f"{used} USD" in mail["text"]
    assert "What to do:" in mail["text"]
    # Of the two the filter lets one through.
    assert critical.of("acme/told", "warn") == []
    assert len(critical.of("acme/told", "exceeded")) == 1


def test_a_topic_that_takes_nothing_fails_no_call_and_loses_no_alert(proof: Proof, everything: Subscriber) -> None:
    with without(proof, "AlertsFunction", "sns"):
        proof.admin("POST", "/stop", {"path": "acme/silent", "reason": "nobody hears this yet"})
        # The schedule's own run may have it in hand just then.
        until(lambda: run_alerts(proof)["failed"] >= 1)
        with proof.agent("whole", retries=0) as client:
            assert client.chat.completions.create(model="demo", messages=ASKED, max_tokens=400).usage
        assert everything.of("acme/silent", "stopped") == []
    run_alerts(proof)
    until(lambda: bool(everything.of("acme/silent", "stopped")))

    assert "nobody hears this yet" in everything.of("acme/silent", "stopped")[0]["Message"]


def test_the_command_line_sends_one_of_each_kind_as_a_test(proof: Proof, everything: Subscriber) -> None:
    assert str(len(KINDS)) in proof.spendgate("alerts", "test")
    everything.of("", "")
    tests = [one for one in everything.got if one["Subject"].startswith("[test] ")]

    assert {_told(one, "kind") for one in tests} == set(KINDS)
    for one in tests:
        assert _told(one, "kind") in content_of(one["Message"])["keywords"]
    assert len(mail_of(proof, "[test]", "This is a test")) == len(KINDS)
