"""The admin API's OpenAPI document, made from the table of its endpoints, so that it says what is answered."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from spendgate import __version__
from spendgate.admin import LIST_LENGTH_MAX
from spendgate.admin_answers import Elsewhere, Error
from spendgate.admin_models import Endpoint, Parameter

_NAMES: Final = re.compile(r"\{(\w+)\}")
_REF: Final = "#/components/schemas/{model}"
_JSON: Final = "application/json"
_MODES: Final[tuple[JsonSchemaMode, ...]] = ("validation", "serialization")


class Untitled(GenerateJsonSchema):
    """Schemas without a title for each field, which says its name again."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's own signature
        return False


@dataclass(frozen=True, slots=True)
class Failure:
    """A status of an error: what the caller does about it, and every code that it comes with; none is API Gateway's own."""

    told: str
    codes: tuple[str, ...] = ()
    # API Gateway says it before the function is asked, in its own words.
    elsewhere: bool = False
    changes_only: bool = False


FAILURES: Final[Mapping[int, Failure]] = {
    400: Failure("The request is wrong; `field` says where.", ("request_invalid",)),
    401: Failure("A local gateway: the token is missing or wrong.", ("token_invalid",)),
    403: Failure(
        "IAM does not allow the caller to invoke this, or nothing says who calls.", ("forbidden",), elsewhere=True
    ),
    404: Failure("There is no such thing.", ("not_found", "budget_missing", "reservation_missing")),
    409: Failure(
        "Things are not as the caller thinks: somebody was faster, or it is done already.",
        ("request_conflict", "revision_conflict", "transition_illegal", "settlement_conflict", "ledger_error"),
    ),
    413: Failure(
        "Deployed: the answer is larger than AWS Lambda hands on; ask for less.", ("answer_too_large",), elsewhere=True
    ),
    422: Failure(
        "The configuration is wrong; `problems` has every one with its line.",
        ("configuration_invalid",),
        changes_only=True,
    ),
    429: Failure("Deployed: too many requests for the stage's limit.", elsewhere=True),
    500: Failure(
        "A defect of the gateway; its log has the details.",
        ("internal_fault", "alert_undelivered"),
        elsewhere=True,
    ),
    503: Failure("The store does not answer, or the gateway's function does not.", ("ledger_unavailable",)),
    504: Failure("Deployed: it took longer than API Gateway waits; what it changes may be done.", elsewhere=True),
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document."""
    endpoints = tuple(endpoints)
    schemas = _schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(f"/admin{one.path}", {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Spendgate for operators",
            "version": __version__,
            "description": "Money is an exact decimal string in USD, times are UTC. Deployed, a request is signed with "
            "SigV4 (service execute-api) and IAM decides; locally it carries the gateway's token.",
        },
        "servers": [{"url": "/", "description": "The API's stage, or the local gateway."}],
        "security": [{"sigv4": []}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                str(status): {
                    "description": failure.told,
                    "headers": _HEADERS if failure.codes else {},
                    "content": {_JSON: {"schema": _failed(failure)}},
                }
                for status, failure in FAILURES.items()
            },
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                },
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


# An answer may hold a new key, so nothing between may keep one.
_HEADERS: Final = {"cache-control": {"schema": {"type": "string", "enum": ["no-store"]}}}


def _schemas(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    bodies = dict.fromkeys(one.body for one in endpoints if one.body is not None)
    answers = dict.fromkeys([*(one.answer for one in endpoints), Error, Elsewhere])
    found: dict[str, Any] = {}
    for mode, types in zip(_MODES, (bodies, answers), strict=True):
        inputs = [(one.__name__, mode, TypeAdapter(one)) for one in types]
        _, schemas = TypeAdapter.json_schemas(inputs, ref_template=_REF, schema_generator=Untitled)
        found |= schemas["$defs"]
    return found


def _failed(failure: Failure) -> dict[str, Any]:
    """Return the schema of an error's answer: ours with its codes, or what API Gateway itself says."""
    elsewhere = {"$ref": _REF.format(model="Elsewhere")}
    if not failure.codes:
        return elsewhere
    codes = {"error": {"properties": {"code": {"enum": list(failure.codes)}}}}
    ours = {"allOf": [{"$ref": _REF.format(model="Error")}, {"properties": codes}]}
    return {"anyOf": [ours, elsewhere]} if failure.elsewhere else ours


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _NAMES.findall(endpoint.path)
    ]
    parameters += [
        {"name": one.name, "in": "query", "required": False, "description": one.description, "schema": _typed(one)}
        for one in endpoint.query
    ]
    operation: dict[str, Any] = {"operationId": endpoint.name, "summary": endpoint.summary}
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.body)}
    done = {"description": endpoint.summary, "headers": _HEADERS, "content": _content(endpoint.answer)}
    errors = {
        str(status): {"$ref": f"#/components/responses/{status}"}
        for status, failure in FAILURES.items()
        if endpoint.method == "POST" or not failure.changes_only
    }
    return {**operation, "responses": {"200": done, **errors}}


def _typed(parameter: Parameter) -> dict[str, Any]:
    if parameter.number is not None:
        return {"type": "integer", "default": parameter.number, "minimum": 1, "maximum": LIST_LENGTH_MAX}
    return {"type": "string", "enum": list(parameter.values)} if parameter.values else {"type": "string"}


def _content(kind: Any) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": _REF.format(model=kind.__name__)}}}
