"""What a request to DynamoDB may meet, by name, and the errors that it is answered with: known here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from tests.simulation.store_errors import cancelled, client_error, reason

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

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
    # Applied, long after whoever asked has given up.
    "late",
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

NAMES: Final = {
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


def faults_of(operation: str, *, timed: bool = False) -> tuple[Fault, ...]:
    """Return what a request of an operation may meet; ``timed`` where there is a time in which a write can come late."""
    late: tuple[Fault, ...] = ("late",) if timed and "killed after" in FAULTS.get(operation, ()) else ()
    return (*FAULTS.get(operation, _ANY), *late)


def is_refusal(fault: Fault) -> bool:
    """Tell a fault that is an error answer to a request that is not applied."""
    return fault in _ERRORS or fault in _REASONS


def without_token(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request whose token the store does not know when it comes again: it looks at it anew."""
    return {name: value for name, value in request.items() if name != "ClientRequestToken"}


def error_of(fault: str, operation: str, request: Mapping[str, Any]) -> ClientError:
    """Return the error of a request that is not applied."""
    name = NAMES[operation]
    if fault in _ERRORS:
        code, status = _ERRORS[fault]
        return client_error(name, code, status=status)
    # The last steps have them: of a longer transaction these are the budgets.
    codes = _REASONS[fault][: len(request["TransactItems"])]
    passed = len(request["TransactItems"]) - len(codes)
    return cancelled(name, [reason(code) for code in (*["None"] * passed, *codes)])
