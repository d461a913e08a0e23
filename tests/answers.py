"""What holds for every answer of ours in every test: its own type allows it, or the errors of its status do."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from spendgate.admin import Admin
from spendgate.admin_answers import Error
from spendgate.admin_http import refusal, respond
from spendgate.admin_models import Answer, Endpoint, Given
from spendgate.admin_openapi import FAILURES
from spendgate.asgi import refusal as refusal_of
from spendgate.dialects.dialect import Dialect
from spendgate.errors import Refused, SpendgateError
from tools.gateway_answers import REFUSALS
from tools.gateway_openapi import codes_of


def checked(admin: Admin, endpoint: Endpoint, given: Given) -> Answer:
    """Answer as ``respond`` does, and hold the answer, or the error, to what the document says of it."""
    try:
        answer = respond(admin, endpoint, given)
    except SpendgateError as error:
        check_error(endpoint, *refusal(error))
        raise
    check(endpoint, answer)
    return answer


def checked_refusal(dialect: Dialect, refused: Refused, request_id: str) -> Response:
    """Refuse as the gateway does, and hold the refusal to the shape that its family's document has."""
    answer = refusal_of(dialect, refused, request_id)
    _reader(REFUSALS[dialect.family]).validate_json(bytes(answer.body))
    assert refused.code in codes_of(dialect.family)[answer.status_code], (refused.code, answer.status_code)
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
