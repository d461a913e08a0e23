"""The fields of OpenAI chat completions that may be sent, as data.

Source: the types of openai-python 3.57.0 (``types/chat``), read on 2026-11-29. A field that is not here is refused by
name: it may cost something that the bound does not know.
"""

from typing import Final

from spendgate.core.media import MediaKind
from spendgate.dialects import fields
from spendgate.dialects.fields import Check

# The day on which the list below was last read against its source.
CHECKED: Final = "2026-11-29"

CUSTOM_TOOL_FORMATS: Final = {
    "text": fields.record({"type": fields.string}),
    # A grammar holds back what the model may put out; it is text that goes in.
    "grammar": fields.record(
        {
            "type": fields.string,
            "grammar": fields.record(
                {"definition": fields.string, "syntax": fields.string}, required=("definition", "syntax")
            ),
        },
        required=("grammar",),
    ),
}

CACHE_TTLS: Final = ("30m", "12h")
CACHE_TTL_LONG: Final = "12h"

_CACHE_BREAKPOINT: Final = fields.nullable(
    fields.record({"mode": fields.one_of("explicit"), "ttl": fields.one_of(*CACHE_TTLS)})
)

TEXT_PART: Final = fields.record(
    {"type": fields.string, "text": fields.string, "prompt_cache_breakpoint": _CACHE_BREAKPOINT}, required=("text",)
)
REFUSAL_PART: Final = fields.record({"type": fields.string, "refusal": fields.string}, required=("refusal",))
TEXT_PARTS: Final = {"text": TEXT_PART, "refusal": REFUSAL_PART}
# Their bytes are not measured: what they cost is a matter of tables (core/media.py).
MEDIA_PARTS: Final = {
    "image_url": fields.record(
        {
            "type": fields.string,
            "image_url": fields.record(
                {"url": fields.string, "detail": fields.nullable(fields.one_of("auto", "low", "high", "original"))},
                required=("url",),
            ),
            "prompt_cache_breakpoint": _CACHE_BREAKPOINT,
        },
        required=("image_url",),
    ),
    "input_audio": fields.record(
        {
            "type": fields.string,
            "input_audio": fields.record({"data": fields.string, "format": fields.string}, required=("data", "format")),
            "prompt_cache_breakpoint": _CACHE_BREAKPOINT,
        },
        required=("input_audio",),
    ),
    "file": fields.record(
        {
            "type": fields.string,
            "file": fields.record(
                {
                    "file_data": fields.nullable(fields.string),
                    "file_id": fields.nullable(fields.string),
                    "filename": fields.nullable(fields.string),
                }
            ),
            "prompt_cache_breakpoint": _CACHE_BREAKPOINT,
        },
        required=("file",),
    ),
}
PARTS: Final = TEXT_PARTS | MEDIA_PARTS
MEDIA_KINDS: Final[dict[str, MediaKind]] = {"image_url": "image", "input_audio": "audio", "file": "document"}

FUNCTION: Final = fields.record(
    {
        "name": fields.name,
        "description": fields.nullable(fields.string),
        "parameters": fields.nullable(fields.json_object),
        "strict": fields.nullable(fields.boolean),
    },
    required=("name",),
)
TOOLS: Final = {
    "function": fields.record({"type": fields.string, "function": FUNCTION}, required=("function",)),
    "custom": fields.record(
        {
            "type": fields.string,
            "custom": fields.record(
                {
                    "name": fields.name,
                    "description": fields.nullable(fields.string),
                    "format": fields.nullable(fields.by_type(CUSTOM_TOOL_FORMATS)),
                },
                required=("name",),
            ),
        },
        required=("custom",),
    ),
}

_CALLED_FUNCTION: Final = fields.record(
    {"name": fields.string, "arguments": fields.string}, required=("name", "arguments")
)
# ``index`` is what frameworks keep of a streamed call.
_CALL: Final = {"type": fields.string, "id": fields.string, "index": fields.nullable(fields.integer)}
TOOL_CALLS: Final = {
    "function": fields.record(_CALL | {"function": _CALLED_FUNCTION}, required=("function",)),
    "custom": fields.record(
        _CALL | {"custom": fields.record({"name": fields.string, "input": fields.string}, required=("name", "input"))},
        required=("custom",),
    ),
}

