"""What a request brings beside its text, and how each dialect says it: media, tools, searches, cache marks, tiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

# Of models that take media, search, and are served in several tiers; the others do none of it.
RICH: Final = "rich"
_IMAGE: Final = "iVBORw0KGgo="
_PAGES: Final = "JVBERi0xLjcK"
_SOUND: Final = "UklGRiQAAABXQVZFZm10IA=="
_SCHEMA: Final[Mapping[str, Any]] = {"type": "object", "properties": {"place": {"type": "string"}}}
_TIERS: Final[Mapping[str, tuple[str | None, ...]]] = {
    "openai": (None, "auto", "default", "priority", "flex"),
    "openai-responses": (None, "auto", "default", "priority", "flex"),
    "anthropic": (None, "auto", "standard_only"),
    "gemini": (None, "unspecified", "standard", "priority", "flex"),
    "gemini-stream": (None, "standard", "priority", "flex"),
    "bedrock-converse": (None, "default", "priority", "flex"),
    "bedrock-converse-stream": (None, "priority"),
}
_SEARCHING: Final = ("openai", "openai-responses", "anthropic", "gemini", "gemini-stream")
_SOUNDING: Final = ("openai", "gemini", "gemini-stream")
_MARKING: Final = ("anthropic", "bedrock-converse", "bedrock-converse-stream")

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What there is of each. ``searches`` is None where the provider may not search, 0 where no number says how often.

    ``writes`` is the lifetime for which the provider's cache is to keep the text, ``tier`` the service tier as the dialect
    spells it.
    """

    images: int = 0
    sound: bool = False
    pages: bool = False
    tools: bool = False
    results: int = 0
    searches: int | None = None
    writes: str = ""
    tier: str | None = None

    @property
    def media(self) -> int:
        return self.images + self.sound + self.pages


NOTHING: Final = Wants()
# Who has words for any of it.
SPOKEN: Final = frozenset(_TIERS)


def wants_of(random: Random, dialect: str, route: str) -> Wants:
    """Draw what a request brings; a dialect that has no word for it brings none."""
    if dialect not in SPOKEN:
        return NOTHING
    rich = route.endswith(RICH) or random.random() < 0.01
    tools = random.random() < 0.25
    searches = None
    if rich and dialect in _SEARCHING and random.random() < 0.4:
        searches = random.choice((1, 2, 3, 0) if dialect in ("anthropic", "openai-responses") else (0,))
    return Wants(
        images=random.choice((0, 0, 1, 2)) if rich else 0,
        sound=rich and dialect in _SOUNDING and random.random() < 0.2,
        pages=rich and random.random() < 0.15,
        tools=tools,
        results=random.randrange(4) if tools else 0,
        searches=searches,
        writes=random.choice(("", "", "short", "long")) if dialect in _MARKING else "",
        tier=random.choice(_TIERS[dialect]) if rich and "there" not in route else None,
    )


def said(dialect: str, text: str, wants: Wants) -> Body:
    """Return the fields of a request that say a text and all that it brings."""
    return _SAID[dialect](text, wants)


