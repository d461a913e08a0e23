"""The gateway's own HTTP surface as an OpenAPI 3.1 document: ``python -m tools.gateway_openapi > docs/gateway-openapi.json``.

Of a provider's protocol it names the fields that most requests have; docs/dialects.md tells every one that is read, and what is
refused. A test holds its paths to those that the application answers, and others hold the answers to it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from spendgate import __version__
from spendgate.admin_openapi import Untitled
from spendgate.admin_records import Budget, Money, Reservation, ReservationId
from spendgate.core.reservation import STATES
from spendgate.dialects.registry import DIALECTS
from spendgate.errors import Refused
from tools.gateway_answers import REFUSALS, Budgets, GeminiModels, Health, Minted, Models
from tools.gateway_bodies import BODIES, IDEMPOTENCY_KEY, RUN, TEXT, Json

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_BINARY: Final = "application/vnd.amazon.eventstream"
_PATH_NAMES: Final = re.compile(r"\{(\w+)\}")


# One of each family's dialects: all of a family refuse alike.
_DIALECTS: Final = {"openai": "openai", "anthropic": "anthropic", "gemini": "gemini", "bedrock": "bedrock-converse"}
_OWN_FAMILIES: Final = ("openai", "anthropic", "gemini")
_ANSWERS: Final = (Models, GeminiModels, Budgets, Budget, Minted, Reservation, Health)
# What a refusal says of a provider, which the gateway's own answers do not ask.
_OF_PROVIDERS: Final = frozenset({"provider_unreachable", "provider_refused_us", "outcome_unknown"})


def document() -> Json:
    """Return the document."""
    paths: Json = {}
    for path, body, family, streams in _calls():
        answer = {
            "description": "The provider's answer.",
            "headers": _named(*_SHOWN),
            "content": _answered(streams),
            "links": _TO_RESERVATION,
        }
        paths[path] = {"post": _operation(path, family, {"200": answer}, body)}
    for method, path, status, answered, taken, family in _own():
        done: Json = {"description": answered, "content": {_JSON: {"schema": _ref(answered)}}}
        if answered == "Minted":
            done["links"] = _TO_END
        paths.setdefault(path, {})[method] = _operation(path, f"own-{family}", {status: done}, taken)
    paths["/healthz"]["get"]["security"] = []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Spendgate for agents",
            "version": __version__,
            "description": "Providers' own protocols behind a budget. Of their fields this names the commonest; "
            "docs/dialects.md has all that are read. Every other path is 404. Money is an exact decimal string in USD, times are UTC.",
        },
        "servers": [{"url": "/"}],
        "security": [{name: []} for name in _KEYS],
        "paths": paths,
        "components": {
            "schemas": {**BODIES, **_schemas(), "Passed": _PASSED},
            "responses": _responses(),
            "headers": _HEADERS,
            "securitySchemes": _KEYS,
        },
    }


def codes_of(family: str) -> Mapping[int, tuple[str, ...]]:
    """Return the statuses of a family's refusals with their codes: bedrock's are those that its SDK knows."""
    dialect, found = DIALECTS[_DIALECTS[family]], dict[int, list[str]]()
    for kind in Refused.__subclasses__():
        for status in (502, 504) if kind.code == "outcome_unknown" else (kind.status,):
            found.setdefault(dialect.status(kind("", status=status)), []).append(kind.code)
    return {status: tuple(dict.fromkeys(codes)) for status, codes in sorted(found.items())}


def schema_of(kind: Any) -> Json:
    """Return the schema of a type that needs no other."""
    return TypeAdapter(kind).json_schema(schema_generator=Untitled)


_PASSED: Final[Json] = {
    "type": "object",
    "description": "A provider's own error that proves that nothing was billed, as it came; x-spendgate-provider names it.",
}


_NUMBER: Final[Json] = {"type": "string", "pattern": "^[0-9]+$"}
_HEADERS: Final[Json] = {
    "retry-after": {"description": "In seconds.", "schema": _NUMBER},
    "x-spendgate-reservation": {"schema": schema_of(ReservationId)},
    "x-spendgate-reserved-usd": {"schema": schema_of(Money)},
    "x-spendgate-cost-usd": {"schema": schema_of(Money)},
    "x-spendgate-state": {"schema": {"type": "string", "enum": list(STATES)}},
    "x-spendgate-provider": {"schema": TEXT},
    "x-spendgate-model": {"schema": TEXT},
    "x-spendgate-output-cap": {"schema": _NUMBER},
    "x-spendgate-tool-call-cap": {"schema": _NUMBER},
}
_SHOWN: Final = tuple(_HEADERS)[1:]
# Where an answer leads: to the record of the call, and to the end of the run.
_TO_RESERVATION: Final[Json] = {
    "reservation": {
        "operationId": "v1_reservations_id",
        "parameters": {"id": "$response.header.x-spendgate-reservation"},
    }
}
_TO_END: Final[Json] = {"end": {"operationId": "v1_runs_run", "parameters": {"run": "$response.body#/run"}}}


def _schemas() -> Json:
    kinds = [*_ANSWERS, *REFUSALS.values()]
    adapters = [(kind.__name__, "serialization", TypeAdapter(kind)) for kind in kinds]
    _, schemas = TypeAdapter.json_schemas(
        adapters,  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
        schema_generator=Untitled,
    )
    found: Json = schemas["$defs"]
    return found


def _responses() -> Json:
    """Return each refusal by family and status; a call's may be the provider's own, one on a path of ours in any family's shape."""
    found: Json = {}
    for family in REFUSALS:
        shape = _ref(REFUSALS[family].__name__)
        for status, codes in codes_of(family).items():
            found[f"{family}-{status}"] = _refusal(codes, {"anyOf": [shape, _ref("Passed")]}, passed=True)
        found[f"{family}-passed"] = {
            "description": "As the provider refused.",
            "content": {_JSON: {"schema": _ref("Passed")}},
        }
    for name, families in (("any", _OWN_FAMILIES), ("gemini", ("gemini",))):
        shapes = [_ref(REFUSALS[family].__name__) for family in families]
        for status, codes in codes_of("openai").items():
            if told := [code for code in codes if code not in _OF_PROVIDERS]:
                found[f"own-{name}-{status}"] = _refusal(told, {"anyOf": shapes}, passed=False)
    return found


