"""What the adversarial provider answers: its bill in the shapes of the wire, whole or streamed. No ``spendgate`` here."""

from __future__ import annotations

import json
import re
from random import Random
from struct import pack
from typing import Any, Final
from zlib import crc32

from tests.fuzz.bill import Account, Bill

Json = Any
_TIER_WORDS: Final = {"standard": "default"}
# What stands before a number that JSON's own writer would round.
_EXACT: Final = "exactly "
_QUOTED: Final = re.compile(f'"{_EXACT}([0-9.]+)"')


def whole(dialect: str, bill: Bill, account: Account, *, tells: bool, choices: int) -> bytes:
    """Return the answer in one document; ``tells`` it the tier and the place that it was billed by?"""
    return _dumped(_document(dialect, bill, account, tells=tells, choices=choices))


def streamed(
    dialect: str, bill: Bill, account: Account, random: Random, *, query: str, tells: bool, choices: int
) -> bytes:
    """Return the answer as it streams."""
    document = _document(dialect, bill, account, tells=tells, choices=choices)
    match dialect:
        case "anthropic":
            return _anthropic_stream(document)
        case "gemini-stream":
            # What was searched for is told with the end.
            half = dict(document) | {"candidates": [{"content": {"parts": [{"text": "a"}]}, "index": 0}]}
            chunks = [half, document]
            if query:
                return b"".join(b"data: " + _dumped(chunk) + b"\r\n\r\n" for chunk in chunks)
            return _dumped(chunks)
        case "bedrock-converse-stream":
            begun: list[tuple[str, dict[str, Any]]] = [
                ("messageStart", {"role": "assistant"}),
                ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}}),
                ("messageStop", {"stopReason": "end_turn"}),
                ("metadata", {name: one for name, one in document.items() if name in ("usage", "serviceTier")}),
            ]
            return b"".join(_event(name, _dumped(said)) for name, said in begun)
        case "openai-responses":
            created = document | {"status": "in_progress", "usage": None, "output": []}
            events: list[dict[str, Any]] = [
                {"type": "response.created", "response": created},
                {"type": "response.output_text.delta", "delta": "a", "output_index": 0},
                {"type": "response.completed", "response": document},
            ]
            return b"".join(
                b"event: " + event["type"].encode() + b"\ndata: " + _dumped(event) + b"\n\n" for event in events
            )
        case _:
            start: dict[str, Any] = document | {"usage": None, "choices": [{"index": 0, "delta": {"content": "a"}}]}
            last = document | {"choices": []}
            if random.random() < 0.3:
                # Cumulative usage in every chunk, as some servers have it.
                start |= {"usage": document["usage"] | {"completion_tokens": 1, "total_tokens": 0}}
            frames = [start, last]
            return b"".join(b"data: " + _dumped(one) + b"\n\n" for one in frames) + b"data: [DONE]\n\n"


def _dumped(document: Json) -> bytes:
    return _QUOTED.sub(r"\1", json.dumps(document)).encode()


def _document(dialect: str, bill: Bill, account: Account, *, tells: bool, choices: int) -> dict[str, Any]:
    if dialect == "anthropic":
        return _anthropic(bill, tells=tells)
    if dialect in ("gemini-embeddings", "gemini-batch-embeddings"):
        return _embedded(bill)
    if dialect.startswith("gemini"):
        return _gemini(bill, tells=tells, choices=choices)
    if dialect.startswith("bedrock"):
        return _converse(bill, tells=tells)
    tier = {"service_tier": _TIER_WORDS.get(bill.tier, bill.tier)} if tells else {}
    if dialect == "openai-responses":
        said = {"id": "resp_1", "model": bill.model, "status": "completed", **tier}
        return {**said, "output": _calls(bill), **_tool_usage(bill), "usage": _charged(_responses(bill), bill, account)}
    choices_said = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}]
    usage = _charged(_chat(bill, account), bill, account)
    return {"id": "chat_1", "model": "m", **tier, "choices": choices_said, "usage": usage}


