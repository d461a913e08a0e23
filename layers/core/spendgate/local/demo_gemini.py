"""How Gemini's requests are read by the demo provider's rule, and how its answers look on the wire."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from spendgate.local.demo_shapes import USAGE, Reply, Shape, printed
from spendgate.local.demo_work import SEARCHES, RequestUnreadable, Work, work_of

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}
# What the demo provider bills for a medium, whatever its size.
MEDIA_TOKENS: Final = 258
VECTOR: Final = (0.5, -0.25, 0.125, 1.0)
_BYTES: Final = ("inlineData", "fileData")
_ROLES: Final = {"model": "assistant"}


class ByQuery:
    """Gemini's stream: events where they are asked for, else one array."""

    def __init__(self, events: ASGIApp, array: ASGIApp) -> None:
        self._events = events
        self._array = array

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["query_string"] == b"alt=sse"
        await (self._events if asked else self._array)(scope, receive, send)


def read(body: bytes, path: Mapping[str, str], *, stream: bool = False) -> Work:
    """Read a request; RequestUnreadable says what is wrong with it."""
    try:
        document = json.loads(body)
        common = _common(document, path["model"], stream=stream)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as cause:
        raise RequestUnreadable("the body is no generateContent request") from cause
    work = work_of("openai", json.dumps(common).encode())
    tokens = work.input_tokens + MEDIA_TOKENS * _media(document)
    searches = SEARCHES if any("googleSearch" in tool for tool in document.get("tools", [])) else 0
    return replace(work, input_tokens=tokens, searches=searches, field_names=tuple(sorted(document)))


def read_embedding(body: bytes, path: Mapping[str, str]) -> Work:
    """Read a request for one embedding or several; RequestUnreadable says what is wrong with it."""
    try:
        document = json.loads(body)
        entries = document.get("requests", [document])
        if any(one["model"] != f"models/{path['model']}" for one in entries):
            raise RequestUnreadable("the model of a request is not that of the path")
        common = _common({"contents": [one["content"] for one in entries]}, path["model"], stream=False)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as cause:
        raise RequestUnreadable("the body is no request for embeddings") from cause
    work = work_of("openai", json.dumps(common | {"max_tokens": 0}).encode())
    return replace(
        work,
        input_tokens=work.input_tokens + MEDIA_TOKENS * _media(document),
        choices=len(entries),
        output_cap=None,
        field_names=tuple(sorted(document)),
    )


def _media(value: Any) -> int:
    """Count the media within a request, at any depth."""
    if isinstance(value, list):
        return sum(_media(inner) for inner in value)
    if not isinstance(value, dict):
        return 0
    return sum(name in value for name in _BYTES) + sum(_media(inner) for inner in value.values())


def _common(document: Mapping[str, Any], model: str, *, stream: bool) -> dict[str, Any]:
    """Return a request in the words of the demo provider's rule."""
    config = document.get("generationConfig", {})
    functions = [one for tool in document.get("tools", []) for one in tool.get("functionDeclarations", [])]
    return {
        "model": model,
        "stream": stream,
        "messages": [_message(content) for content in document["contents"]],
        "system": document.get("systemInstruction", {}).get("parts"),
        "tools": [_function(one) for one in functions] or None,
        "response_format": config.get("responseSchema", config.get("responseJsonSchema")),
        "max_tokens": config.get("maxOutputTokens"),
        "n": config.get("candidateCount"),
    }


