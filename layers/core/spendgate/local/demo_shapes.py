"""How the demo provider's answers look on the wire, in the shapes of the real APIs."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spendgate.local.demo_work import Work, work_of

FRAMES_OF_TEXT_MAX: Final = 16
# Answers are the same each time, so they name one instant.
CREATED: Final = 1_764_460_800
# Stands for the usage until the document is text, so that anything, even no JSON at all, can take its place.
USAGE: Final = "@usage@"

_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is to be said: words or one tool call, and the usage; ``usage_text`` None leaves the usage out."""

    id: int
    model: str
    words: tuple[str, ...]
    tool: tuple[str, str] | None = None
    choices: int = 1
    capped: bool = False
    input_tokens: int
    usage_text: str | None
    usage_asked: bool = False
    base64: bool = False
    searches: int = 0

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The text in at most FRAMES_OF_TEXT_MAX parts."""
        size = -(-len(self.words) // FRAMES_OF_TEXT_MAX) or 1
        starts = range(0, len(self.words), size)
        return tuple((" " if start else "") + " ".join(self.words[start : start + size]) for start in starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One dialect: how its requests are read, and how a reply is said.

    Whole, as frames of a stream, as an error, as an error within a stream.
    """

    name: str
    read: Callable[[bytes, Mapping[str, str]], Work]
    usage: Callable[[int, int], dict[str, Any]]
    body: Callable[[Reply], bytes]
    frames: Callable[[Reply], list[bytes]]
    error: Callable[[int, str, str | None], bytes]
    error_frame: Callable[[int], bytes]
    request_id_header: str
    stream_type: str = "text/event-stream; charset=utf-8"


def chat_usage(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _chat_body(reply: Reply) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.tool is not None:
        message |= {"content": None, "tool_calls": [_chat_tool_call(reply, reply.tool[1])]}
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": _chat_finish(reply)}
        for index in range(reply.choices)
    ]
    document = _chat_head(reply, "chat.completion") | {"choices": choices}
    if reply.usage_text is not None:
        document["usage"] = USAGE
    return printed(document, reply.usage_text)


def _chat_frames(reply: Reply) -> list[bytes]:
    frames = []
    for index in range(reply.choices):
        deltas: list[tuple[dict[str, Any], str | None]]
        deltas = [({"role": "assistant", "content": None if reply.tool else "", "refusal": None}, None)]
        if reply.tool is None:
            deltas += [({"content": piece}, None) for piece in reply.pieces]
        else:
            deltas += [({"tool_calls": [{"index": 0} | _chat_tool_call(reply, "")]}, None)]
            deltas += [
                ({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}, None)
                for part in in_parts(reply.tool[1])
            ]
        deltas += [({}, _chat_finish(reply))]
        frames += [_chat_chunk(reply, index, delta, finish) for delta, finish in deltas]
    if reply.usage_asked and reply.usage_text is not None:
        last = _chat_head(reply, "chat.completion.chunk") | {"choices": [], "usage": USAGE}
        frames.append(b"data: " + printed(last, reply.usage_text) + b"\n\n")
    frames.append(b"data: [DONE]\n\n")
    return frames


def _chat_chunk(reply: Reply, index: int, delta: Mapping[str, Any], finish: str | None) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    document = _chat_head(reply, "chat.completion.chunk") | {"choices": [choice]}
    if reply.usage_asked:
        document["usage"] = None
    return b"data: " + printed(document) + b"\n\n"


def _chat_head(reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-demo-{reply.id}",
        "object": kind,
        "created": CREATED,
        "model": reply.model,
        "service_tier": "default",
        "system_fingerprint": "fp_demo",
    }