# ``content`` and ``tool_calls`` are read by the dialect itself, which measures them.
_NAMED: Final[dict[str, Check]] = {
    "role": fields.string,
    "content": fields.anything,
    "name": fields.nullable(fields.string),
}
MESSAGES: Final = {
    "system": fields.record(_NAMED, required=("content",)),
    "developer": fields.record(_NAMED, required=("content",)),
    "user": fields.record(_NAMED, required=("content",)),
    "tool": fields.record(_NAMED | {"tool_call_id": fields.string}, required=("content", "tool_call_id")),
    "function": fields.record(_NAMED, required=("content", "name")),
    "assistant": fields.record(
        _NAMED
        | {
            "refusal": fields.nullable(fields.string),
            "tool_calls": fields.nullable(fields.each(fields.by_type(TOOL_CALLS))),
            "function_call": fields.nullable(_CALLED_FUNCTION),
            "audio": fields.absent,
            # Answers carry it, and clients send answers back whole.
            "annotations": fields.nullable(fields.array),
            # DeepSeek and others want their reasoning back in this field.
            "reasoning_content": fields.nullable(fields.string),
        }
    ),
}

_NAMED_FUNCTION: Final = fields.record({"name": fields.string}, required=("name",))
TOOL_CHOICES: Final = {
    "function": fields.record({"type": fields.string, "function": _NAMED_FUNCTION}, required=("function",)),
    "custom": fields.record({"type": fields.string, "custom": _NAMED_FUNCTION}, required=("custom",)),
    "allowed_tools": fields.record(
        {
            "type": fields.string,
            "allowed_tools": fields.record(
                {"mode": fields.one_of("auto", "required"), "tools": fields.each(fields.json_object)}
            ),
        },
        required=("allowed_tools",),
    ),
}

RESPONSE_FORMATS: Final = {
    "text": fields.record({"type": fields.string}),
    "json_object": fields.record({"type": fields.string}),
    "json_schema": fields.record(
        {
            "type": fields.string,
            "json_schema": fields.record(
                {
                    "name": fields.name,
                    "description": fields.nullable(fields.string),
                    "schema": fields.nullable(fields.json_object),
                    "strict": fields.nullable(fields.boolean),
                },
                required=("name",),
            ),
        },
        required=("json_schema",),
    ),
}

# What a search model reads of a page is a fixed number of input tokens at the smaller models, and free at gpt-4o
# (OpenAI docs, pricing, 2026-07).
SEARCH_TOKENS: Final = 8_000
SEARCH_TOKENS_FREE: Final = frozenset({"gpt-4o-search-preview", "gpt-4o-search-preview-2025-03-11"})

# Fields that cost nothing beside what is measured of them.
TOP_LEVEL: Final[dict[str, Check]] = {
    "model": fields.name,
    "messages": fields.array,
    "stream": fields.nullable(fields.boolean),
    "stream_options": fields.nullable(
        fields.record({"include_usage": fields.boolean, "include_obfuscation": fields.boolean})
    ),
    "n": fields.anything,
    "max_tokens": fields.anything,
    "max_completion_tokens": fields.anything,
    "frequency_penalty": fields.nullable(fields.number),
    "presence_penalty": fields.nullable(fields.number),
    "temperature": fields.nullable(fields.number),
    "top_p": fields.nullable(fields.number),
    "seed": fields.nullable(fields.integer),
    "logprobs": fields.nullable(fields.boolean),
    "top_logprobs": fields.nullable(fields.integer),
    "logit_bias": fields.nullable(fields.mapping_of(fields.number)),
    "stop": fields.anything,
    "metadata": fields.nullable(fields.mapping_of(fields.string)),
    "user": fields.nullable(fields.string),
    "safety_identifier": fields.nullable(fields.string),
    "store": fields.nullable(fields.boolean),
    "reasoning_effort": fields.nullable(fields.string),
    "verbosity": fields.nullable(fields.string),
    "parallel_tool_calls": fields.nullable(fields.boolean),
    "tools": fields.nullable(fields.each(fields.by_type(TOOLS))),
    "tool_choice": fields.anything,
    "functions": fields.nullable(fields.each(FUNCTION)),
    "function_call": fields.anything,
    "response_format": fields.nullable(fields.by_type(RESPONSE_FORMATS)),
    "prediction": fields.nullable(
        fields.record({"type": fields.one_of("content"), "content": fields.anything}, required=("content",))
    ),
    "prompt_cache_key": fields.nullable(fields.string),
    "prompt_cache_options": fields.nullable(
        fields.record({"mode": fields.one_of("implicit", "explicit"), "ttl": fields.one_of(*CACHE_TTLS)})
    ),
    "prompt_cache_retention": fields.nullable(fields.one_of("in_memory", "24h")),
    "service_tier": fields.nullable(fields.one_of("auto", "default", "flex", "scale", "priority", "fast")),
    "modalities": fields.nullable(fields.always(["text"])),
    "audio": fields.absent,
    "web_search_options": fields.nullable(
        fields.record(
            {
                "search_context_size": fields.nullable(fields.one_of("low", "medium", "high")),
                "user_location": fields.nullable(
                    fields.record(
                        {"type": fields.one_of("approximate"), "approximate": fields.mapping_of(fields.string)}
                    )
                ),
            }
        )
    ),
    "moderation": fields.absent,
}
