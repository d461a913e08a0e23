"""A client of DynamoDB that meets faults: those of DynamoDB, of the network before it, and of the process that calls it.

It wraps any client, so that the same plan can be met by the store in memory and by an emulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from tests.simulation.store_faults import NAMES, Fault, error_of, faults_of, is_refusal, without_token
from tests.simulation.virtual import Killed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


@dataclass(slots=True)
class Plan:
    """Draws what each request meets: so many of a thousand a fault, and after some of these nothing is reached."""

    random: Random
    of_a_thousand: int
    met: Counter[str] = field(default_factory=Counter)
    _away: int = 0

    def __call__(self, operation: str) -> Fault:
        """Return what the next request meets."""
        fault = self._drawn(operation)
        self.met[fault] += 1
        return fault

    def _drawn(self, operation: str) -> Fault:
        if self._away:
            self._away -= 1
            return "unreachable"
        if self.random.randrange(1000) >= self.of_a_thousand:
            return "none"
        fault = self.random.choice(faults_of(operation))
        if fault == "unreachable":
            self._away = self.random.choice((0, 0, 3, 30))
        return fault


class FaultyStore:
    """A client whose requests meet what ``meets`` says of each, by the name of its operation."""

    def __init__(self, store: object, meets: Callable[[str], Fault]) -> None:
        self._store = store
        self._meets = meets

    @property
    def client(self) -> DynamoDBClient:
        """The store as what the code calls it."""
        return cast("DynamoDBClient", self)

    def __getattr__(self, operation: str) -> Any:
        send = getattr(self._store, operation)
        if operation not in NAMES:
            return send

        def call(**request: Any) -> Any:
            return _sent(send, operation, request, self._meets(operation))

        return call


def _sent(send: Callable[..., Any], operation: str, request: dict[str, Any], fault: Fault) -> Any:
    if fault == "killed before":
        raise Killed
    if fault == "unreachable":
        raise EndpointConnectionError(endpoint_url="the store")
    if is_refusal(fault):
        raise error_of(fault, operation, request)
    if fault == "partial":
        return _in_part(send, request)
    if fault == "repeated":
        send(**request)
    if fault == "forgotten":
        send(**without_token(request))
    else:
        answer = send(**request)
    if fault == "killed after":
        raise Killed
    if fault in ("lost", "forgotten"):
        raise ReadTimeoutError(endpoint_url="the store")
    return answer


def _in_part(send: Callable[..., Any], request: Mapping[str, Any]) -> Any:
    """Ask for the first half of each table's keys, and leave the rest unprocessed."""
    asked, rest = {}, {}
    for table, wanted in request["RequestItems"].items():
        half = (len(wanted["Keys"]) + 1) // 2
        asked[table] = {**wanted, "Keys": wanted["Keys"][:half]}
        if wanted["Keys"][half:]:
            rest[table] = {**wanted, "Keys": wanted["Keys"][half:]}
    return {**send(RequestItems=asked), "UnprocessedKeys": rest}
