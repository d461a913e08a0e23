"""How the demo provider's Responses, embeddings and completions look on the wire, in the shapes of the real API."""

import base64
import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spendgate.local.demo_shapes import (
    CREATED,
    USAGE,
    Reply,
    Shape,
    chat_error,
    chat_usage,
    error_type,
    in_parts,
    printed,
)
from spendgate.local.demo_work import SEARCHES, Work, work_of

VECTOR: Final = (0.5, -0.25, 0.125, 1.0)


def _read_response(body: bytes, _path: Mapping[str, str]) -> Work:
    """Read a request; where it may search the web, it does so as often as it may."""
    work = work_of("openai-responses", body)
    document = json.loads(body)
    if not any(str(tool.get("type")).startswith("web_search") for tool in document.get("tools") or []):
        return work
    calls = document.get("max_tool_calls")
    return replace(work, searches=SEARCHES if calls is None else min(SEARCHES, calls))


def _responses_usage(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens + output_tokens,
    }


def _responses_body(reply: Reply) -> bytes:
    return printed(_response(reply, _final(reply)), reply.usage_text)


def _responses_frames(reply: Reply) -> list[bytes]:
    final = _item(reply, "completed")
    where = {"item_id": final["id"], "output_index": reply.searches}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response(reply, "in_progress")},
        {"type": "response.in_progress", "response": _response(reply, "in_progress")},
        *(
            {"type": f"response.output_item.{what}", "output_index": index, "item": item}
            for index, item in enumerate(_searches(reply))
            for what in ("added", "done")
        ),
        {"type": "response.output_item.added", "output_index": reply.searches, "item": _item(reply, "in_progress")},
        *(_said(reply, where) if reply.tool is None else _called(reply.tool[1], where)),
        {"type": "response.output_item.done", "output_index": reply.searches, "item": final},
        {"type": f"response.{_final(reply)}", "response": _response(reply, _final(reply))},
    ]
    return [_event(event | {"sequence_number": number}, reply.usage_text) for number, event in enumerate(events)]


def _said(reply: Reply, where: dict[str, Any]) -> list[dict[str, Any]]:
    part = where | {"content_index": 0}
    return [
        {"type": "response.content_part.added", "part": _text("")} | part,
        *({"type": "response.output_text.delta", "delta": piece, "logprobs": []} | part for piece in reply.pieces),
        {"type": "response.output_text.done", "text": reply.text, "logprobs": []} | part,
        {"type": "response.content_part.done", "part": _text(reply.text)} | part,
    ]


def _called(arguments: str, where: dict[str, Any]) -> list[dict[str, Any]]:
    kind = "response.function_call_arguments"
    return [
        *({"type": f"{kind}.delta", "delta": part} | where for part in in_parts(arguments)),
        {"type": f"{kind}.done", "arguments": arguments} | where,
    ]


def _response(reply: Reply, status: str) -> dict[str, Any]:
    is_final = status != "in_progress"
    return {
        "id": f"resp_demo_{reply.id}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "model": reply.model,
        "output": [*_searches(reply), _item(reply, "completed")] if is_final else [],
        "parallel_tool_calls": True,
        "service_tier": "default" if is_final else "auto",
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": USAGE if is_final and reply.usage_text is not None else None,
    }


def _searches(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "type": "web_search_call",
            "id": f"ws_demo_{reply.id}_{number}",
            "status": "completed",
            "action": {"type": "search", "query": f"demo {number}"},
        }
        for number in range(reply.searches)
    ]


def _item(reply: Reply, status: str) -> dict[str, Any]:
    is_final = status == "completed"
    if reply.tool is not None:
        name, arguments = reply.tool
        return {
            "type": "function_call",
            "id": f"fc_demo_{reply.id}",
            "call_id": f"call_demo_{reply.id}",
            "name": name,
            "arguments": arguments if is_final else "",
            "status": status,
        }
    return {
        "type": "message",
        "id": f"msg_demo_{reply.id}",
        "role": "assistant",
        "status": status,
        "content": [_text(reply.text)] if is_final else [],
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _final(reply: Reply) -> str:
    return "incomplete" if reply.capped else "completed"


def _event(event: dict[str, Any], usage_text: str | None = None) -> bytes:
    return f"event: {event['type']}\n".encode() + b"data: " + printed(event, usage_text) + b"\n\n"


def _responses_error_frame(status: int) -> bytes:
    told = "The demo provider broke off, as it was told to."
    error = {"type": "error", "code": error_type(status), "message": told, "param": None, "sequence_number": 0}
    return _event(error)


def _embeddings_usage(input_tokens: int, _output_tokens: int) -> dict[str, Any]:
    return {"prompt_tokens": input_tokens, "total_tokens": input_tokens}


def _embeddings_body(reply: Reply) -> bytes:
    vector: Any = list(VECTOR)
    if reply.base64:
        vector = base64.b64encode(struct.pack(f"<{len(VECTOR)}f", *VECTOR)).decode()
    data = [{"object": "embedding", "index": index, "embedding": vector} for index in range(reply.choices)]
    document = {"object": "list", "data": data, "model": reply.model}
    if reply.usage_text is not None:
        document["usage"] = USAGE
    return printed(document, reply.usage_text)


def _completions_body(reply: Reply) -> bytes:
    document = _completion(reply) | {"choices": [_choice(reply, index, reply.text) for index in range(reply.choices)]}
    if reply.usage_text is not None:
        document["usage"] = USAGE
    return printed(document, reply.usage_text)


def _completions_frames(reply: Reply) -> list[bytes]:
    chunks = []
    for index in range(reply.choices):
        texts = [_choice(reply, index, piece) | {"finish_reason": None} for piece in reply.pieces]
        chunks += [_completion(reply) | {"choices": [one]} for one in (*texts, _choice(reply, index, ""))]
    if reply.usage_asked and reply.usage_text is not None:
        chunks.append(_completion(reply) | {"choices": [], "usage": USAGE})
    return [*(b"data: " + printed(chunk, reply.usage_text) + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]


def _completion(reply: Reply) -> dict[str, Any]:
    return {"id": f"cmpl-demo-{reply.id}", "object": "text_completion", "created": CREATED, "model": reply.model}


def _choice(reply: Reply, index: int, text: str) -> dict[str, Any]:
    reason = "length" if reply.capped else "stop"
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


def _error_frame(status: int) -> bytes:
    return b"data: " + chat_error(status, "The demo provider broke off, as it was told to.", None) + b"\n\n"


RESPONSES: Final = Shape(
    name="openai-responses",
    read=_read_response,
    usage=_responses_usage,
    body=_responses_body,
    frames=_responses_frames,
    error=chat_error,
    error_frame=_responses_error_frame,
    request_id_header="x-request-id",
)

EMBEDDINGS: Final = Shape(
    name="openai-embeddings",
    read=lambda body, _path: work_of("openai-embeddings", body),
    usage=_embeddings_usage,
    body=_embeddings_body,
    frames=lambda reply: [_embeddings_body(reply)],
    error=chat_error,
    error_frame=_error_frame,
    request_id_header="x-request-id",
)

COMPLETIONS: Final = Shape(
    name="openai-completions",
    read=lambda body, _path: work_of("openai-completions", body),
    usage=chat_usage,
    body=_completions_body,
    frames=_completions_frames,
    error=chat_error,
    error_frame=_error_frame,
    request_id_header="x-request-id",
)