def _chat(bill: Bill, account: Account) -> dict[str, Any]:
    prompt = bill.input - bill.untold
    count = bill.buckets.get
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": bill.output,
        "total_tokens": prompt + bill.output,
        "prompt_tokens_details": {
            "cached_tokens": min(count("cache_read", 0), prompt),
            "cache_write_tokens": min(count("cache_write", 0) + count("cache_write_long", 0), prompt),
            "audio_tokens": count("audio_input", 0),
            "image_tokens": min(count("image_input", 0), prompt),
        },
    }
    if account.reasoning_outside:
        # [1, rule 2] what was thought stands in the total alone.
        usage["completion_tokens"] = min(bill.output, 1)
        usage["completion_tokens_details"] = {"reasoning_tokens": bill.output - min(bill.output, 1)}
    elif account.kind == "deepseek":
        hits = usage["prompt_tokens_details"]["cached_tokens"]
        usage |= {"prompt_cache_hit_tokens": hits, "prompt_cache_miss_tokens": prompt - hits}
    return usage


def _charged(usage: dict[str, Any], bill: Bill, account: Account) -> dict[str, Any]:
    """[8] two providers say what they charge: in ticks of a ten billionth, and in USD."""
    picodollars = -(-bill.amount.numerator // bill.amount.denominator)
    if account.kind == "xai":
        usage["cost_in_usd_ticks"] = picodollars // 100
    if account.kind == "openrouter":
        usage["cost"] = f"{_EXACT}{picodollars // 10**12}.{picodollars % 10**12:012d}"
    return usage


def _responses(bill: Bill) -> dict[str, Any]:
    count = bill.buckets.get
    short, long = count("cache_write", 0), count("cache_write_long", 0)
    told = bill.input - bill.untold
    return {
        "input_tokens": told,
        "output_tokens": bill.output,
        "total_tokens": told + bill.output,
        "input_tokens_details": {
            "cached_tokens": count("cache_read", 0),
            "cache_write_tokens": short + long,
            "cache_write_tokens_details": {"ttl_30m_tokens": short, "ttl_12h_tokens": long},
        },
        "output_tokens_details": {"reasoning_tokens": bill.output},
    }


def _calls(bill: Bill) -> list[dict[str, Any]]:
    """[1] what the server's tools did: an item of the output for each call that has a fee."""
    return [
        {"type": f"{name}_call", "id": f"c{number}", "status": "completed", "action": {"type": "search", "query": "q"}}
        for name in bill.fees
        for number in range(bill.loop.calls[name])
    ]


def _tool_usage(bill: Bill) -> dict[str, Any]:
    """[3] it may be missing."""
    if bill.output % 2:
        return {}
    return {"tool_usage": {"web_search": {"num_requests": bill.fees.get("web_search", 0)}}}


def _embedded(bill: Bill) -> dict[str, Any]:
    count = bill.buckets.get
    details = [
        {"modality": "TEXT", "tokenCount": count("input", 0)},
        {"modality": "AUDIO", "tokenCount": count("audio_input", 0)},
        {"modality": "IMAGE", "tokenCount": count("image_input", 0)},
    ]
    return {
        "embedding": {"values": [0.5]},
        "usageMetadata": {"promptTokenCount": bill.input, "promptTokenDetails": details},
    }


def _anthropic(bill: Bill, *, tells: bool) -> dict[str, Any]:
    # [5.A] summaries stand beside the top level; a turn repeats what is in it.
    each = {name: number // bill.loop.contexts for name, number in bill.buckets.items()}
    summaries = bill.loop.summaries
    rest = {name: number - summaries * each[name] for name, number in bill.buckets.items()}
    usage = _claude_counts(rest, bill.output - summaries * bill.summary)
    if summaries:
        repeated = {"type": "message", **usage}
        usage["iterations"] = [repeated] + [{"type": "compaction", **_claude_counts(each, bill.summary)}] * summaries
    if tells:
        usage |= {"service_tier": bill.tier, "inference_geo": bill.geo, "speed": bill.speed}
    if bill.loop.calls:
        usage["server_tool_use"] = {f"{name}_requests": uses for name, uses in bill.loop.calls.items()}
    return {"id": "msg_1", "type": "message", "model": "m", "content": [], "stop_reason": "end_turn", "usage": usage}


def _claude_counts(buckets: dict[str, int], output: int) -> dict[str, Any]:
    count = buckets.get
    short, long = count("cache_write", 0), count("cache_write_long", 0)
    return {
        # An image is in no count of its own.
        "input_tokens": count("input", 0) + count("image_input", 0),
        "cache_read_input_tokens": count("cache_read", 0),
        "cache_creation_input_tokens": short + long,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        "output_tokens": output,
    }


def _anthropic_stream(document: dict[str, Any]) -> bytes:
    """The split of the writes stands only in the first event, the output only in the last but one [5.A]."""
    usage = document["usage"]
    last = {name: number for name, number in usage.items() if name not in ("cache_creation", "inference_geo", "speed")}
    first = {name: number for name, number in usage.items() if name != "iterations"} | {"output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": document | {"usage": first}},
        {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last},
        {"type": "message_stop"},
    ]
    return b"".join(b"event: " + event["type"].encode() + b"\ndata: " + _dumped(event) + b"\n\n" for event in events)


def _converse(bill: Bill, *, tells: bool) -> dict[str, Any]:
    count = bill.buckets.get
    short, long = count("cache_write", 0), count("cache_write_long", 0)
    written = [{"ttl": ttl, "inputTokens": number} for ttl, number in (("5m", short), ("1h", long)) if number]
    usage: dict[str, Any] = {
        "inputTokens": count("input", 0) + count("image_input", 0),
        "outputTokens": bill.output,
        "totalTokens": bill.input + bill.output,
        "cacheReadInputTokens": count("cache_read", 0),
        "cacheWriteInputTokens": short + long,
        "cacheDetails": written,
    }
    said = {"message": {"role": "assistant", "content": [{"text": "a"}]}}
    tier = {"serviceTier": {"type": _TIER_WORDS.get(bill.tier, bill.tier)}} if tells else {}
    return {"output": said, "stopReason": "end_turn", "usage": usage, **tier}


def _event(name: str, payload: bytes) -> bytes:
    """[7] One message of application/vnd.amazon.eventstream: lengths, checksums, headers of text."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    block = b"".join(
        pack(">B", len(key)) + key.encode() + pack(">BH", 7, len(value)) + value.encode()
        for key, value in headers.items()
    )
    prelude = pack(">II", 16 + len(block) + len(payload), len(block))
    message = prelude + pack(">I", crc32(prelude)) + block + payload
    return message + pack(">I", crc32(message))


def _gemini(bill: Bill, *, tells: bool, choices: int) -> dict[str, Any]:
    count = bill.buckets.get
    seen, thought = bill.output // 2, bill.output - bill.output // 2
    # [6.A] what tools brought in is beside the prompt, and was read afresh.
    served = {
        name: count(name, 0) - count(name, 0) // bill.loop.turns for name in ("input", "audio_input", "image_input")
    }
    usage: dict[str, Any] = {
        "promptTokenCount": bill.input - sum(served.values()),
        "cachedContentTokenCount": count("cache_read", 0),
        "candidatesTokenCount": seen,
        "thoughtsTokenCount": thought,
        "totalTokenCount": bill.input + bill.output,
        "promptTokensDetails": [
            {"modality": "AUDIO", "tokenCount": count("audio_input", 0) - served["audio_input"]},
            {"modality": "IMAGE", "tokenCount": count("image_input", 0) - served["image_input"]},
        ],
    }
    if any(served.values()):
        usage["toolUsePromptTokenCount"] = sum(served.values())
        usage["toolUsePromptTokensDetails"] = [
            {"modality": "AUDIO", "tokenCount": served["audio_input"]},
            {"modality": "IMAGE", "tokenCount": served["image_input"]},
        ]
    if tells:
        usage["serviceTier"] = bill.tier.upper()
    return {
        "responseId": "r",
        "modelVersion": "m",
        "candidates": [
            {
                "index": index,
                "finishReason": "STOP",
                "content": {"role": "model", "parts": [{"text": "a"}]},
                **_grounding(bill),
            }
            for index in range(choices)
        ],
        "usageMetadata": usage,
    }


def _grounding(bill: Bill) -> dict[str, Any]:
    """[1, 6.B] each query is billed; a page that was read is told, and costs its tokens only."""
    found: dict[str, Any] = {}
    if "web_search" in bill.fees:
        found["groundingMetadata"] = {"webSearchQueries": [f"q{number}" for number in range(bill.fees["web_search"])]}
    if "web_fetch" in bill.loop.calls:
        found["urlContextMetadata"] = {"urlMetadata": [{"retrievedUrl": "https://example.com/a"}]}
    return found
