"""Requests, streams and answers for the dialects' tests."""

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from spendgate.dialects import anthropic_messages, openai_chat
from spendgate.dialects.dialect import Dialect, Request
from spendgate.dialects.json_strict import parse_object

# Odd values that are cheap to draw: what matters is where they stand.
odd_values = st.sampled_from(
    [None, True, 0, -1, 1.5, 2**70, "", "text", "function", "auto", "12h", [], {}, [None], {"type": "text"}]
)

USER: dict[str, Any] = {"role": "user", "content": "hello"}


def chat(**changes: Any) -> dict[str, Any]:
    return {"model": "house-model", "messages": [USER]} | changes


def messages(**changes: Any) -> dict[str, Any]:
    return {"model": "house-model", "max_tokens": 40, "messages": [USER]} | changes


def read_chat(**changes: Any) -> Request:
    return openai_chat.DIALECT.read(parsed(chat(**changes)), {}, "")


def read_messages(**changes: Any) -> Request:
    return anthropic_messages.DIALECT.read(parsed(messages(**changes)), {}, "")


def parsed(body: Any) -> dict[str, Any]:
    return parse_object(json.dumps(body).encode())


def events(*documents: Any, done: bool = False) -> bytes:
    """Return documents as OpenAI streams them."""
    stream = b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents)
    return stream + (b"data: [DONE]\n\n" if done else b"")


def named_events(*documents: dict[str, Any]) -> bytes:
    """Return documents as Anthropic streams them."""
    return b"".join(
        b"event: " + document["type"].encode() + b"\ndata: " + json.dumps(document).encode() + b"\n\n"
        for document in documents
    )


def message_stream(*, start: dict[str, Any], delta: dict[str, Any], stop: bool = True) -> bytes:
    """Return a short Anthropic stream with these usages at its start and its end."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "usage": start}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hé"}}
    last = ({"type": "message_stop"},) if stop else ()
    return named_events(
        {"type": "message_start", "message": message},
        {"type": "ping"},
        text,
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": delta},
        *last,
    )


def chunk(text: str = "hi", **changes: Any) -> dict[str, Any]:
    """Return a chunk of a streamed completion."""
    return {
        "id": "c1",
        "model": "gpt-x",
        "choices": [{"index": 0, "delta": {"content": text}}],
        "usage": None,
    } | changes


def run(dialect: Dialect, request: Request, pieces: Iterable[bytes]) -> tuple[bytes, bytes, Any]:
    """Feed a stream; return what flowed, what was held for the end, and the report."""
    meter = dialect.meter(request)
    flowed = b"".join(meter.feed(piece) for piece in pieces)
    held = meter.end()
    return flowed, held, meter.report()
