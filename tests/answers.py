"""What holds for every answer of the admin API in every test: its own type allows it, or the errors of its status do."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from spendgate.admin import Admin
from spendgate.admin_answers import Error
from spendgate.admin_http import refusal, respond
from spendgate.admin_models import Answer, Endpoint, Given
from spendgate.admin_openapi import FAILURES
from spendgate.errors import SpendgateError


def checked(admin: Admin, endpoint: Endpoint, given: Given) -> Answer:
    """Answer as ``respond`` does, and hold the answer, or the error, to what the document says of it."""
    try:
        answer = respond(admin, endpoint, given)
    except SpendgateError as error:
        check_error(endpoint, *refusal(error))
        raise
    check(endpoint, answer)
    return answer


def check(endpoint: Endpoint, answer: Answer) -> None:
    """Raise pydantic's ValidationError where an answer, as it goes over the wire, is not what its type allows."""
    _reader(endpoint.answer).validate_json(json.dumps(answer))


def check_error(endpoint: Endpoint, status: int, document: Answer) -> None:
    """Raise where an error has a status, a code or a field of which the document does not speak."""
    _reader(Error).validate_json(json.dumps(document))
    failure = FAILURES[status]
    assert document["error"]["code"] in failure.codes, (endpoint.name, status, document)
    assert endpoint.method == "POST" or not failure.changes_only, (endpoint.name, status, document)


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