def _chat(text: str, wants: Wants) -> Body:
    content: Any = text
    if wants.media:
        content = [
            {"type": "text", "text": text},
            *[{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_IMAGE}"}}] * wants.images,
            *[{"type": "input_audio", "input_audio": {"data": _SOUND, "format": "wav"}}] * wants.sound,
            *[{"type": "file", "file": {"filename": "a.pdf", "file_data": _PAGES}}] * wants.pages,
        ]
    messages: list[Body] = [{"role": "user", "content": content}]
    if wants.results:
        function = {"name": "look", "arguments": "{}"}
        calls = [{"id": f"c{one}", "type": "function", "function": function} for one in range(wants.results)]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": one["id"], "content": "found"} for one in calls]
    body: Body = {"messages": messages}
    if wants.tools:
        body["tools"] = [{"type": "function", "function": {"name": "look", "parameters": _SCHEMA}}]
    if wants.searches is not None:
        body["web_search_options"] = {}
    return _with_tier(body, wants)


def _response(text: str, wants: Wants) -> Body:
    content: Any = text
    if wants.media:
        content = [
            {"type": "input_text", "text": text},
            *[{"type": "input_image", "image_url": f"data:image/png;base64,{_IMAGE}"}] * wants.images,
            *[{"type": "input_file", "filename": "a.pdf", "file_data": _PAGES}] * wants.pages,
        ]
    ids = [f"c{one}" for one in range(wants.results)]
    items: list[Body] = [
        {"role": "user", "content": content},
        *({"type": "function_call", "call_id": one, "name": "look", "arguments": "{}"} for one in ids),
        *({"type": "function_call_output", "call_id": one, "output": "found"} for one in ids),
    ]
    tools: list[Body] = [{"type": "function", "name": "look", "parameters": _SCHEMA}] if wants.tools else []
    body: Body = {"input": items}
    if wants.searches is not None:
        tools.append({"type": "web_search"})
        if wants.searches:
            body["max_tool_calls"] = wants.searches
    if tools:
        body["tools"] = tools
    return _with_tier(body, wants)


def _message(text: str, wants: Wants) -> Body:
    first: Body = {"type": "text", "text": text}
    if wants.writes:
        first["cache_control"] = {"type": "ephemeral"} | ({"ttl": "1h"} if wants.writes == "long" else {})
    blocks = [
        first,
        *[{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _IMAGE}}] * wants.images,
        *[{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": _PAGES}}]
        * wants.pages,
    ]
    messages: list[Body] = [{"role": "user", "content": blocks}]
    if wants.results:
        ids = [f"t{one}" for one in range(wants.results)]
        uses = [{"type": "tool_use", "id": one, "name": "look", "input": {}} for one in ids]
        results = [{"type": "tool_result", "tool_use_id": one, "content": "found"} for one in ids]
        messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    tools: list[Body] = [{"name": "look", "input_schema": _SCHEMA}] if wants.tools else []
    if wants.searches is not None:
        number = {"max_uses": wants.searches} if wants.searches else {}
        tools.append({"type": "web_search_20250305", "name": "web_search", **number})
    body: Body = {"messages": messages}
    if tools:
        body["tools"] = tools
    return _with_tier(body, wants)


def _contents(text: str, wants: Wants) -> Body:
    parts: list[Body] = [
        {"text": text},
        *[{"inlineData": {"mimeType": "image/png", "data": _IMAGE}}] * wants.images,
        *[{"inlineData": {"mimeType": "audio/wav", "data": _SOUND}}] * wants.sound,
        *[{"inlineData": {"mimeType": "application/pdf", "data": _PAGES}}] * wants.pages,
    ]
    contents: list[Body] = [{"role": "user", "parts": parts}]
    if wants.results:
        calls = [{"functionCall": {"name": "look", "args": {}}}] * wants.results
        results = [{"functionResponse": {"name": "look", "response": {"found": "it"}}}] * wants.results
        contents += [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]
    tools: list[Body] = [{"functionDeclarations": [{"name": "look", "parameters": _SCHEMA}]}] if wants.tools else []
    if wants.searches is not None:
        tools.append({"googleSearch": {}})
    body: Body = {"contents": contents}
    if tools:
        body["tools"] = tools
    return body if wants.tier is None else body | {"serviceTier": wants.tier}


def _conversation(text: str, wants: Wants) -> Body:
    content: list[Body] = [
        {"text": text},
        *[{"image": {"format": "png", "source": {"bytes": _IMAGE}}}] * wants.images,
        *[{"document": {"format": "pdf", "name": "a", "source": {"bytes": _PAGES}}}] * wants.pages,
    ]
    if wants.writes:
        content.append({"cachePoint": {"type": "default"} | ({"ttl": "1h"} if wants.writes == "long" else {})})
    messages: list[Body] = [{"role": "user", "content": content}]
    if wants.results:
        ids = [f"t{one}" for one in range(wants.results)]
        uses = [{"toolUse": {"toolUseId": one, "name": "look", "input": {}}} for one in ids]
        results = [{"toolResult": {"toolUseId": one, "content": [{"text": "found"}]}} for one in ids]
        messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    body: Body = {"messages": messages}
    if wants.tools:
        body["toolConfig"] = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": _SCHEMA}}}]}
    return body if wants.tier is None else body | {"serviceTier": {"type": wants.tier}}


def _with_tier(body: Body, wants: Wants) -> Body:
    return body if wants.tier is None else body | {"service_tier": wants.tier}


_SAID: Final[Mapping[str, Callable[[str, Wants], Body]]] = {
    "openai": _chat,
    "openai-responses": _response,
    "anthropic": _message,
    "gemini": _contents,
    "gemini-stream": _contents,
    "bedrock-converse": _conversation,
    "bedrock-converse-stream": _conversation,
}
