"""Sending a transaction: conflicts are tried again with full jitter until a deadline, failed conditions are raised.

botocore retries no transaction conflict and knows no deadline, so the loop is here, the same ``ClientRequestToken``
each time: a write whose answer was lost is not done twice. (docs.aws.amazon.com/amazondynamodb,
TransactWriteItems, "Idempotency"; a token lives ten minutes.)
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from spendgate.errors import LedgerUnavailable
from spendgate.store.values import decode_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from spendgate.store.write import Step

T = TypeVar("T")

# What DynamoDB says when the same call may succeed a moment later; a conflict among the reasons outweighs a failed
# condition, since the other transaction may yet change what the condition saw.
_PASSING_REASONS: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_PASSING_ERRORS: Final = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionInProgressException",
        "TransactionConflictException",
    }
)
_SERVER_ERROR: Final = 500
_PAUSE_FIRST: Final = 0.01
_PAUSE_MAX: Final = 0.3
# From here on the pause is the longest there is; a power of two beyond a float's range is an error.
_DOUBLINGS_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A step whose condition failed, and the item that it met (None: there was none)."""

    step: Step
    item: Mapping[str, Any] | None


class ConditionsFailed(Exception):
    """A transaction was refused by its conditions, and nothing else stood in the way."""

    def __init__(self, failed: Sequence[Failed]) -> None:
        super().__init__(", ".join(f"{one.step.subject} {one.step.name}" for one in failed))
        self.failed = tuple(failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How the loop measures and waits: a monotonic clock, a sleep, a random number from 0 to 1, and random bytes.

    ``on_conflict`` is told of each answer of the store that another try may change.
    """

    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    random: Callable[[], float]
    randomness: Callable[[int], bytes]
    deadline_seconds: float = 2.0
    on_conflict: Callable[[], None] | None = None


def transact(client: DynamoDBClient, steps: Sequence[Step], *, name: str, timing: Timing) -> None:
    """Send the steps as one transaction; ConditionsFailed or LedgerUnavailable.

    ``name`` (at most 26 characters) begins the token; the rest of it is a digest of the steps, so that the same
    write has the same token and another write another.
    """
    writes = [step.write for step in steps]
    # Version 2 knows no references: the same write gives the same bytes, in a quarter of the time that JSON takes.
    token = f"{name}-{hashlib.sha256(marshal.dumps(writes, 2)).hexdigest()[:9]}"

    def send() -> None:
        try:
            client.transact_write_items(TransactItems=writes, ClientRequestToken=token)
        except ClientError as error:
            failed = _failed_conditions(error, steps)
            if failed is None:
                raise
            if any(one.step.own for one in failed):
                # It was done: its answer was lost, and the store took the repetition for another.
                return
            raise ConditionsFailed(failed) from error

    persist(send, timing)


def update(client: DynamoDBClient, step: Step, timing: Timing) -> bool:
    """Send one update by itself, at half the price of a transaction; False where its condition fails.

    LedgerUnavailable. To be repeated without harm, what it writes must be the same each time.
    """
    request: Any = step.write["Update"]

    def send() -> bool:
        try:
            client.update_item(**request)
        except ClientError as error:
            if _code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    return persist(send, timing)


def persist(call: Callable[[], T], timing: Timing) -> T:
    """Do a call until it succeeds or the deadline passes; LedgerUnavailable then, or at once where waiting is no use."""
    start = timing.monotonic()
    attempt = 0
    while True:
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            pause = timing.random() * min(_PAUSE_MAX, _PAUSE_FIRST * 2 ** min(attempt, _DOUBLINGS_MAX))
            attempt += 1
            if not _is_passing(error):
                raise LedgerUnavailable(
                    f"the ledger refuses the gateway: {_name(error)}", retry_after_seconds=5
                ) from error
            if timing.on_conflict is not None and isinstance(error, ClientError):
                timing.on_conflict()
            if timing.monotonic() + pause - start >= timing.deadline_seconds:
                raise LedgerUnavailable(
                    f"the ledger did not answer in time ({_name(error)}, {attempt} attempts)",
                    retry_after_seconds=1,
                ) from error
            timing.sleep(pause)


def _failed_conditions(error: ClientError, steps: Sequence[Step]) -> list[Failed] | None:
    """Return the failed conditions of a cancelled transaction, None if anything else was among its reasons."""
    if _code(error) != "TransactionCanceledException":
        return None
    reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", ())
    codes = {reason.get("Code", "None") for reason in reasons}
    if codes - {"None", "ConditionalCheckFailed"} or "ConditionalCheckFailed" not in codes:
        return None
    return [
        Failed(step=step, item=decode_item(reason["Item"]) if reason.get("Item") else None)
        for step, reason in zip(steps, reasons, strict=True)
        if reason.get("Code") == "ConditionalCheckFailed"
    ]


def _is_passing(error: ClientError | BotoCoreError) -> bool:
    if isinstance(error, BotoCoreError):
        # No answer, or none that could be read: the same token makes the repetition harmless.
        return True
    if _code(error) == "TransactionCanceledException":
        reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", ())
        return any(reason.get("Code") in _PASSING_REASONS for reason in reasons)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return _code(error) in _PASSING_ERRORS or status >= _SERVER_ERROR


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def _name(error: ClientError | BotoCoreError) -> str:
    return _code(error) if isinstance(error, ClientError) else type(error).__name__
