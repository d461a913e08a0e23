"""The ledger's transactions through botocore, less the walk over its model.

botocore writes a request by walking the service's model over every value: a good part of a call's CPU. A transaction's
body is JSON as it stands. Only botocore's documented events are used; endpoints, signing, connections, time-outs, parsing
and errors stay its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

OPERATION: Final = "TransactWriteItems"
_BODY: Final = "spendgate.body"


def lighten(client: DynamoDBClient, *, validate: bool) -> None:
    """Let the bodies of a client's transactions be written here. With ``validate`` botocore writes and checks them first."""
    transactions = Transactions(validate=validate)
    # Typed as if no handler answered; the first of these events is asked for an answer.
    events: Any = client.meta.events
    events.register(f"provide-client-params.dynamodb.{OPERATION}", transactions.take)
    events.register(f"before-call.dynamodb.{OPERATION}", transactions.put)


def written(parameters: Mapping[str, Any]) -> bytes:
    """Return the body of a transaction: the tables hold nothing that JSON spells in another way than the request does."""
    return json.dumps(parameters, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """The handlers of a client's transactions."""

    validate: bool

    def take(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> dict[str, Any] | None:
        """Write the body, and leave botocore nothing to walk over."""
        context[_BODY] = written(params)
        return None if self.validate else {}

    def put(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Put the body where botocore's own would be."""
        params["body"] = context[_BODY]
