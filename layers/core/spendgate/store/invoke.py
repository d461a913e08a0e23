"""Asking another function of the stack for its work, and waiting for what it returns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spendgate.errors import AlertUndelivered, LedgerUnavailable

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 25.0
# Before a streamed answer stands its status, for API Gateway; to whoever invokes the function it comes along.
_PRELUDE_END: Final = b"\0" * 8


class _Unanswered(Exception):
    """A function did not do its work; the text says in what way."""


def send_test_alerts(function: str, *, region: str) -> Mapping[str, Any]:
    """Have the alerts function send its test; AlertUndelivered where it does not answer."""
    try:
        return _document(_invoked(function, {"test": True}, region=region, read_seconds=READ_SECONDS))
    except _Unanswered as error:
        raise AlertUndelivered(f"the alerts function {error}") from error


def ask_gateway(
    function: str, reservation_id: str, *, region: str, read_seconds: float = READ_SECONDS
) -> Mapping[str, Any]:
    """Have the gateway function ask a provider what became of a call; LedgerUnavailable where it does not answer."""
    try:
        payload = _invoked(function, {"reservation": reservation_id}, region=region, read_seconds=read_seconds)
        return _document(payload.rpartition(_PRELUDE_END)[2])
    except _Unanswered as error:
        raise LedgerUnavailable(f"the gateway function {error}") from error


def _invoked(function: str, event: Mapping[str, Any], *, region: str, read_seconds: float) -> bytes:
    config = Config(
        region_name=region,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"total_max_attempts": 1},
    )
    client: Any = botocore.session.get_session().create_client("lambda", config=config)
    try:
        answer = client.invoke(FunctionName=function, Payload=json.dumps(event))
        payload: bytes = answer["Payload"].read()
    except (ClientError, BotoCoreError) as error:
        raise _Unanswered(f"does not answer: {type(error).__name__}") from error
    if "FunctionError" in answer:
        raise _Unanswered("failed; its log says why")
    return payload


def _document(payload: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(payload)
    except ValueError as error:
        raise _Unanswered("answered what is no JSON") from error
    if not isinstance(found, dict):
        raise _Unanswered("answered nothing")
    return found
