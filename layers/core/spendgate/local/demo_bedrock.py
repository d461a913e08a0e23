"""How Bedrock's requests are read by the demo provider's rule, and how its answers look on the wire."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spendgate.dialects import eventstream
from spendgate.local.demo_shapes import MESSAGES, USAGE, Reply, Shape, in_parts, printed
from spendgate.local.demo_work import RequestUnreadable, Work, work_of

_ERRORS: Final = {
    400: "ValidationException",
    401: "AccessDeniedException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def read(body: bytes, path: Mapping[str, str], *, stream: bool = False) -> Work:
    """Read a Converse request; RequestUnreadable says what is wrong with it."""
    try:
        document = json.loads(body)
        common = _common(document, path["model"], stream=stream)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as cause:
        raise RequestUnreadable("the body is no Converse request") from cause
    return replace(work_of("openai", json.dumps(common).encode()), field_names=tuple(sorted(document)))


def read_invoke(body: bytes, path: Mapping[str, str], *, stream: bool = False) -> Work:
    """Read a request of Claude's by InvokeModel, whose model stands in the path."""
    try:
        document = json.loads(body)
        if document["anthropic_version"] != "bedrock-2023-05-31" or {"model", "stream"} & document.keys():
            raise RequestUnreadable("the body is none of Claude's at Bedrock")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as cause:
        raise RequestUnreadable("the body is none of Claude's at Bedrock") from cause
    whole = {**document, "model": path["model"], "stream": stream}
    return replace(work_of("anthropic", json.dumps(whole).encode()), field_names=tuple(sorted(document)))


def _common(document: Mapping[str, Any], model: str, *, stream: bool) -> dict[str, Any]:
    """Return a request in the words of the demo provider's rule."""
    tools = [tool["toolSpec"] for tool in document.get("toolConfig", {}).get("tools", []) if "toolSpec" in tool]
    return {
        "model": model,
        "stream": stream,
        "messages": [
            {"role": message["role"], "content": [_part(block) for block in message["content"]]}
            for message in document["messages"]
        ],
        "system": document.get("system"),
        "tools": [{**tool, "parameters": tool["inputSchema"]["json"]} for tool in tools] or None,
        "max_tokens": document.get("inferenceConfig", {}).get("maxTokens"),
    }


def _part(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if "toolResult" in block:
        return {"type": "tool_result", "content": block["toolResult"]["content"]}
    return {**block.get("toolUse", block), "toolUseId": None}


def _usage(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "totalTokens": input_tokens + output_tokens,
        "cacheReadInputTokens": 0,
        "cacheWriteInputTokens": 0,
    }


def _body(reply: Reply) -> bytes:
    block: dict[str, Any] = {"text": reply.text}
    if reply.tool is not None:
        block = {"toolUse": _tool(reply) | {"input": json.loads(reply.tool[1])}}
    document = {
        "output": {"message": {"role": "assistant", "content": [block]}},
        "stopReason": _stop(reply),
        "metrics": {"latencyMs": 1},
    }
    return printed(document if reply.usage_text is None else document | {"usage": USAGE}, reply.usage_text)


def _frames(reply: Reply) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"text": piece} for piece in reply.pieces]
    documents: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
    if reply.tool is not None:
        deltas = [{"toolUse": {"input": part}} for part in in_parts(reply.tool[1])]
        documents.append(("contentBlockStart", {"start": {"toolUse": _tool(reply)}, "contentBlockIndex": 0}))
    documents += [("contentBlockDelta", {"delta": delta, "contentBlockIndex": 0}) for delta in deltas]
    documents += [("contentBlockStop", {"contentBlockIndex": 0}), ("messageStop", {"stopReason": _stop(reply)})]
    last: dict[str, Any] = {"metrics": {"latencyMs": 1}}
    documents.append(("metadata", last if reply.usage_text is None else last | {"usage": USAGE}))
    return [eventstream.event(kind, printed(document, reply.usage_text)) for kind, document in documents]


def _tool(reply: Reply) -> dict[str, Any]:
    return {"toolUseId": f"tooluse_demo_{reply.id}", "name": reply.tool[0] if reply.tool else ""}


def _stop(reply: Reply) -> str:
    if reply.capped:
        return "max_tokens"
    return "tool_use" if reply.tool else "end_turn"


def _chunks(reply: Reply) -> list[bytes]:
    """Return the frames of Claude's stream, each of its events in base64."""
    events = [frame.partition(b"data: ")[2].strip() for frame in MESSAGES.frames(reply)]
    return [eventstream.event("chunk", printed({"bytes": b64encode(event).decode()})) for event in events]


def _error(status: int, message: str, code: str | None) -> bytes:
    return printed({"__type": code or _ERRORS.get(status, "InternalServerException"), "message": message})


def _error_frame(_status: int) -> bytes:
    told = printed({"message": "The demo provider broke off, as it was told to."})
    return eventstream.exception("modelStreamErrorException", told)


CONVERSE: Final = Shape(
    name="bedrock",
    read=read,
    usage=_usage,
    body=_body,
    frames=_frames,
    error=_error,
    error_frame=_error_frame,
    request_id_header="x-amzn-requestid",
    stream_type=eventstream.CONTENT_TYPE,
)
CONVERSE_STREAM: Final = replace(CONVERSE, read=lambda body, path: read(body, path, stream=True))
INVOKE: Final = replace(CONVERSE, read=read_invoke, usage=MESSAGES.usage, body=MESSAGES.body, frames=_chunks)
INVOKE_STREAM: Final = replace(INVOKE, read=lambda body, path: read_invoke(body, path, stream=True))

SHAPES: Final[Mapping[str, Shape]] = {
    "/model/{model:path}/converse": CONVERSE,
    "/model/{model:path}/converse-stream": CONVERSE_STREAM,
    "/model/{model:path}/invoke": INVOKE,
    "/model/{model:path}/invoke-with-response-stream": INVOKE_STREAM,
}
