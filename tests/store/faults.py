"""Faults between the ledger and its table, on botocore's own event hooks: what no emulator raises.

A fault meets one request each, in order; a request without a fault passes.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# Meets a request: an answer in place of the store's, an error, or None to let it pass.
Fault = Callable[[AWSPreparedRequest], AWSResponse | None]


def _body(request: AWSPreparedRequest) -> dict[str, Any]:
    """What a request says."""
    body = request.body
    assert isinstance(body, str | bytes)
    said: dict[str, Any] = json.loads(body)
    return said


class _Raw:
    """The body of an answer as urllib3 would hand it over."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_rest: object) -> Iterator[bytes]:
        yield self._body


def answer(status: int, code: str, **members: object) -> Fault:
    """An error of DynamoDB's own; nothing is applied."""

    def fault(request: AWSPreparedRequest) -> AWSResponse:
        body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": code, **members})
        # botocore's stubs want its class of headers; whatever has items() does.
        headers: Any = {"content-type": "application/x-amz-json-1.0"}
        return AWSResponse(request.url, status, headers, _Raw(body.encode()))

    return fault


def cancelled(*codes: str | None) -> Fault:
    """A cancelled transaction with a reason for each of its steps: those given, then none."""

    def fault(request: AWSPreparedRequest) -> AWSResponse | None:
        steps = len(_body(request)["TransactItems"])
        # Of a shorter transaction the last ones: these are what the fault is about.
        given = [code or "None" for code in codes][-steps:]
        reasons = [{"Code": code} for code in (*given, *(["None"] * (steps - len(given))))]
        return answer(400, "TransactionCanceledException", CancellationReasons=reasons)(request)

    return fault


CONFLICT = cancelled(None, "TransactionConflict")
MIXED_CONFLICT = cancelled("ConditionalCheckFailed", "TransactionConflict")
THROTTLED_STEP = cancelled("ThrottlingError")
THROTTLED = answer(400, "ThrottlingException")
OVER_CAPACITY = answer(400, "ProvisionedThroughputExceededException")
IN_PROGRESS = answer(400, "TransactionInProgressException")
SERVER_ERROR = answer(500, "InternalServerError")
DENIED = answer(400, "AccessDeniedException")


def unreachable(request: AWSPreparedRequest) -> AWSResponse:
    """No connection: nothing is applied."""
    raise EndpointConnectionError(endpoint_url=request.url)


def passing(_request: AWSPreparedRequest) -> AWSResponse | None:
    """No fault."""
    return None


@dataclass(slots=True)
class Faults:
    """A queue of faults for requests of one operation, and a record of all that it sent."""

    client: DynamoDBClient
    operation: str = "TransactWriteItems"
    queue: deque[Fault] = field(default_factory=deque)
    always: Fault | None = None
    lost: set[int] = field(default_factory=set)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def meet(self, *faults: Fault) -> None:
        """Let the next requests meet these, one each."""
        self.queue.extend(faults)

    def lose_answer(self, *, after: int = 0) -> None:
        """Apply the request that comes after so many others, and lose its answer."""
        self.lost.add(len(self.requests) + after)

    @property
    def tokens(self) -> Sequence[str]:
        """The idempotency token of each request."""
        return [request["ClientRequestToken"] for request in self.requests]

    def before_send(self, request: AWSPreparedRequest, **_rest: object) -> AWSResponse | None:
        """Meet a request on its way out."""
        self.requests.append(_body(request))
        fault = self.queue.popleft() if self.queue else self.always
        return None if fault is None else fault(request)

    def after_answer(self, **_rest: object) -> None:
        """Lose an answer that has come: what it tells of has happened."""
        if len(self.requests) - 1 in self.lost:
            self.lost.discard(len(self.requests) - 1)
            raise ReadTimeoutError(endpoint_url="the store")


@contextmanager
def faults(client: DynamoDBClient, operation: str = "TransactWriteItems") -> Iterator[Faults]:
    """Stand between a client and its store while the block lasts."""
    layer = Faults(client, operation)
    hooks: list[tuple[str, Callable[..., Any]]] = [
        (f"before-send.dynamodb.{operation}", layer.before_send),
        (f"response-received.dynamodb.{operation}", layer.after_answer),
    ]
    for name, hook in hooks:
        client.meta.events.register(name, hook)
    try:
        yield layer
    finally:
        for name, hook in hooks:
            client.meta.events.unregister(name, hook)


@dataclass(slots=True)
class FakeTime:
    """A clock that only sleeping, and what a test adds, moves."""

    now: float = 0.0
    fraction: float = 1.0
    sleeps: list[float] = field(default_factory=list)
    asked: int = 0

    def monotonic(self) -> float:
        """Return the fake time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move the fake time."""
        self.sleeps.append(seconds)
        self.now += seconds

    def random(self) -> float:
        """Return the fraction of the longest pause."""
        self.asked += 1
        return self.fraction
