"""A client of DynamoDB that meets faults: those of DynamoDB, of the network before it, and of the process that calls it.

It wraps any client, so that the same plan can be met by the store in memory and by an emulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from tests.simulation.store_errors import cancelled, client_error, reason
from tests.simulation.virtual import Killed

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_dynamodb.client import DynamoDBClient

Fault = Literal[
    "none",
    # Not applied, and said so.
    "conflict",
    "mixed",
    "throttled step",
    "throttled",
    "over capacity",
    "in progress",
    "server error",
    # Not applied, and no answer.
    "unreachable",
    # Applied, and no answer.
    "lost",
    # Delivered twice, under the same token.
    "repeated",
    # Applied, and the token is not known when the request comes again.
    "forgotten",
    # A batch that is answered in part.
    "partial",
    # The process dies.
    "killed before",
    "killed after",
]

_NAMES: Final = {
    "transact_write_items": "TransactWriteItems",
    "transact_get_items": "TransactGetItems",
    "get_item": "GetItem",
    "batch_get_item": "BatchGetItem",
    "query": "Query",
    "scan": "Scan",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
}
_ERRORS: Final[Mapping[str, tuple[str, int]]] = {
    "throttled": ("ThrottlingException", 400),
    "over capacity": ("ProvisionedThroughputExceededException", 400),
    "in progress": ("TransactionInProgressException", 400),
    "server error": ("InternalServerError", 500),
}
_REASONS: Final = {
    "conflict": ("TransactionConflict",),
    "mixed": ("TransactionConflict", "ConditionalCheckFailed"),
    "throttled step": ("ThrottlingError",),
}
_ANY: Final[tuple[Fault, ...]] = ("throttled", "over capacity", "server error", "unreachable", "lost", "killed before")
_WRITING: Final[tuple[Fault, ...]] = (*_ANY, "killed after")
FAULTS: Final[Mapping[str, tuple[Fault, ...]]] = {
    "transact_write_items": (
        *(*_WRITING, "conflict", "mixed", "throttled step", "in progress"),
        *("lost", "lost", "repeated", "forgotten"),
    ),
    "transact_get_items": (*_ANY, "conflict"),
    "batch_get_item": (*_ANY, "partial"),
    "update_item": _WRITING,
    "put_item": _WRITING,
}


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
        fault = self.random.choice(FAULTS.get(operation, _ANY))
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
        if operation not in _NAMES:
            return send

        def call(**request: Any) -> Any:
            return _sent(send, operation, request, self._meets(operation))

        return call


def _sent(send: Callable[..., Any], operation: str, request: dict[str, Any], fault: Fault) -> Any:
    if fault == "killed before":
        raise Killed
    if fault == "unreachable":
        raise EndpointConnectionError(endpoint_url="the store")
    if fault in _ERRORS or fault in _REASONS:
        raise error_of(fault, operation, request)
    if fault == "partial":
        return _in_part(send, request)
    if fault == "repeated":
        send(**request)
    if fault == "forgotten":
        send(**{name: value for name, value in request.items() if name != "ClientRequestToken"})
    else:
        answer = send(**request)
    if fault == "killed after":
        raise Killed
    if fault in ("lost", "forgotten"):
        raise ReadTimeoutError(endpoint_url="the store")
    return answer


def error_of(fault: str, operation: str, request: Mapping[str, Any]) -> ClientError:
    """Return the error of a request that is not applied."""
    name = _NAMES[operation]
    if fault in _ERRORS:
        code, status = _ERRORS[fault]
        return client_error(name, code, status=status)
    # The last steps have them: of a longer transaction these are the budgets.
    codes = _REASONS[fault][: len(request["TransactItems"])]
    passed = len(request["TransactItems"]) - len(codes)
    return cancelled(name, [reason(code) for code in (*["None"] * passed, *codes)])


def _in_part(send: Callable[..., Any], request: Mapping[str, Any]) -> Any:
    """Ask for the first half of each table's keys, and leave the rest unprocessed."""
    asked, rest = {}, {}
    for table, wanted in request["RequestItems"].items():
        half = (len(wanted["Keys"]) + 1) // 2
        asked[table] = {**wanted, "Keys": wanted["Keys"][:half]}
        if wanted["Keys"][half:]:
            rest[table] = {**wanted, "Keys": wanted["Keys"][half:]}
    return {**send(RequestItems=asked), "UnprocessedKeys": rest}
