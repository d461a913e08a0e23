"""The gateway's own HTTP surface as an OpenAPI 3.1 document: ``python -m tools.gateway_openapi > docs/gateway-openapi.json``.

Of a provider's protocol it names the fields that most requests have; docs/dialects.md tells every one that is read, and what is
refused. A test holds its paths to those that the application answers.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final

from spendgate import __version__

Json = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_WHOLE: Final[Json] = {"type": "integer", "minimum": 1}
_OBJECT: Final[Json] = {"type": "object"}
_AMOUNT: Final[Json] = {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$", "description": "Exact, in USD."}
_INSTANT: Final[Json] = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}


def _object(required: str = "", /, **properties: Json) -> Json:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(of: Json, least: int = 1) -> Json:
    return {"type": "array", "items": of, "minItems": least}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _one_of(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


_PART: Final = _object("type text", type=_one_of("text"), text=_TEXT)
_CONTENT: Final[Json] = {"anyOf": [_TEXT, _list(_PART)]}
_PARTS: Final = _object("role parts", role=_one_of("user", "model"), parts=_list(_object("text", text=_TEXT)))
_CALLABLE: Final = _object("name", name={"type": "string", "minLength": 1}, parameters=_OBJECT)
_TURN: Final = _object("role content", role=_one_of("system", "user", "assistant"), content=_CONTENT)
_MESSAGE: Final = _object("role content", role=_one_of("user", "assistant"), content=_CONTENT)
_BLOCKS: Final = _object("role content", role=_one_of("user", "assistant"), content=_list(_object("text", text=_TEXT)))
_COUNTED: Final = _object(
    "model messages",
    model=_TEXT,
    messages=_list(_MESSAGE),
    system=_CONTENT,
    tools=_list(_object("name input_schema", name=_TEXT, input_schema=_OBJECT)),
)
_BODIES: Final[Json] = {
    "ChatCompletion": _object(
        "model messages",
        model=_TEXT,
        messages=_list(_TURN),
        max_completion_tokens=_WHOLE,
        n=_WHOLE,
        stream={"type": "boolean"},
        stop={"anyOf": [_TEXT, _list(_TEXT)]},
        temperature={"type": "number", "minimum": 0, "maximum": 2},
        tools=_list(_object("type function", type=_one_of("function"), function=_CALLABLE)),
        response_format=_object("type", type=_one_of("text", "json_object")),
    ),
    "Completion": _object(
        "model prompt", model=_TEXT, prompt=_TEXT, max_tokens=_WHOLE, n=_WHOLE, stream={"type": "boolean"}
    ),
    "Embeddings": _object("model input", model=_TEXT, input={"anyOf": [_TEXT, _list(_TEXT)]}, dimensions=_WHOLE),
    "Response": _object(
        "model input",
        model=_TEXT,
        input={"anyOf": [_TEXT, _list(_object("role content", role=_one_of("user", "assistant"), content=_TEXT))]},
        instructions=_TEXT,
        max_output_tokens={"type": "integer", "minimum": 16},
        store={"type": "boolean"},
        stream={"type": "boolean"},
        tools=_list(_object("type name", type=_one_of("function"), name=_TEXT, parameters=_OBJECT)),
    ),
    "Message": _object(
        "model messages max_tokens",
        max_tokens=_WHOLE,
        stream={"type": "boolean"},
        stop_sequences=_list(_TEXT),
        **_COUNTED["properties"],
    ),
    "MessageTokens": _COUNTED,
    "Converse": _object(
        "messages",
        messages=_list(_BLOCKS),
        system=_list(_object("text", text=_TEXT)),
        inferenceConfig=_object(maxTokens=_WHOLE, stopSequences=_list(_TEXT)),
    ),
    "GenerateContent": _object(
        "contents",
        contents=_list(_PARTS),
        systemInstruction=_object("parts", parts=_list(_object("text", text=_TEXT))),
        generationConfig=_object(maxOutputTokens=_WHOLE, candidateCount=_WHOLE, stopSequences=_list(_TEXT)),
        tools=_list(_object("functionDeclarations", functionDeclarations=_list(_CALLABLE))),
    ),
    "ContentTokens": _object("contents", contents=_list(_PARTS)),
    "EmbedContent": _object("content", content=_object("parts", parts=_list(_object("text", text=_TEXT)))),
    "BatchEmbedContents": _object(
        "requests",
        requests=_list(
            _object("model content", model=_TEXT, content=_object("parts", parts=_list(_object("text", text=_TEXT))))
        ),
    ),
    "Run": _object(
        run=_TEXT,
        limits={"type": "object", "additionalProperties": {"type": "object"}},
        expires_after=_TEXT,
        elapsed_max=_TEXT,
        active_max=_TEXT,
        models=_list(_TEXT, 0),
        delegate={"type": "integer", "minimum": 0},
    ),
}
_FACTS: Final[Json] = {
    "code": {"type": "string", "description": "A stable word; docs/errors.md has them all."},
    "retryable": {"type": "boolean"},
    "budget": {"anyOf": [_TEXT, {"type": "null"}]},
    "next_action": {"anyOf": [_TEXT, {"type": "null"}]},
}
_TOLD: Final = _object("code retryable", **_FACTS)
# What each family's SDKs parse; the facts are the same in all.
_REFUSALS: Final[Json] = {
    "openai": _object("error", error=_object("message type code retryable", message=_TEXT, type=_TEXT, **_FACTS)),
    "anthropic": _object(
        "type error",
        type=_one_of("error"),
        error=_object("type message details", type=_TEXT, message=_TEXT, details=_TOLD),
    ),
    "gemini": _object(
        "error",
        error=_object(
            "code status message details", code={"type": "integer"}, status=_TEXT, message=_TEXT, details=_list(_TOLD)
        ),
    ),
    "bedrock": _object("message details", message=_TEXT, details=_TOLD),
}
_BUDGET: Final = _object(
    "path rev mode stop reserved unknown committed windows policy",
    path=_TEXT,
    rev={"type": "integer", "minimum": 0},
    mode=_one_of("enforce", "observe"),
    stop={"anyOf": [_OBJECT, {"type": "null"}]},
    expires_at=_INSTANT,
    reserved=_AMOUNT,
    unknown=_AMOUNT,
    committed=_object("day month life", day=_AMOUNT, month=_AMOUNT, life=_AMOUNT),
    windows=_list(_object("measure window maximum", measure=_TEXT, window=_TEXT, maximum=_TEXT), 0),
    policy=_OBJECT,
)
_ANSWERS: Final[Json] = {
    "Models": _object("object data", object=_one_of("list"), data=_list(_object("id", id=_TEXT), 0)),
    "GeminiModels": _object("models", models=_list(_object("name", name=_TEXT), 0)),
    "Budgets": _object("budget budgets", budget=_TEXT, budgets=_list(_ref("Budget"))),
    "Budget": _BUDGET,
    "Minted": _object(
        "key run budget expires_at models delegate",
        key=_TEXT,
        run=_TEXT,
        budget=_TEXT,
        expires_at=_INSTANT,
        models=_list(_TEXT, 0),
        delegate={"type": "integer", "minimum": 0},
    ),
    "Reservation": _object(
        "id state budget reserved actual created_at deadline resolved_at",
        id=_TEXT,
        state=_one_of("in_flight", "unknown", "settled", "released", "charged"),
        budget=_TEXT,
        reserved=_object("usd", usd=_AMOUNT),
        actual={"anyOf": [_object("usd", usd=_AMOUNT), {"type": "null"}]},
        created_at={"type": "string", "format": "date-time"},
        deadline={"type": "string", "format": "date-time"},
        resolved_at=_INSTANT,
    ),
    "Health": _object("status", status=_one_of("ok")),
}
_EVENTS: Final = "text/event-stream"
_BINARY: Final = "application/vnd.amazon.eventstream"
_PATH_NAMES: Final = re.compile(r"\{(\w+)\}")


def document() -> Json:
    """Return the document."""
    paths: Json = {}
    for path, body, family, streams in _calls():
        answer = {"description": "The provider's answer.", "headers": _headers(), "content": _answered(streams)}
        paths[path] = {"post": _operation(path, family, {"200": answer}, body)}
    for method, path, status, name, taken, family in _own():
        done = {"description": name, "content": {"application/json": {"schema": _ref(name)}}}
        paths.setdefault(path, {})[method] = _operation(path, family, {status: done}, taken)
    paths["/healthz"]["get"]["security"] = []
    refusals = {**_REFUSALS, "any": {"anyOf": [_ref(f"Refused-{family}") for family in _REFUSALS]}}
    refused = {f"Refused-{family}": schema for family, schema in _REFUSALS.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Spendgate for agents",
            "version": __version__,
            "description": "Providers' own protocols behind a budget. Of their fields this names the commonest; "
            "docs/dialects.md has all that are read. Every other path is 404.",
        },
        "servers": [{"url": "/"}],
        "security": [{name: []} for name in _KEYS],
        "paths": paths,
        "components": {
            "schemas": {**_BODIES, **_ANSWERS, **refused},
            "responses": {family: _refusal(family, refusals[family]) for family in refusals},
            "securitySchemes": _KEYS,
        },
    }


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
        ("get", "/v1/models", "200", "Models", None, "openai"),
        ("get", "/v1beta/models", "200", "GeminiModels", None, "gemini"),
        ("get", "/v1/budget", "200", "Budgets", None, "openai"),
        ("post", "/v1/runs", "201", "Minted", "Run", "openai"),
        ("delete", "/v1/runs/{run}", "200", "Budget", None, "openai"),
        ("get", "/v1/reservations/{id}", "200", "Reservation", None, "openai"),
        ("get", "/healthz", "200", "Health", None, "openai"),
    ]


def _operation(path: str, family: str, done: Json, body: str | None) -> Json:
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in _PATH_NAMES.findall(path)
    ]
    if body is not None or path == "/v1/budget":
        parameters.append({"name": "x-spendgate-run", "in": "header", "required": False, "schema": _TEXT})
    if body is not None and "runs" not in path:
        parameters.append({"name": "idempotency-key", "in": "header", "required": False, "schema": _TEXT})
    # Which SDK asks on a path of the gateway's own is told by its headers.
    refused = {"$ref": f"#/components/responses/{family if body not in (None, 'Run') else 'any'}"}
    operation: Json = {"operationId": _name(path, body), "responses": {**done, "4XX": refused, "5XX": refused}}
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        operation["requestBody"] = {
            "required": body != "Run",
            "content": {"application/json": {"schema": _ref(body)}},
        }
    return operation


def _refusal(family: str, schema: Json) -> Json:
    schema = schema if family == "any" else _ref(f"Refused-{family}")
    return {"description": "A refusal, in the family's shape.", "content": {"application/json": {"schema": schema}}}


def _answered(streams: tuple[str, ...]) -> Json:
    return {"application/json": {"schema": {}}, **{kind: {"schema": _TEXT} for kind in streams}}


def _headers() -> Json:
    names = ("x-spendgate-reservation", "x-spendgate-reserved-usd", "x-spendgate-cost-usd", "x-spendgate-provider")
    return {name: {"schema": _TEXT, "required": False} for name in names}


def _name(path: str, body: str | None) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", "_", path).strip("_")
    return f"{words}_{body}" if body is not None else words


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=1) + "\n")
