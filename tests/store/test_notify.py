"""Publishing: what each protocol gets, what filters match, and a topic that takes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws
from moto.backends import get_backend

from spendgate.core.alert_text import Message
from spendgate.errors import AlertUndelivered
from spendgate.store.notify import Topic, sns

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient
    from mypy_boto3_sqs.client import SQSClient

MESSAGE = Message(
    subject="Spendgate: acme has used 80% of its 40 USD a day",
    email="Budget acme has used 32.1 USD.\n",
    chat='{"version": "1.0"}',
    attributes={"severity": "warning", "scope": "acme/search", "kind": "warn"},
)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SNSClient, SQSClient]]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        # Inside another mock (the store tests have one for a session) moto keeps what earlier tests made.
        get_backend("sns").reset()
        get_backend("sqs").reset()
        session = boto3.session.Session(region_name="us-east-1")
        yield session.client("sns"), session.client("sqs")


def subscribed(aws: tuple[SNSClient, SQSClient], policy: dict[str, list[str]] | None = None) -> tuple[str, str]:
    topics, queues = aws
    topic = topics.create_topic(Name="alerts")["TopicArn"]
    url = queues.create_queue(QueueName="alerts")["QueueUrl"]
    arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    one = topics.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, ReturnSubscriptionArn=True)["SubscriptionArn"]
    if policy is not None:
        topics.set_subscription_attributes(
            SubscriptionArn=one, AttributeName="FilterPolicy", AttributeValue=json.dumps(policy)
        )
    return topic, url


def received(aws: tuple[SNSClient, SQSClient], url: str) -> list[dict[str, Any]]:
    messages = aws[1].receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [json.loads(one["Body"]) for one in messages]


def test_a_queue_gets_the_form_of_the_chat_and_what_filters_match(aws: tuple[SNSClient, SQSClient]) -> None:
    topic, url = subscribed(aws)
    Topic(topic, lambda: aws[0])(MESSAGE)

    (one,) = received(aws, url)
    assert one["Message"] == MESSAGE.chat
    assert one["Subject"] == MESSAGE.subject
    assert {name: value["Value"] for name, value in one["MessageAttributes"].items()} == MESSAGE.attributes


def test_an_email_gets_the_text_for_people(aws: tuple[SNSClient, SQSClient]) -> None:
    sent: list[dict[str, Any]] = []
    topic, _ = subscribed(aws)
    aws[0].meta.events.register("provide-client-params.sns.Publish", lambda params, **_: sent.append(params))
    Topic(topic, lambda: aws[0])(MESSAGE)

    assert sent[0]["MessageStructure"] == "json"
    assert json.loads(sent[0]["Message"]) == {"default": MESSAGE.chat, "email": MESSAGE.email}


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        ({"severity": ["critical"]}, 0),
        ({"severity": ["warning"]}, 1),
        ({"scope": ["acme/search"], "kind": ["warn"]}, 1),
    ],
)
def test_a_subscription_gets_what_its_filter_lets_through(
    aws: tuple[SNSClient, SQSClient], policy: dict[str, list[str]], count: int
) -> None:
    topic, url = subscribed(aws, policy)
    Topic(topic, lambda: aws[0])(MESSAGE)

    assert len(received(aws, url)) == count


def test_a_topic_that_is_gone_is_told_by_its_error_s_name_alone(aws: tuple[SNSClient, SQSClient]) -> None:
    topic = Topic("arn:aws:sns:us-east-1:123456789012:gone", lambda: sns(region="us-east-1"))

    with pytest.raises(AlertUndelivered, match=r"^the topic takes no alert: NotFound$"):
        topic(MESSAGE)


def test_a_topic_that_cannot_be_reached_is_told(aws: tuple[SNSClient, SQSClient]) -> None:
    closed = boto3.session.Session(region_name="us-east-1").client("sns", endpoint_url="http://127.0.0.1:1")

    with pytest.raises(AlertUndelivered, match="EndpointConnectionError"):
        Topic("arn:aws:sns:us-east-1:123456789012:alerts", lambda: closed)(MESSAGE)
