"""The fields, versions and beta names of Anthropic Messages that may be sent, as data.

Source: the types of anthropic-python 2.14.0 (``types``, ``types/beta``), read on 2026-11-29. What is not here is refused
by name: it may cost something that the bound does not know.
"""

from typing import Final

from spendgate.core.feature import WEB_FETCH, WEB_SEARCH
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
        "web-fetch-2025-09-10",
        "web-search-2025-03-05",
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
# What a server tool found in an earlier answer: ciphertext of pages whose size nobody says.
_SERVED: Final = fields.record(
    _BLOCK | {"tool_use_id": fields.string, "content": fields.anything, "caller": _DIRECT},
    required=("tool_use_id", "content"),
)
SERVED_RESULTS: Final = frozenset({"web_search_tool_result", "web_fetch_tool_result"})
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
            "name": fields.one_of("web_search", "web_fetch"),
            "input": fields.json_object,
            "caller": _DIRECT,
        },
        required=("id", "name", "input"),
    ),
    "web_search_tool_result": _SERVED,
    "web_fetch_tool_result": _SERVED,
    "tool_use": fields.record(
        _BLOCK
        | {
            "id": fields.string,
            "name": fields.string,
            "input": fields.json_object,
            "caller": _DIRECT,
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
_SERVER_TOOL: Final[dict[str, Check]] = {
    "type": fields.string,
    "name": fields.name,
    "max_uses": fields.nullable(fields.integer),
    "allowed_domains": fields.nullable(fields.each(fields.string)),
    "blocked_domains": fields.nullable(fields.each(fields.string)),
    "cache_control": CACHE_CONTROL,
    "strict": fields.nullable(fields.boolean),
    "allowed_callers": fields.nullable(fields.always(["direct"])),
    "defer_loading": fields.nullable(fields.always(expected=False)),
}
# Tools that run at the provider. Later versions run code to filter what they find, and have no bound yet.
SERVER_TOOLS: Final = {
    "web_search_20250305": fields.record(
        _SERVER_TOOL
        | {
            "user_location": fields.nullable(
                fields.record(
                    {
                        "type": fields.one_of("approximate"),
                        "city": fields.nullable(fields.string),
                        "region": fields.nullable(fields.string),
                        "country": fields.nullable(fields.string),
                        "timezone": fields.nullable(fields.string),
                    }
                )
            )
        },
        required=("name",),
    ),
    "web_fetch_20250910": fields.record(
        _SERVER_TOOL
        | {
            "max_content_tokens": fields.nullable(fields.integer),
            "citations": fields.nullable(fields.record({"enabled": fields.nullable(fields.boolean)})),
        },
        required=("name",),
    ),
}
# Feature, and the kind of fee that each use costs; fetching costs tokens only (Claude docs, pricing, 2026-08).
SERVED_FEATURES: Final[dict[str, tuple[str, str | None]]] = {
    "web_search_20250305": (WEB_SEARCH, WEB_SEARCH),
    "web_fetch_20250910": (WEB_FETCH, None),
}
# A server loop stops after 10 iterations with ``pause_turn`` (Claude docs, server tools, 2026-08); attempts beyond
# ``max_uses`` fail, and are iterations too.
SERVER_TURNS_MAX: Final = 11


def any_tool(value: object, place: str) -> None:
    """Check a tool: one that the caller runs, or one of the server tools that are known."""
    kind = value.get("type") if isinstance(value, dict) else None
    (SERVER_TOOLS.get(kind, TOOL) if isinstance(kind, str) else TOOL)(value, place)


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
    "tools": fields.nullable(fields.each(any_tool)),
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
