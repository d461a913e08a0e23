"""How a provider of Gemini's protocol reads a request: both spellings of every field, and of two the dearer."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from spendgate.local.conformance.asked import (
    FILE_TOKENS,
    IMAGE_TOKENS,
    KEPT_TOKENS,
    Asked,
    Unreadable,
    bytes_of,
    largest_cap,
    printed_bytes,
    whole,
)

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_INLINE: Final = "inlineData"
_FILED: Final = "fileData"
_SEARCHES: Final = ("googleSearch", "googleSearchRetrieval")


def gemini(document: Mapping[str, Any], *, model: str, stream: bool) -> Asked:
    """Read a request for content; the path has its model, and whether it is a stream."""
    contents = [one for found in _all(document, "contents") for one in (found if isinstance(found, list) else [found])]
    if not contents:
        raise Unreadable("there are no contents")
    system = list(_all(document, "systemInstruction"))
    said = [*contents, *system]
    choices = [count for value in _all(document, "generationConfig", "candidateCount") if (count := whole(value))]
    schemas = [
        value for name in ("responseSchema", "responseJsonSchema") for value in _all(document, "generationConfig", name)
    ]
    tools = list(_all(document, "tools"))
    return Asked(
        model=model,
        stream=stream,
        messages=len(said),
        text_bytes=sum(_text_bytes(one) for one in said),
        printed_bytes=printed_bytes([*tools, *schemas]),
        media_tokens=sum(_media(one) for one in said),
        kept_tokens=KEPT_TOKENS * len(list(_all(document, "cachedContent"))),
        cap=largest_cap(_all(document, "generationConfig", "maxOutputTokens")),
        choices=max(choices, default=1),
        priority="priority" in _all(document, "serviceTier"),
        searches=any(True for name in _SEARCHES for tool in tools for _ in _anywhere(tool, name)),
    )


def _spellings(name: str) -> tuple[str, str]:
    return name, _CAPITAL.sub("_", name).lower()


def _all(value: Any, *names: str) -> Iterator[Any]:
    """Yield what stands at a path of names, in any spelling of each."""
    if not names:
        if value is not None:
            yield value
        return
    if isinstance(value, Mapping):
        for spelling in dict.fromkeys(_spellings(names[0])):
            if spelling in value:
                yield from _all(value[spelling], *names[1:])


def _anywhere(value: Any, name: str) -> Iterator[Any]:
    """Yield what stands under a name at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in _spellings(name):
                yield inner
            else:
                yield from _anywhere(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _anywhere(inner, name)


def _text_bytes(content: Any) -> int:
    parts = [part for found in _all(content, "parts") for part in (found if isinstance(found, list) else [found])]
    media = {spelling for name in (_INLINE, _FILED) for spelling in _spellings(name)}
    return sum(bytes_of([value for key, value in part.items() if key not in media]) for part in parts)


def _media(content: Any) -> int:
    inline = [_tokens(blob) for blob in _anywhere(content, _INLINE)]
    return sum(inline) + FILE_TOKENS * len(list(_anywhere(content, _FILED)))


def _tokens(blob: Any) -> int:
    kind = next(_all(blob, "mimeType"), "")
    return IMAGE_TOKENS if str(kind).startswith("image/") else FILE_TOKENS
