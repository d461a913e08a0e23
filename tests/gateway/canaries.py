"""What no log, table or error may hold, gathered from all that a test sent: keys, prompts, and the demo provider's own words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.gateway.stand import PROVIDER_KEY, Stand

COMPLETION: Final = "The demo provider says"
# Shorter ones, or single words, are also names of models and fields.
PROMPT_LENGTH_MIN: Final = 12
_KEY: Final = re.compile(r"sg-[A-Za-z0-9_-]{16,}")
_KEY_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_WRITTEN: Final = frozenset({"content", "text", "input", "prompt", "system", "instructions"})


def check_secrecy(stand: Stand) -> None:
    """Fail where anything that a test sent, or got, is kept or logged; or where a caller was told a provider's key."""
    if not stand.gateway.arrivals:
        return
    kept = {"the log": stand.log.getvalue(), "the tables": stand.tables()}
    for canary in {PROVIDER_KEY, COMPLETION, *_keys(stand), *_prompts(stand)}:
        found = [place for place, text in kept.items() if canary in text]
        assert not found, f"{canary!r} is in {' and in '.join(found)}"
    assert PROVIDER_KEY.encode() not in b"".join(stand.gateway.sent)


def _keys(stand: Stand) -> Iterator[str]:
    for arrival in stand.gateway.arrivals:
        for name in _KEY_HEADERS:
            yield from _KEY.findall(arrival.headers.get(name, ""))


def _prompts(stand: Stand) -> Iterator[str]:
    for body in stand.gateway.bodies:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            continue
        yield from _texts(document, written=False)


def _texts(value: Any, *, written: bool) -> Iterator[str]:
    if isinstance(value, str):
        if written and len(value) >= PROMPT_LENGTH_MIN and " " in value:
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, written=name in _WRITTEN)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, written=written)
