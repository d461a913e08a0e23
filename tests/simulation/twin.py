"""Two clients of DynamoDB as one: each request goes to both, and their answers must be the same.

What DynamoDB leaves open is not compared: the texts of messages, and the order of what has none.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from botocore.exceptions import ClientError

from tests.simulation.memory_store import MemoryStore
from tests.simulation.memory_table import Key
from tests.simulation.memory_tokens import TOKEN_LIFE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# The attribute that a query of this index, or of none, comes ordered by.
_RANGES: Final = {None: "sk", "tree": "tree_sk", "open": "open_sk", "by_budget": "id"}


class Difference(AssertionError):
    """Two stores answered one request differently."""


@dataclass(slots=True)
class Twin:
    """The store in memory beside another. ``seen`` counts what was answered: by operation, and an error's code."""

    memory: MemoryStore
    other: DynamoDBClient
    clock: Callable[[], datetime]
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _tokens: dict[str, tuple[str, datetime]] = field(default_factory=dict)

    @property
    def client(self) -> DynamoDBClient:
        """The two as what the code calls one."""
        return cast("DynamoDBClient", self)

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> Any:
            ours = _answer(self.memory, operation, request)
            theirs = _answer(self.other, operation, self._renamed(request))
            said = told(operation, request, ours)
            if said != (other := told(operation, request, theirs)):
                raise Difference(f"{operation} {request}\n in memory {said}\n and other {other}")
            self.seen[operation, said[0]] += 1
            if isinstance(ours, ClientError):
                # A token's life begins with the transaction that is done under it.
                self._tokens.pop(request.get("ClientRequestToken", ""), None)
                raise ours
            return ours

        return call

    def _renamed(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request whose token is as old for the other store, whose clock is another, as it is by ours."""
        token = request.get("ClientRequestToken")
        if token is None:
            return request
        now = self.clock()
        other, ends_at = self._tokens.get(token, ("", now))
        if ends_at <= now:
            other, _ = self._tokens[token] = secrets.token_hex(16), now + TOKEN_LIFE
        return {**request, "ClientRequestToken": other}


def differences(twin: Twin, table: str) -> list[str]:
    """Return the keys of the items that are not the same in both tables."""
    pages = twin.other.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    theirs: dict[Key, Any] = {(item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]}
    ours = twin.memory.items(table)
    different = (key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    return [f"{key}: in memory {ours.get(key)}, and other {theirs.get(key)}" for key in sorted(different)]


def told(operation: str, request: Any, answer: Any) -> tuple[str, Any]:
    """Return what two answers must have in common."""
    if isinstance(answer, ClientError):
        response: Any = answer.response
        reasons = [(one.get("Code"), one.get("Item")) for one in response.get("CancellationReasons", ())]
        codes = ",".join(sorted({code for code, _ in reasons}))
        return f"{response['Error']['Code']} {codes}".strip(), (reasons, response.get("Item"))
    match operation:
        case "query":
            ranges = [item[_RANGES[request.get("IndexName")]] for item in answer["Items"]]
            # Of items with the same range any may come first, and be all that a limit leaves.
            return "", (ranges, answer["Count"], None if "Limit" in request else _unordered(answer["Items"]))
        case "scan":
            return "", _unordered(answer["Items"])
        case "batch_get_item":
            found = {table: _unordered(items) for table, items in answer["Responses"].items() if items}
            return "", (found, answer.get("UnprocessedKeys", {}))
        case "get_item":
            return "", answer.get("Item")
        case "transact_get_items":
            return "", [one.get("Item") for one in answer["Responses"]]
        case _:
            return "", None


def _answer(store: Any, operation: str, request: Any) -> Any:
    try:
        return getattr(store, operation)(**request)
    except ClientError as error:
        return error


def _unordered(items: Any) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)