def _chat_tool_call(reply: Reply, arguments: str) -> dict[str, Any]:
    name = reply.tool[0] if reply.tool else ""
    return {"id": f"call_demo_{reply.id}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _chat_finish(reply: Reply) -> str:
    if reply.capped:
        return "length"
    return "tool_calls" if reply.tool else "stop"


def chat_error(status: int, message: str, code: str | None) -> bytes:
    error = {"message": message, "type": error_type(status), "param": None, "code": code}
    return printed({"error": error})


def _chat_error_frame(status: int) -> bytes:
    return b"data: " + chat_error(status, "The demo provider broke off, as it was told to.", None) + b"\n\n"


def _messages_usage(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def _messages_body(reply: Reply) -> bytes:
    content: dict[str, Any] = {"type": "text", "text": reply.text}
    if reply.tool is not None:
        content = _messages_tool_use(reply) | {"input": json.loads(reply.tool[1])}
    document = _messages_head(reply) | {"content": [content], "stop_reason": _messages_stop(reply)}
    if reply.usage_text is not None:
        document["usage"] = USAGE
    return printed(document, reply.usage_text)


def _messages_frames(reply: Reply) -> list[bytes]:
    start = _messages_head(reply)
    delta: dict[str, Any] = {
        "type": "message_delta",
        "delta": {"stop_reason": _messages_stop(reply), "stop_sequence": None},
    }
    if reply.usage_text is not None:
        # As the real one: the first number of output tokens is a placeholder, the last is cumulative.
        start["usage"] = _messages_usage(reply.input_tokens, 1)
        delta["usage"] = USAGE
    block: dict[str, Any] = {"type": "text", "text": ""}
    parts: list[dict[str, Any]] = [{"type": "text_delta", "text": piece} for piece in reply.pieces]
    if reply.tool is not None:
        block = _messages_tool_use(reply) | {"input": {}}
        parts = [{"type": "input_json_delta", "partial_json": part} for part in ("", *in_parts(reply.tool[1]))]
    documents: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": part} for part in parts),
        {"type": "content_block_stop", "index": 0},
        delta,
        {"type": "message_stop"},
    ]
    return [_messages_event(document, reply.usage_text) for document in documents]


def _messages_event(document: Mapping[str, Any], usage_text: str | None = None) -> bytes:
    return f"event: {document['type']}\n".encode() + b"data: " + printed(document, usage_text) + b"\n\n"


def _messages_head(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_demo_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _messages_tool_use(reply: Reply) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_demo_{reply.id}", "name": reply.tool[0] if reply.tool else ""}


def _messages_stop(reply: Reply) -> str:
    if reply.capped:
        return "max_tokens"
    return "tool_use" if reply.tool else "end_turn"


def _messages_error(status: int, message: str, code: str | None) -> bytes:
    error = {"type": code or error_type(status), "message": message}
    return printed({"type": "error", "error": error, "request_id": None})


def _messages_error_frame(status: int) -> bytes:
    document = {
        "type": "error",
        "error": {"type": error_type(status), "message": "The demo provider broke off, as it was told to."},
    }
    return _messages_event(document)


def error_type(status: int) -> str:
    return _ERROR_TYPES.get(status, "api_error")


def in_parts(text: str) -> tuple[str, ...]:
    """Cut a text in three, as arguments arrive in a stream."""
    third = -(-len(text) // 3)
    return (text[:third], text[third : 2 * third], text[2 * third :])


def printed(document: Mapping[str, Any], usage_text: str | None = None) -> bytes:
    """Return a document as compact JSON, with the usage put in as it was told."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    if usage_text is not None:
        text = text.replace(f'"{USAGE}"', usage_text)
    return text.encode()


CHAT: Final = Shape(
    name="openai",
    read=lambda body, _path: work_of("openai", body),
    usage=chat_usage,
    body=_chat_body,
    frames=_chat_frames,
    error=chat_error,
    error_frame=_chat_error_frame,
    request_id_header="x-request-id",
)

MESSAGES: Final = Shape(
    name="anthropic",
    read=lambda body, _path: work_of("anthropic", body),
    usage=_messages_usage,
    body=_messages_body,
    frames=_messages_frames,
    error=_messages_error,
    error_frame=_messages_error_frame,
    request_id_header="request-id",
)
