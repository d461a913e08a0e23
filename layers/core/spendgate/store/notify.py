"""Publishing to a topic of SNS: an email for people, and for everything else the form that a chat shows.

With ``MessageStructure`` json each protocol gets the text of its name, and all others ``default``
(docs.aws.amazon.com/sns/latest/api/API_Publish.html). Attributes are what filter policies of subscriptions match.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spendgate.core.alert_text import Message
from spendgate.errors import AlertUndelivered

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 5.0
# What a publish may fail with, such as "InvalidParameter", is a name; its message may repeat what was sent.
_ATTRIBUTE_LENGTH_MAX: Final = 256


def sns(*, region: str) -> SNSClient:
    """Return a client; the next minute tries again, so it does not try for long."""
    config = Config(
        region_name=region,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 2, "mode": "standard"},
    )
    return cast("SNSClient", botocore.session.get_session().create_client("sns", config=config))


class Topic:
    """Publishes messages; the client is made with the first, since most minutes have none."""

    def __init__(self, arn: str, client: Callable[[], SNSClient]) -> None:
        self._arn = arn
        self._make = client
        self._client: SNSClient | None = None

    def __call__(self, message: Message) -> None:
        """Publish a message; AlertUndelivered where the topic does not take it."""
        attributes: Any = {
            name: {"DataType": "String", "StringValue": value[:_ATTRIBUTE_LENGTH_MAX]}
            for name, value in message.attributes.items()
        }
        try:
            if self._client is None:
                self._client = self._make()
            self._client.publish(
                TopicArn=self._arn,
                Subject=message.subject,
                MessageStructure="json",
                Message=json.dumps({"default": message.chat, "email": message.email}),
                MessageAttributes=attributes,
            )
        except (ClientError, BotoCoreError) as error:
            raise AlertUndelivered(f"the topic takes no alert: {_name(error)}") from error


def _name(error: ClientError | BotoCoreError) -> str:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "an error without a code"))
    return type(error).__name__
