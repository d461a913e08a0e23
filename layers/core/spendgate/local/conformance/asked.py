"""What a request asks for, as a provider of its dialect reads it: pure, naive, and nothing of a gateway's reading.

A field of a type that the protocol does not know counts as not there. Of two caps the larger counts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

OUTPUT_TOKENS_MAX: Final = 4096
IMAGE_TOKENS: Final = 1105
FILE_TOKENS: Final = 3000
# What a provider has kept of earlier calls, whichever way a request names it.
KEPT_TOKENS: Final = 3000

_MEDIA: Final = {
    "image_url": IMAGE_TOKENS,
    "image": IMAGE_TOKENS,
    "input_audio": FILE_TOKENS,
    "file": FILE_TOKENS,
    "input_image": IMAGE_TOKENS,
    "input_file": FILE_TOKENS,
}
_NOT_TEXT: Final = frozenset({"role", "type", "id", "tool_call_id", "tool_use_id", "cache_control"})
_KEPT: Final = ("previous_response_id", "conversation")


class Unreadable(ValueError):
    """A body that no provider answers; it costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request's sizes, and what multiplies them."""

    model: str
    stream: bool
    usage_asked: bool = False
    messages: int
    text_bytes: int
    # Of tools and schemas, as they are printed.
    printed_bytes: int
    media_tokens: int
    kept_tokens: int = 0
    cap: int
    choices: int
    priority: bool
    searches: bool


def chat(document: Mapping[str, Any]) -> Asked:
    """Read a chat completion or a message."""
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Unreadable("there is no message")
    options = document.get("stream_options")
    return Asked(
        model=str(document.get("model")),
        stream=document.get("stream") is True,
        usage_asked=isinstance(options, Mapping) and options.get("include_usage") is True,
        messages=len(messages) + (document.get("system") is not None),
        text_bytes=bytes_of(messages) + bytes_of(document.get("system")),
        printed_bytes=printed_bytes(document.get(name) for name in ("tools", "response_format", "functions")),
        media_tokens=_media(messages),
        cap=largest_cap(document.get(name) for name in ("max_completion_tokens", "max_tokens")),
        choices=whole(document.get("n")) or 1,
        priority=document.get("service_tier") == "priority",
        searches=_searches(document),
    )


def response(document: Mapping[str, Any]) -> Asked:
    """Read a request of OpenAI's Responses."""
    given = document.get("input")
    if not isinstance(given, str | list) or not given:
        raise Unreadable("there is no input")
    items = given if isinstance(given, list) else [given]
    text = document.get("text")
    kept = [name for name in _KEPT if document.get(name) is not None]
    kept += ["item" for item in items if isinstance(item, Mapping) and item.get("type") == "item_reference"]
    return Asked(
        model=str(document.get("model")),
        stream=document.get("stream") is True,
        messages=len(items) + (document.get("instructions") is not None),
        text_bytes=bytes_of(given) + bytes_of(document.get("instructions")),
        printed_bytes=printed_bytes([document.get("tools"), text.get("format") if isinstance(text, Mapping) else None]),
        media_tokens=_media(items),
        kept_tokens=KEPT_TOKENS * len(kept),
        cap=largest_cap([document.get("max_output_tokens")]),
        choices=1,
        priority=document.get("service_tier") == "priority",
        searches=_searches(document),
    )


def document_of(body: bytes) -> Mapping[str, Any]:
    """Return a body as a document; the last of two equal names counts, as in most readers. Unreadable."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as cause:
        raise Unreadable("the body is not JSON") from cause
    if not isinstance(document, dict):
        raise Unreadable("the body is not an object")
    return document


def whole(value: object) -> int | None:
    """Return a count, or None for whatever is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def largest_cap(values: Iterable[object]) -> int:
    """Return the largest of the caps that can be read, and what the model can do where none can."""
    caps = [cap for value in values if (cap := whole(value)) is not None]
    return min(max(caps, default=OUTPUT_TOKENS_MAX), OUTPUT_TOKENS_MAX)


def printed_bytes(values: Iterable[object]) -> int:
    """Count the bytes of values as JSON."""
    printed = (json.dumps(value, ensure_ascii=False) for value in values if value is not None)
    return sum(len(text.encode(errors="surrogatepass")) for text in printed)


def bytes_of(value: object) -> int:
    """Count the bytes of all texts within a JSON value; media are counted by the piece."""
    if isinstance(value, str):
        return len(value.encode(errors="surrogatepass"))
    if isinstance(value, Mapping):
        if value.get("type") in _MEDIA:
            return 0
        return sum(bytes_of(inner) for name, inner in value.items() if name not in _NOT_TEXT)
    if isinstance(value, list):
        return sum(bytes_of(inner) for inner in value)
    return 0


def _media(messages: Sequence[Any]) -> int:
    return sum(_MEDIA.get(str(part.get("type")), 0) for part in _parts(messages))


def _parts(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, list):
            yield from (part for part in content if isinstance(part, Mapping))


def _searches(document: Mapping[str, Any]) -> bool:
    tools = document.get("tools")
    kinds = [str(tool.get("type")) for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []
    return "web_search_options" in document or any(kind.startswith("web_search") for kind in kinds)
