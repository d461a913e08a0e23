"""The admin API, once for every transport: how a request is decoded, and how an error is told.

Its endpoints are a table (``admin_endpoints.py``). Locally Starlette carries it (``local/admin_api.py``), in a
deployed stack API Gateway (``admin_resolver.py``).
Every error is ``{"error": {"code", "message", "field"?, "problems"?}}``.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from spendgate.admin import Admin
from spendgate.admin_input import invalid
from spendgate.admin_models import Answer, Asked, Body, Endpoint, Given, Parameter
from spendgate.dialects.json_strict import parse_object
from spendgate.errors import (
    BudgetMissing,
    ConfigurationInvalid,
    LedgerError,
    NotFound,
    Refused,
    RequestInvalid,
    ReservationMissing,
    SpendgateError,
)

PREFIX: Final = "/admin"
# Answers may hold a new key.
HEADERS: Final = {"cache-control": "no-store"}
BODY_DEPTH_MAX: Final = 8
_WORDS: Final = re.compile(r"(?<!^)(?=[A-Z])")


def respond(admin: Admin, endpoint: Endpoint, given: Given) -> Answer:
    """Decode a request, call its use case, return the answer. Blocks, since the store does; SpendgateError."""
    return endpoint.call(admin, _decoded(endpoint, given))


def refusal(error: SpendgateError) -> tuple[int, Answer]:
    """Return the status and the document of an error."""
    match error:
        case ConfigurationInvalid():
            problems = [{"place": one.place, "message": one.message, "line": one.line} for one in error.problems]
            count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
            return told(422, "configuration_invalid", f"the configuration has {count}", problems=problems)
        case Refused():
            fields = {} if error.facts.field is None else {"field": error.facts.field}
            return told(error.status, error.code, str(error), **fields)
        case ReservationMissing() | BudgetMissing():
            return told(404, _code(error), str(error))
        case LedgerError():
            # RevisionConflict, TransitionIllegal, SettlementConflict: things are not as the caller thinks they are.
            return told(409, _code(error), str(error))
        case _:
            return told(500, _code(error), str(error))


def told(status: int, code: str, message: str, **more: Any) -> tuple[int, Answer]:
    """Return an error as every transport tells it."""
    return status, {"error": {"code": code, "message": message, **more}}


def nowhere(method: str, path: str) -> NotFound:
    """Return the error of a request that no endpoint answers."""
    return NotFound(f"there is no {method} {path[:200]} in the admin API")


# --- decoding


def _decoded(endpoint: Endpoint, given: Given) -> Asked:
    body = None if endpoint.body is None else _body(endpoint.body, given, endpoint.body_bytes_max)
    return Asked(by=given.by, names=given.names, query=_query(endpoint.query, given.query), body=body)


def _body(model: type[Body], given: Given, bytes_max: int) -> Body:
    if len(given.raw) > bytes_max:
        raise RequestInvalid(f"the body has more than {bytes_max} bytes")
    parsed = parse_object(
        given.raw, content_encoding=given.content_encoding, bytes_max=bytes_max, depth_max=BODY_DEPTH_MAX
    )
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        raise invalid(".".join(map(str, detail["loc"])), str(detail["msg"]).removeprefix("Value error, ")) from error


def _query(known: Sequence[Parameter], given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    parameters = {one.name: one for one in known}
    found: dict[str, Any] = {one.name: one.number for one in known}
    seen: set[str] = set()
    for name, text in given:
        if name not in parameters:
            raise invalid(name[:64], f"is not known here; known: {', '.join(parameters) or 'nothing'}")
        if name in seen:
            raise invalid(name, "is given twice")
        seen.add(name)
        found[name] = text if parameters[name].number is None else _number(text, name)
    return found


def _number(text: str, field: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise invalid(field, "a whole number")
    return int(text)


def _code(error: SpendgateError) -> str:
    return _WORDS.sub("_", type(error).__name__).lower()
