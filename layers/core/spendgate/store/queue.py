"""Settlements that DynamoDB did not take, on a queue of SQS: a failure domain of its own.

A message holds how one reservation ends, and nothing of what was asked or answered. It may come twice and late: the ledger
resolves a reservation once, and the same resolution again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spendgate.core.budget import Amounts
from spendgate.core.reservation import STATES, Reservation, Resolution, is_id
from spendgate.errors import LedgerUnavailable
from spendgate.store.items import decode_usage, encode_amounts, encode_usage

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

VERSION: Final = 1
CONNECT_SECONDS: Final = 1.0
READ_SECONDS: Final = 2.0
_TEXTS: Final = ("provider", "model", "response_model", "response_id", "evidence", "by")


def sqs(*, region: str) -> SQSClient:
    """Return a client with short time-outs: the call that it is for has little time left."""
    config = Config(
        region_name=region,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 2, "mode": "standard"},
    )
    return cast("SQSClient", botocore.session.get_session().create_client("sqs", config=config))


class SettlementQueue:
    """Sends resolutions; the client is made when the first is sent, since most gateways never send one."""

    def __init__(self, url: str, client: Callable[[], SQSClient]) -> None:
        self._url = url
        self._make = client
        self._client: SQSClient | None = None

    def send(self, reservation: Reservation, resolution: Resolution) -> None:
        """Put a resolution on the queue; LedgerUnavailable where it is not taken."""
        try:
            if self._client is None:
                self._client = self._make()
            self._client.send_message(QueueUrl=self._url, MessageBody=encode(reservation.id, resolution))
        except (ClientError, BotoCoreError) as error:
            raise LedgerUnavailable(f"the settlement queue takes nothing: {type(error).__name__}") from error


def encode(reservation_id: str, resolution: Resolution) -> str:
    """Return a message."""
    texts = {name: value for name in _TEXTS if (value := getattr(resolution, name)) is not None}
    document: dict[str, Any] = {
        "version": VERSION,
        "reservation": reservation_id,
        "state": resolution.state,
        "reason": resolution.reason,
        **texts,
    }
    if resolution.actual is not None:
        document["actual"] = encode_amounts(resolution.actual)
    if resolution.usage is not None:
        document["usage"] = encode_usage(resolution.usage)
    return json.dumps(document, separators=(",", ":"))


def decode(text: str) -> tuple[str, Resolution]:
    """Return the reservation's id and its resolution; ValueError for what no gateway sent."""
    try:
        document: Mapping[str, Any] = json.loads(text)
        if document["version"] != VERSION or not is_id(document["reservation"]) or document["state"] not in STATES:
            raise ValueError("a message of another version, or of no reservation")
        actual, usage = document.get("actual"), document.get("usage")
        resolution = Resolution(
            state=document["state"],
            reason=str(document["reason"]),
            actual=None if actual is None else Amounts(**actual),
            usage=None if usage is None else decode_usage(usage),
            **{name: str(document[name]) for name in _TEXTS if name in document},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a settlement: {type(error).__name__}") from error
    return document["reservation"], resolution
