"""The shape of a request without its texts: what may be kept as test data.

A text becomes ``~N``, or ``~N+M`` where M of its characters are not ASCII; ``tests/gateway/test_agents.py`` makes filler of
the same length again. Names, types, enumerations and numbers stay.
"""

from collections.abc import Mapping
from typing import Any, Final

# Under these names a string is a text, an id, or says something of the machine.
_TEXTS: Final = frozenset(
    {
        "arguments",
        "call_id",
        "content",
        "definition",
        "description",
        "encrypted_content",
        "id",
        "input",
        "instructions",
        "item_id",
        "output",
        "prompt_cache_key",
        "signature",
        "system",
        "text",
        "thinking",
        "title",
        "tool_call_id",
        "tool_use_id",
        "user_id",
    }
)
# Whose values are texts, whatever their names.
_HOLDERS: Final = frozenset({"client_metadata", "metadata"})
# An id in the place of one.
_NOUGHT: Final = "00000000-0000-0000-0000-000000000000"
_HEADERS: Final = (
    "accept",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "content-type",
    "originator",
    "user-agent",
    "x-app",
    "x-codex-beta-features",
    "x-openai-internal-codex-responses-lite",
    "x-stainless-lang",
    "x-stainless-retry-count",
    "x-stainless-timeout",
)
_IDS: Final = ("session-id", "thread-id", "x-claude-code-session-id", "x-client-request-id", "x-session-id")


def shape_of(value: Any, name: str = "") -> Any:
    """Return a value of a body with its texts replaced."""
    if isinstance(value, str):
        return filler_name(value) if name in _TEXTS else value
    if isinstance(value, list):
        return [shape_of(item, name) for item in value]
    if isinstance(value, dict):
        # What a schema calls ``properties`` has names of its own, each for a schema and not for a text.
        return {key: shape_of(item, _inner(key, item, name)) for key, item in value.items()}
    return value


def headers_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that say what a program asks for; its ids are noughts."""
    kept = {name: headers[name] for name in _HEADERS if name in headers}
    return kept | {name: _NOUGHT for name in _IDS if name in headers}


def filler_name(text: str) -> str:
    """Name a filler of the same length, and of as many characters that are not ASCII."""
    ascii_only = sum(char.isascii() for char in text)
    other = len(text) - ascii_only
    return f"~{ascii_only}+{other}" if other else f"~{ascii_only}"


def _inner(key: str, value: Any, name: str) -> str:
    if name in _HOLDERS:
        return "text"
    return key if not isinstance(value, dict) or key in _HOLDERS else ""
