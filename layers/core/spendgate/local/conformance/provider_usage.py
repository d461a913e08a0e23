"""The usage of an answer as the dialects say it: which counts are parts of which differs, and so do their names."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spendgate.local.conformance.bill import Bill
from spendgate.local.demo_shapes import CHAT, Shape


def usage_of(shape: Shape, done: Bill) -> dict[str, Any]:
    """Return the usage that an answer of a dialect tells."""
    match shape.name:
        case "gemini":
            return _gemini(done)
        case "openai-responses":
            return _response(done)
    usage = shape.usage(done.input_tokens, done.output_tokens)
    if done.cache_write_tokens:
        usage |= {"cache_creation_input_tokens": done.cache_write_tokens}
        usage["cache_creation"] = {"ephemeral_5m_input_tokens": done.cache_write_tokens}
    return usage


def with_usage_so_far(shape: Shape, frames: Sequence[bytes], done: Bill) -> list[bytes]:
    """Put into each chunk of a stream the tokens so far, as some hosts do: totals, not differences."""
    said = list(frames)
    chunks = [at for at, frame in enumerate(said) if b'"choices":[{' in frame or b'"candidates":[{' in frame]
    for place, at in enumerate(chunks, start=1):
        so_far = done.output_tokens * place // len(chunks)
        document = json.loads(said[at].removeprefix(b"data: "))
        document |= _so_far(shape, done, so_far)
        said[at] = b"data: " + json.dumps(document).encode() + b"\n\n"
    return said


def _so_far(shape: Shape, done: Bill, output_tokens: int) -> Mapping[str, Any]:
    if shape.name == "gemini":
        counts = {"promptTokenCount": done.input_tokens, "candidatesTokenCount": output_tokens}
        return {"usageMetadata": counts | {"totalTokenCount": done.input_tokens + output_tokens}}
    return {"usage": CHAT.usage(done.input_tokens, output_tokens)}


def _response(done: Bill) -> dict[str, Any]:
    """Both details are parts of the counts above them."""
    return {
        "input_tokens": done.input_tokens,
        "input_tokens_details": {"cached_tokens": done.cache_read_tokens},
        "output_tokens": done.output_tokens,
        "output_tokens_details": {"reasoning_tokens": done.hidden_tokens},
        "total_tokens": done.input_tokens + done.output_tokens,
    }


def _gemini(done: Bill) -> dict[str, Any]:
    """What was cached is part of the prompt; thoughts and the prompts of tools are part of nothing but the total."""
    parts = {
        "cachedContentTokenCount": done.cache_read_tokens,
        "thoughtsTokenCount": done.hidden_tokens,
        "toolUsePromptTokenCount": done.tool_tokens,
    }
    return {
        "promptTokenCount": done.input_tokens,
        "candidatesTokenCount": done.output_tokens - done.hidden_tokens,
        # What is nothing is not told.
        **{name: count for name, count in parts.items() if count},
        "totalTokenCount": done.input_tokens + done.tool_tokens + done.output_tokens,
    }
