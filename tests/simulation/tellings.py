"""How a provider tells what it has billed, in the words of each dialect; and what it leaves out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from spendgate.local.demo_shapes import CHAT, Reply, Shape
from tests.simulation.bills import Bill

Usage = dict[str, Any]

# OpenAI's word for the plain tier, as the demo provider's answers have it.
_PLAIN: Final = b'"service_tier":"default"'


def usage_text(shape: Shape, bill: Bill, *, out: int) -> str:
    """Return the usage as it stands in an answer; ``out`` is what is said of the output, rightly or not."""
    usage = _usage(shape, bill, out)
    text = json.dumps(usage)
    # Bedrock says beside the usage how it has served an answer.
    return f'{text}, "serviceTier": {{"type": "{_word(bill)}"}}' if _BEDROCK in usage else text


def beginning(shape: Shape, bill: Bill) -> int:
    """Return the tokens that a stream's first usage has, which are those of the last one's first count."""
    count: int = next(iter(_usage(shape, bill, 0).values()))
    return count


def _usage(shape: Shape, bill: Bill, out: int) -> Usage:
    usage = shape.usage(bill.taken_in, out)
    tell = next(tell for mark, tell in _TOLD.items() if mark in usage)
    tell(usage, bill)
    return usage


def whole(shape: Shape, reply: Reply, bill: Bill) -> bytes:
    """Return a whole answer."""
    return _served(shape.body(reply), bill)


def frames(shape: Shape, reply: Reply, bill: Bill) -> list[bytes]:
    """Return the frames of a streamed answer."""
    return [_served(frame, bill) for frame in shape.frames(reply)]


def tells_all(shape: Shape, *, searching: bool) -> bool:
    """Tell whether an answer has all that its bill is made of: a chat's says nothing of searches."""
    return shape is not CHAT or not searching


def _served(told: bytes, bill: Bill) -> bytes:
    return told.replace(_PLAIN, f'"service_tier":"{_word(bill)}"'.encode())


def _word(bill: Bill) -> str:
    return "default" if bill.tier == "standard" else bill.tier


def _chat(usage: Usage, bill: Bill) -> None:
    usage["prompt_tokens_details"] |= {
        "cached_tokens": bill.read,
        "cache_write_tokens": bill.written + bill.written_long,
        "audio_tokens": bill.sound,
        "image_tokens": bill.images,
    }


def _response(usage: Usage, bill: Bill) -> None:
    usage["input_tokens_details"] |= {
        "cached_tokens": bill.read,
        "cache_write_tokens": bill.written + bill.written_long,
    }
    if bill.out % 2:
        lifetimes = {"ttl_30m_tokens": bill.written, "ttl_12h_tokens": bill.written_long}
        usage["input_tokens_details"]["cache_write_tokens_details"] = lifetimes


def _message(usage: Usage, bill: Bill) -> None:
    usage |= {
        "input_tokens": bill.fresh + bill.images,
        "cache_read_input_tokens": bill.read,
        "cache_creation_input_tokens": bill.written + bill.written_long,
        "cache_creation": {
            "ephemeral_5m_input_tokens": bill.written,
            "ephemeral_1h_input_tokens": bill.written_long,
        },
        "service_tier": bill.tier,
        "inference_geo": bill.place,
    }
    if bill.searches:
        usage["server_tool_use"] = {"web_search_requests": bill.searches}


def _metadata(usage: Usage, bill: Bill) -> None:
    text = bill.fresh + bill.read
    found = bill.fresh // 2 if bill.searches else 0
    parts = {"TEXT": text - found, "IMAGE": bill.images, "AUDIO": bill.sound}
    usage |= {
        # What a search has found is beside the prompt, in one total.
        "promptTokenCount": bill.taken_in - found,
        "toolUsePromptTokenCount": found,
        "cachedContentTokenCount": bill.read,
        "promptTokensDetails": [{"modality": kind, "tokenCount": count} for kind, count in parts.items() if count],
        "serviceTier": bill.tier.upper(),
    }


def _conversation(usage: Usage, bill: Bill) -> None:
    lifetimes = {"5m": bill.written, "1h": bill.written_long}
    usage |= {
        "inputTokens": bill.fresh + bill.images,
        "cacheReadInputTokens": bill.read,
        "cacheWriteInputTokens": bill.written + bill.written_long,
        "cacheDetails": [{"ttl": ttl, "inputTokens": count} for ttl, count in lifetimes.items()],
    }


def _nothing_more(usage: Usage, bill: Bill) -> None:
    """Leave it at the counts of in and out."""


_BEDROCK: Final = "cacheReadInputTokens"
# By a field that only this dialect's usage has; the last two are of embeddings and completions.
_TOLD: Final[Mapping[str, Callable[[Usage, Bill], None]]] = {
    "prompt_tokens_details": _chat,
    "input_tokens_details": _response,
    "cache_creation": _message,
    "promptTokensDetails": _metadata,
    _BEDROCK: _conversation,
    "prompt_tokens": _nothing_more,
    "promptTokenCount": _nothing_more,
}
