"""The fields, versions and beta names of Anthropic Messages that may be sent, as data.

Source: the types of anthropic-python 2.14.0 (``types``, ``types/beta``), read on 2026-11-29. What is not here is refused
by name: it may cost something that the bound does not know.
"""

from typing import Final

from spendgate.dialects import fields
from spendgate.dialects.fields import Check

VERSION_DEFAULT: Final = "2023-06-01"
VERSIONS: Final = frozenset({"2023-01-01", VERSION_DEFAULT, "2026-10-21"})

# Read on 2026-11-29. Each of these changes no rule of cost, or only unlocks a field that is priced or refused by itself
# (context management, files, PDFs, fast mode).
BETAS: Final = frozenset(
    {
        "cache-diagnosis-2026-04-07",
        "claude-code-20250219",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "dev-full-thinking-2025-05-14",
        "effort-2025-11-24",
        "extended-cache-ttl-2025-04-11",
        "fast-mode-2026-02-01",
        "files-api-2025-04-14",
        "fine-grained-tool-streaming-2025-05-14",
        "interleaved-thinking-2025-05-14",
        "message-batches-2024-09-24",
        "model-context-window-exceeded-2025-08-26",
        "output-128k-2025-02-19",
        "pdfs-2024-09-25",
        "prompt-caching-2024-07-31",
        "structured-outputs-2025-11-13",
        "task-budgets-2026-03-13",
        "thinking-binding-controls-2026-08-01",
        "thinking-display-updates-2026-08-18",
        "thinking-token-count-2026-05-13",
        "token-counting-2024-11-01",
        "token-efficient-tools-2025-02-19",
    }
)

CACHE_TTL_LONG: Final = "1h"
CACHE_CONTROL: Final = fields.nullable(
    fields.record(
        {"type": fields.one_of("ephemeral"), "ttl": fields.nullable(fields.one_of("5m", CACHE_TTL_LONG))},
        required=("type",),
    )
)

_BLOCK: Final[dict[str, Check]] = {"type": fields.string, "cache_control": CACHE_CONTROL}
TEXT_BLOCK: Final = fields.record(
    _BLOCK | {"text": fields.string, "citations": fields.nullable(fields.always([]))}, required=("text",)
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
# A tool result's ``content`` and empty thinking are looked at by the dialect itself.
BLOCKS: Final = RESULT_BLOCKS | {
    "thinking": fields.record(
        _BLOCK | {"thinking": fields.string, "signature": fields.nullable(fields.string)}, required=("thinking",)
    ),
    "tool_use": fields.record(
        _BLOCK
        | {
            "id": fields.string,
            "name": fields.string,
            "input": fields.json_object,
            "caller": fields.nullable(fields.always({"type": "direct"})),
            "toolset_name": fields.absent,
        },
        required=("id", "name", "input"),
    ),
    "tool_result": fields.record(
        _BLOCK
        | {
            "tool_use_id": fields.string,
            "content": fields.anything,
            "is_error": fields.nullable(fields.boolean),
            "toolset_name": fields.absent,
        },
        required=("tool_use_id",),
    ),
}
ROLES: Final = ("user", "assistant", "system")
MESSAGE: Final = fields.record({"role": fields.string, "content": fields.anything}, required=("role", "content"))

CUSTOM_TOOL: Final = "custom"
TOOL: Final = fields.record(
    {
        "type": fields.nullable(fields.one_of(CUSTOM_TOOL)),
        "name": fields.name,
        "description": fields.nullable(fields.string),
        "input_schema": fields.json_object,
        "input_examples": fields.nullable(fields.each(fields.json_object)),
        "cache_control": CACHE_CONTROL,
        "strict": fields.nullable(fields.boolean),
        "eager_input_streaming": fields.nullable(fields.boolean),
        "allowed_callers": fields.nullable(fields.always(["direct"])),
        "defer_loading": fields.nullable(fields.always(expected=False)),
    },
    required=("name", "input_schema"),
)
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
    "tools": fields.nullable(fields.each(TOOL)),
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
    "service_tier": fields.nullable(fields.one_of("auto", "standard_only")),
    "inference_geo": fields.nullable(fields.name),
    "speed": fields.nullable(fields.one_of("standard", "fast")),
}
