"""The fields, blocks and versions of Anthropic Messages that may be sent, as data.

Source: the types of anthropic-python 2.14.0 (``types``, ``types/beta``), read on 2026-11-29. What is not here is refused
by name: it may cost something that the bound does not know.
"""

from typing import Final

from spendgate.dialects import anthropic_tools, fields
from spendgate.dialects.anthropic_tools import CACHE_CONTROL
from spendgate.dialects.fields import Check

# The day on which the list below was last read against its source.
CHECKED: Final = "2026-11-29"
VERSION_DEFAULT: Final = "2023-06-01"
VERSIONS: Final = frozenset({"2023-01-01", VERSION_DEFAULT, "2026-10-21"})

_BLOCK: Final[dict[str, Check]] = {"type": fields.string, "cache_control": CACHE_CONTROL}
# What an answer says of where it read something; it comes back with the conversation.
_CITATIONS: Final = fields.by_type(
    dict.fromkeys(
        (
            "char_location",
            "page_location",
            "content_block_location",
            "search_result_location",
            "web_search_result_location",
        ),
        fields.json_object,
    )
)
TEXT_BLOCK: Final = fields.record(
    _BLOCK | {"text": fields.string, "citations": fields.nullable(fields.each(_CITATIONS))}, required=("text",)
)
_FETCHED: Final = {
    "url": fields.record({"type": fields.string, "url": fields.string}, required=("url",)),
    "file": fields.record({"type": fields.string, "file_id": fields.string}, required=("file_id",)),
}
_BASE64: Final = fields.record(
    {"type": fields.string, "media_type": fields.string, "data": fields.string}, required=("media_type", "data")
)
# The bytes of media are not measured: what they cost is a matter of tables (core/media.py).
IMAGE_BLOCK: Final = fields.record(
    _BLOCK | {"source": fields.by_type({"base64": _BASE64, **_FETCHED}), "transformations": fields.absent},
    required=("source",),
)
# A source of text or content is measured by the dialect itself.
DOCUMENT_BLOCK: Final = fields.record(
    _BLOCK
    | {
        "source": fields.by_type(
            {
                "base64": _BASE64,
                **_FETCHED,
                "text": _BASE64,
                "content": fields.record({"type": fields.string, "content": fields.anything}, required=("content",)),
            }
        ),
        "citations": fields.nullable(fields.record({"enabled": fields.nullable(fields.boolean)})),
        "context": fields.nullable(fields.string),
        "title": fields.nullable(fields.string),
    },
    required=("source",),
)
TEXT_BLOCKS: Final = {"text": TEXT_BLOCK}
DOCUMENT_CONTENT: Final = TEXT_BLOCKS | {"image": IMAGE_BLOCK}
RESULT_BLOCKS: Final = DOCUMENT_CONTENT | {"document": DOCUMENT_BLOCK}
_DIRECT: Final = fields.nullable(fields.always({"type": "direct"}))
_BY_CODE: Final = fields.record({"type": fields.string, "tool_id": fields.string}, required=("tool_id",))
_CALLER: Final = fields.nullable(
    fields.by_type(
        {
            "direct": fields.record({"type": fields.string}),
            "code_execution_20250825": _BY_CODE,
            "code_execution_20260120": _BY_CODE,
            "code_execution_20260521": _BY_CODE,
        }
    )
)
# What a server tool found in an earlier answer: ciphertext of pages whose size nobody says.
_SERVED: Final = fields.record(
    _BLOCK | {"tool_use_id": fields.string, "content": fields.anything, "caller": _CALLER},
    required=("tool_use_id", "content"),
)
# Later versions of the web tools run code on what they find, and answer with its results too.
_SERVED_KINDS: Final = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
)
_SERVED_NAMES: Final = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
)
# Blocks of an earlier answer whose size at the provider nobody says.
UNMEASURED: Final = frozenset({*_SERVED_KINDS, "compaction"})
# A tool result's ``content`` and empty thinking are looked at by the dialect itself.
BLOCKS: Final = RESULT_BLOCKS | {
    "thinking": fields.record(
        _BLOCK | {"thinking": fields.string, "signature": fields.nullable(fields.string)}, required=("thinking",)
    ),
    "redacted_thinking": fields.record(_BLOCK | {"data": fields.string}, required=("data",)),
    "server_tool_use": fields.record(
        _BLOCK
        | {
            "id": fields.string,
            "name": fields.one_of(*_SERVED_NAMES),
            "input": fields.json_object,
            "caller": _CALLER,
        },
        required=("id", "name", "input"),
    ),
    **dict.fromkeys(_SERVED_KINDS, _SERVED),
    "compaction": fields.record(
        _BLOCK
        | {
            "content": fields.nullable(fields.string),
            "encrypted_content": fields.nullable(fields.string),
            "signature": fields.nullable(fields.string),
        }
    ),
    "tool_use": fields.record(
        _BLOCK
        | {
            "id": fields.string,
            "name": fields.string,
            "input": fields.json_object,
            "caller": _DIRECT,
            "toolset_name": fields.nullable(fields.string),
        },
        required=("id", "name", "input"),
    ),
    "tool_result": fields.record(
        _BLOCK
        | {
            "tool_use_id": fields.string,
            "content": fields.anything,
            "is_error": fields.nullable(fields.boolean),
            "toolset_name": fields.nullable(fields.string),
        },
        required=("tool_use_id",),
    ),
}
ROLES: Final = ("user", "assistant", "system")
MESSAGE: Final = fields.record({"role": fields.string, "content": fields.anything}, required=("role", "content"))