def _refusal(codes: Iterable[str], schema: Json, *, passed: bool) -> Json:
    # Whose SDK repeats what it may not is told so; a provider's own word is passed on without it.
    headers: Json = {
        "x-should-retry": {"required": not passed, "schema": {"type": "string", "enum": ["true", "false"]}}
    }
    headers |= _named("retry-after", "x-spendgate-reservation", *(("x-spendgate-provider",) if passed else ()))
    return {"description": f"Refused: {', '.join(codes)}.", "headers": headers, "content": {_JSON: {"schema": schema}}}


_KEYS: Final[Json] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    **{name: {"type": "apiKey", "in": "header", "name": name} for name in ("x-api-key", "api-key", "x-goog-api-key")},
}


def _calls() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return each call with its body, its family and the content types of its streams."""
    gemini = [
        (f"/{version}/models/{{model}}:{action}", body, "gemini", streams)
        for version in ("v1beta", "v1")
        for action, body, streams in (
            ("generateContent", "GenerateContent", ()),
            ("streamGenerateContent", "GenerateContent", (_EVENTS,)),
            ("embedContent", "EmbedContent", ()),
            ("batchEmbedContents", "BatchEmbedContents", ()),
            ("countTokens", "ContentTokens", ()),
        )
    ]
    return [
        ("/v1/chat/completions", "ChatCompletion", "openai", (_EVENTS,)),
        ("/v1/responses", "Response", "openai", (_EVENTS,)),
        ("/v1/completions", "Completion", "openai", (_EVENTS,)),
        ("/v1/embeddings", "Embeddings", "openai", ()),
        ("/v1/messages", "Message", "anthropic", (_EVENTS,)),
        ("/v1/messages/count_tokens", "MessageTokens", "anthropic", ()),
        ("/model/{model}/converse", "Converse", "bedrock", ()),
        ("/model/{model}/converse-stream", "Converse", "bedrock", (_BINARY,)),
        *gemini,
    ]


def _own() -> list[tuple[str, str, str, str, str | None, str]]:
    """Return what the gateway answers itself: method, path, status, answer, body, family."""
    return [
        ("get", "/v1/models", "200", "Models", None, "any"),
        ("get", "/v1beta/models", "200", "GeminiModels", None, "gemini"),
        ("get", "/v1/budget", "200", "Budgets", None, "any"),
        ("post", "/v1/runs", "201", "Minted", "Run", "any"),
        ("delete", "/v1/runs/{run}", "200", "Budget", None, "any"),
        ("get", "/v1/reservations/{id}", "200", "Reservation", None, "any"),
        ("get", "/healthz", "200", "Health", None, "any"),
    ]


def _operation(path: str, family: str, done: Json, body: str | None) -> Json:
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in _PATH_NAMES.findall(path)
    ]
    if body is not None or path == "/v1/budget":
        parameters.append({"name": "x-spendgate-run", "in": "header", "required": False, "schema": RUN})
    if body is not None and "runs" not in path:
        parameters.append({"name": "idempotency-key", "in": "header", "required": False, "schema": IDEMPOTENCY_KEY})
    refused = {
        name.rpartition("-")[2]: {"$ref": f"#/components/responses/{name}"}
        for name in _responses()
        if name.rpartition("-")[0] == family
    }
    # A provider may refuse in statuses of its own.
    passed = refused.pop("passed", None)
    others = {} if passed is None else {"4XX": passed, "5XX": passed}
    operation: Json = {"operationId": _name(path, body), "responses": {**done, **refused, **others}}
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        operation["requestBody"] = {
            "required": body != "Run",
            "content": {_JSON: {"schema": _ref(body)}},
        }
    return operation


def _answered(streams: tuple[str, ...]) -> Json:
    return {_JSON: {"schema": {}}, **{kind: {} for kind in streams}}


def _named(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _name(path: str, body: str | None) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", "_", path).strip("_")
    return f"{words}_{body}" if body is not None else words


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=1) + "\n")