def _message(content: Mapping[str, Any]) -> dict[str, Any]:
    role = content.get("role", "user")
    return {"role": _ROLES.get(role, role), "content": [_part(part) for part in content.get("parts", [])]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if "functionResponse" in part:
        return {"type": "tool_result", **part["functionResponse"], "parts": None}
    return {**part, **part.get("functionCall", {}), "functionCall": None, **dict.fromkeys(_BYTES)}


def _function(function: Mapping[str, Any]) -> dict[str, Any]:
    return {**function, "parameters": function.get("parameters", function.get("parametersJsonSchema"))}


def _usage(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "promptTokenCount": input_tokens,
        "candidatesTokenCount": output_tokens,
        "totalTokenCount": input_tokens + output_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": input_tokens}],
    }


def _embedding_usage(input_tokens: int, _output_tokens: int) -> dict[str, Any]:
    """Return the usage as embeddings tell it: spelled otherwise, and without a total."""
    return {
        "promptTokenCount": input_tokens,
        "promptTokenDetails": [{"modality": "TEXT", "tokenCount": input_tokens}],
    }


def _embedding_body(reply: Reply) -> bytes:
    return _embedded(reply, {"embedding": {"values": VECTOR}})


def _embeddings_body(reply: Reply) -> bytes:
    return _embedded(reply, {"embeddings": [{"values": VECTOR}] * reply.choices})


def _embedded(reply: Reply, document: dict[str, Any]) -> bytes:
    return printed(document if reply.usage_text is None else document | {"usageMetadata": USAGE}, reply.usage_text)


def _body(reply: Reply) -> bytes:
    parts = [_call(reply.tool)] if reply.tool else [{"text": reply.text}]
    candidates = [_candidate(index, parts, _finish(reply)) for index in range(reply.choices)]
    return printed(_document(reply, candidates, USAGE), reply.usage_text)


def _chunks(reply: Reply) -> Iterator[bytes]:
    """Yield the chunks, each with the usage so far, as the real one does."""
    pieces: list[dict[str, Any]] = [_call(reply.tool)] if reply.tool else [{"text": piece} for piece in reply.pieces]
    so_far = {"promptTokenCount": reply.input_tokens, "totalTokenCount": reply.input_tokens}
    for index in range(reply.choices):
        for number, piece in enumerate(pieces, 1):
            finish = _finish(reply) if number == len(pieces) else None
            is_last = finish is not None and index == reply.choices - 1
            document = _document(reply, [_candidate(index, [piece], finish)], USAGE if is_last else so_far)
            yield printed(document, reply.usage_text)


def _events(reply: Reply) -> list[bytes]:
    return [b"data: " + chunk + b"\r\n\r\n" for chunk in _chunks(reply)]


def _array(reply: Reply) -> list[bytes]:
    return [*((b",\r\n" if number else b"[") + chunk + b"\n" for number, chunk in enumerate(_chunks(reply))), b"]\n"]


def _document(reply: Reply, candidates: list[dict[str, Any]], usage: Any) -> dict[str, Any]:
    if reply.searches:
        queries = [f"demo {number}" for number in range(reply.searches)]
        candidates = [one | {"groundingMetadata": {"webSearchQueries": queries}} for one in candidates]
    document = {"candidates": candidates, "modelVersion": reply.model, "responseId": f"demo-{reply.id}"}
    return document if reply.usage_text is None else document | {"usageMetadata": usage}


def _candidate(index: int, parts: list[dict[str, Any]], finish: str | None) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": index}
    return candidate if finish is None else candidate | {"finishReason": finish}


def _call(tool: tuple[str, str]) -> dict[str, Any]:
    return {"functionCall": {"name": tool[0], "args": json.loads(tool[1])}}


def _finish(reply: Reply) -> str:
    return "MAX_TOKENS" if reply.capped else "STOP"


def _error(status: int, message: str, code: str | None) -> bytes:
    error = {"code": status, "message": message, "status": code or _STATUSES.get(status, "UNAVAILABLE")}
    return printed({"error": error})


def _broken(status: int) -> bytes:
    return _error(status, "The demo provider broke off, as it was told to.", None)


GEMINI: Final = Shape(
    name="gemini",
    read=read,
    usage=_usage,
    body=_body,
    frames=_events,
    error=_error,
    error_frame=lambda status: b"data: " + _broken(status) + b"\r\n\r\n",
    request_id_header="x-request-id",
)
EMBEDDING: Final = replace(GEMINI, read=read_embedding, usage=_embedding_usage, body=_embedding_body)
BATCH: Final = replace(EMBEDDING, body=_embeddings_body)
EVENTS: Final = replace(GEMINI, read=lambda body, path: read(body, path, stream=True))
ARRAY: Final = replace(
    EVENTS,
    frames=_array,
    error_frame=lambda status: b",\r\n" + _broken(status) + b"\n]\n",
    stream_type="application/json; charset=UTF-8",
)