_CHOICE: Final[dict[str, Check]] = {"type": fields.string, "disable_parallel_tool_use": fields.boolean}
TOOL_CHOICES: Final = {
    "auto": fields.record(_CHOICE),
    "any": fields.record(_CHOICE),
    "tool": fields.record(_CHOICE | {"name": fields.string}, required=("name",)),
    "none": fields.record({"type": fields.string}),
}

_THINKING: Final[dict[str, Check]] = {
    "type": fields.string,
    "display": fields.nullable(fields.string),
    "block_binding": fields.nullable(fields.record({"prefix_mismatch_behavior": fields.nullable(fields.string)})),
}
THINKING: Final = {
    "enabled": fields.record(_THINKING | {"budget_tokens": fields.integer}, required=("budget_tokens",)),
    "adaptive": fields.record(_THINKING),
    "between_tools": fields.record({"type": fields.string}),
    "disabled": fields.record({"type": fields.string}),
}

FORMAT: Final = fields.nullable(
    fields.by_type(
        {"json_schema": fields.record({"type": fields.string, "schema": fields.json_object}, required=("schema",))}
    )
)

# Clearing takes out of the context what the request holds, so the model reads less than was bounded. Compaction is another
# run of the model, which a budget has to allow.
COMPACTION_EDIT: Final = "compact_20260112"
_EDITS: Final = {
    "clear_thinking_20251015": fields.record({"type": fields.string, "keep": fields.anything}),
    "clear_tool_uses_20250919": fields.record(
        {
            "type": fields.string,
            "clear_at_least": fields.nullable(fields.json_object),
            "clear_tool_inputs": fields.anything,
            "exclude_tools": fields.nullable(fields.each(fields.string)),
            "keep": fields.json_object,
            "trigger": fields.json_object,
        }
    ),
    COMPACTION_EDIT: fields.record(
        {
            "type": fields.string,
            "instructions": fields.nullable(fields.string),
            "pause_after_compaction": fields.nullable(fields.boolean),
            "trigger": fields.nullable(fields.json_object),
        }
    ),
}

TOP_LEVEL: Final[dict[str, Check]] = {
    "model": fields.name,
    "messages": fields.array,
    "max_tokens": fields.anything,
    "system": fields.anything,
    "stream": fields.nullable(fields.boolean),
    "temperature": fields.nullable(fields.number),
    "top_p": fields.nullable(fields.number),
    "top_k": fields.nullable(fields.integer),
    "stop_sequences": fields.nullable(fields.each(fields.string)),
    "metadata": fields.nullable(fields.record({"user_id": fields.nullable(fields.string)})),
    "cache_control": CACHE_CONTROL,
    "thinking": fields.nullable(fields.by_type(THINKING)),
    "tools": fields.nullable(fields.each(anthropic_tools.any_tool)),
    "tool_choice": fields.nullable(fields.by_type(TOOL_CHOICES)),
    "output_config": fields.nullable(
        fields.record(
            {
                "effort": fields.nullable(fields.string),
                "format": FORMAT,
                # Advisory: max_tokens stays the cap.
                "task_budget": fields.nullable(
                    fields.record(
                        {
                            "type": fields.one_of("tokens"),
                            "total": fields.integer,
                            "remaining": fields.nullable(fields.integer),
                        }
                    )
                ),
            }
        )
    ),
    # The same under its name of 2025.
    "output_format": FORMAT,
    "context_management": fields.nullable(fields.record({"edits": fields.each(fields.by_type(_EDITS))})),
    "service_tier": fields.nullable(fields.one_of("auto", "standard_only")),
    "inference_geo": fields.nullable(fields.name),
    "speed": fields.nullable(fields.one_of("standard", "fast")),
}
