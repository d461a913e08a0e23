"""The tools of Anthropic Messages that may be sent, as data: those that the caller runs, and those of the provider.

Source: the types of anthropic-python 2.14.0 (``types/beta/*_tool*_param.py``), read on 2026-11-30. A tool or a version that
is not here is refused by name: what it adds to the prompt, or does at the provider, is not known.
"""

from typing import Any, Final

from spendgate.core.feature import WEB_FETCH, WEB_SEARCH
from spendgate.dialects import fields
from spendgate.dialects.fields import Check

CACHE_TTL_LONG: Final = "1h"
CACHE_CONTROL: Final = fields.nullable(
    fields.record(
        {"type": fields.one_of("ephemeral"), "ttl": fields.nullable(fields.one_of("5m", CACHE_TTL_LONG))},
        required=("type",),
    )
)

_DEFERRED: Final = fields.nullable(fields.always(expected=False))
# A tool that code may call runs that code in a container, whose hours are billed.
_DIRECT: Final = fields.nullable(fields.always(["direct"]))
CUSTOM_TOOL: Final = fields.record(
    {
        "type": fields.nullable(fields.one_of("custom")),
        "name": fields.name,
        "description": fields.nullable(fields.string),
        "input_schema": fields.json_object,
        "input_examples": fields.nullable(fields.each(fields.json_object)),
        "cache_control": CACHE_CONTROL,
        "strict": fields.nullable(fields.boolean),
        "eager_input_streaming": fields.nullable(fields.boolean),
        "allowed_callers": _DIRECT,
        "defer_loading": _DEFERRED,
    },
    required=("name", "input_schema"),
)

_CLIENT: Final[dict[str, Check]] = {
    "type": fields.string,
    "name": fields.name,
    "cache_control": CACHE_CONTROL,
    "strict": fields.nullable(fields.boolean),
    "input_examples": fields.nullable(fields.each(fields.json_object)),
    "allowed_callers": _DIRECT,
    "defer_loading": _DEFERRED,
}
_PLAIN: Final = fields.record(_CLIENT, required=("name",))
_EDITOR: Final = fields.record(_CLIENT | {"max_characters": fields.nullable(fields.integer)}, required=("name",))
_COMPUTER: Final = fields.record(
    _CLIENT
    | {
        "display_height_px": fields.integer,
        "display_width_px": fields.integer,
        "display_number": fields.nullable(fields.integer),
        "enable_zoom": fields.nullable(fields.boolean),
    },
    required=("name", "display_height_px", "display_width_px"),
)
_TOOLSET: Final = fields.record(
    {
        "type": fields.string,
        "cache_control": CACHE_CONTROL,
        "configs": fields.nullable(fields.mapping_of(fields.nullable(fields.json_object))),
    }
)
# Tools whose schema the provider writes and the caller runs. Their calls are calls of the caller's own: all that they cost
# is their definition, whose tokens are in no byte of the request.
CLIENT_TOOLS: Final[dict[str, Check]] = {
    "bash_20250124": _PLAIN,
    "text_editor_20250124": _PLAIN,
    "text_editor_20250429": _PLAIN,
    "text_editor_20250728": _EDITOR,
    "computer_20250124": _COMPUTER,
    "computer_20251124": _COMPUTER,
    "computer_toolset_20260801": _TOOLSET,
    "browser_toolset_20260801": _TOOLSET,
}
# Claude docs, tool use overview and pricing, 2026-08: bash 244-325, text editor 700, computer 735 and 466-499 of system
# prompt, the toolsets "about" 4,590 and 6,670 + 880. What is approximate, and computer use of a later version than the one
# that is counted there, is taken with a quarter more.
HIDDEN_TOKENS: Final[dict[str, int]] = {
    "bash_20250124": 325,
    "text_editor_20250124": 700,
    "text_editor_20250429": 700,
    "text_editor_20250728": 700,
    "computer_20250124": 1_234,
    "computer_20251124": 1_543,
    "computer_toolset_20260801": 5_738,
    "browser_toolset_20260801": 9_438,
}

_SERVER: Final[dict[str, Check]] = {
    "type": fields.string,
    "name": fields.name,
    "max_uses": fields.nullable(fields.integer),
    "allowed_domains": fields.nullable(fields.each(fields.string)),
    "blocked_domains": fields.nullable(fields.each(fields.string)),
    "cache_control": CACHE_CONTROL,
    "strict": fields.nullable(fields.boolean),
    "allowed_callers": _DIRECT,
    "defer_loading": _DEFERRED,
}
_SEARCH: Final[dict[str, Check]] = _SERVER | {
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
}
_FETCH: Final[dict[str, Check]] = _SERVER | {
    "max_content_tokens": fields.nullable(fields.integer),
    "citations": fields.nullable(fields.record({"enabled": fields.nullable(fields.boolean)})),
}
_CALLERS: Final = ("direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521")
# Later versions let code filter what they find: its container is free beside them (Claude docs, pricing, 2026-08), its calls
# count as uses, and the loop around it is the same.
_FILTERED: Final[dict[str, Check]] = {
    "allowed_callers": fields.nullable(fields.each(fields.one_of(*_CALLERS))),
    "response_inclusion": fields.nullable(fields.one_of("full", "excluded")),
}
_SOURCED: Final[dict[str, Check]] = {
    "use_cache": fields.nullable(fields.boolean),
    "url_sources": fields.nullable(fields.json_object),
}
FILTERING_TOOLS: Final[dict[str, Check]] = {
    "web_search_20260209": fields.record(_SEARCH | _FILTERED, required=("name",)),
    "web_search_20260318": fields.record(_SEARCH | _FILTERED, required=("name",)),
    "web_fetch_20260209": fields.record(_FETCH | _FILTERED, required=("name",)),
    "web_fetch_20260309": fields.record(_FETCH | _FILTERED | _SOURCED, required=("name",)),
    "web_fetch_20260318": fields.record(_FETCH | _FILTERED | _SOURCED, required=("name",)),
}
SERVER_TOOLS: Final[dict[str, Check]] = {
    "web_search_20250305": fields.record(_SEARCH, required=("name",)),
    "web_fetch_20250910": fields.record(_FETCH, required=("name",)),
    **FILTERING_TOOLS,
}
# A server loop stops after 10 iterations with ``pause_turn`` (Claude docs, server tools, 2026-08); attempts beyond
# ``max_uses`` fail, and are iterations too.
SERVER_TURNS_MAX: Final = 11


def any_tool(value: object, place: str) -> None:
    """Check a tool: one of the caller's own, or one that the provider has written and that is known."""
    kind = value.get("type") if isinstance(value, dict) else None
    known: Check | None = None
    if isinstance(kind, str):
        known = CLIENT_TOOLS.get(kind) or SERVER_TOOLS.get(kind)
    (known or CUSTOM_TOOL)(value, place)


def feature_of(kind: str) -> tuple[str, str | None]:
    """Return the feature of a server tool, and the kind of fee that each use costs: fetching costs tokens only."""
    # Claude docs, pricing, 2026-08.
    return (WEB_SEARCH, WEB_SEARCH) if kind.startswith(WEB_SEARCH) else (WEB_FETCH, None)


def filters_by_code(tools: list[dict[str, Any]] | None) -> bool:
    """Tell whether code may run at the provider, in a container that is free."""
    return any(tool.get("type") in FILTERING_TOOLS for tool in tools or [])
