"""Errors as botocore raises them for an answer of DynamoDB's: the class is made anew from the code."""

from __future__ import annotations

from typing import Any, Final

from botocore.exceptions import ClientError

_MESSAGES: Final = {
    "None": None,
    "ConditionalCheckFailed": "The conditional request failed",
    "TransactionConflict": "Transaction is ongoing for the item",
    "ThrottlingError": "Throughput exceeds the current capacity of your table or index.",
    "ProvisionedThroughputExceeded": "The level of configured provisioned throughput for the table was exceeded.",
}


class ResourceInUseException(ClientError):
    """A table of the name exists."""


class ResourceNotFoundException(ClientError):
    """There is no such table or index."""


class ConditionalCheckFailedException(ClientError):
    """A condition of a single write failed."""


class TransactionCanceledException(ClientError):
    """A transaction was not done; the reasons are in the order of its steps."""


class Exceptions:
    """What a client calls ``exceptions``."""

    ClientError = ClientError
    ResourceInUseException = ResourceInUseException
    ResourceNotFoundException = ResourceNotFoundException
    ConditionalCheckFailedException = ConditionalCheckFailedException
    TransactionCanceledException = TransactionCanceledException


def client_error(
    operation: str, code: str, message: str | None = None, *, status: int = 400, **members: Any
) -> ClientError:
    """Return an error answer to an operation."""
    text = message or code
    response: Any = {
        "Error": {"Message": text, "Code": code},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}, "RetryAttempts": 0},
        "message": text,
        **members,
    }
    kind: type[ClientError] = getattr(Exceptions, code, ClientError)
    return kind(response, operation)


def invalid(operation: str, message: str) -> ClientError:
    """Return what DynamoDB says to a request that it does not take."""
    return client_error(operation, "ValidationException", message)


def reason(code: str, message: str | None = None, item: Any = None) -> dict[str, Any]:
    """Return one reason of a cancelled transaction."""
    said: dict[str, Any] = {"Code": code}
    text = message or _MESSAGES.get(code)
    if text is not None:
        said["Message"] = text
    if item is not None:
        said["Item"] = item
    return said


def cancelled(operation: str, reasons: list[dict[str, Any]]) -> ClientError:
    """Return a cancelled transaction."""
    codes = ", ".join(one["Code"] for one in reasons)
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return client_error(operation, "TransactionCanceledException", message, CancellationReasons=reasons)


def refused(operation: str, item: Any) -> ClientError:
    """Return a single write whose condition failed, with the item that it met where that is to be shown."""
    members = {} if item is None else {"Item": item}
    return client_error(
        operation, "ConditionalCheckFailedException", _MESSAGES["ConditionalCheckFailed"], status=400, **members
    )
