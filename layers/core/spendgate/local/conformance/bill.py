"""What the suite's provider bills for a request: pure, and the worst that the wire protocol lets a provider mean.

    input      TOKENS_A_MESSAGE a message + the UTF-8 bytes of every text and of tools and schemas, divided by
               ``bytes_a_token`` and rounded up + IMAGE_TOKENS an image + FILE_TOKENS a file or a sound
    output     ``output_tokens``, or with ``to_the_cap`` as much as the request allows, for each choice; never more than
               the request's cap, or OUTPUT_TOKENS_MAX where it sets none that can be read. Of two caps the larger counts
    bill       (input + output) x the model's rates, a write to the cache at five quarters of the input's, times TIER_FACTOR for the tier "priority"; and SEARCH_FEE a search

A field of a type that the protocol does not know counts as not there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spendgate.core.money import Picodollars
from spendgate.local.conformance.driver import RATE, Model

TOKENS_A_MESSAGE: Final = 4
OUTPUT_TOKENS_MAX: Final = 4096
CHOICES_MAX: Final = 128
IMAGE_TOKENS: Final = 1105
FILE_TOKENS: Final = 3000
SEARCHES: Final = 2
SEARCH_FEE: Final = Picodollars(10_000_000_000)
TIER_FACTOR: Final = 2

_MEDIA: Final = {"image_url": IMAGE_TOKENS, "image": IMAGE_TOKENS, "input_audio": FILE_TOKENS, "file": FILE_TOKENS}
_NOT_TEXT: Final = frozenset({"role", "type", "id", "tool_call_id", "tool_use_id", "cache_control"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How much work a provider makes of a request, and what of it can be seen in the answer."""

    bytes_a_token: int = 4
    output_tokens: int = 100
    to_the_cap: bool = False
    # Times the cap: a provider that does not keep to it.
    beyond_the_cap: int = 1
    # Of the output, what is billed and not shown.
    hidden: bool = False
    # The text is written to the provider's cache: counted beside the input, and dearer.
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """One request's work and its price."""

    model: str
    stream: bool
    usage_asked: bool
    choices: int
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int
    shown_tokens: int
    capped: bool
    amount: Picodollars


class Unreadable(ValueError):
    """A body that no provider answers; it costs nothing."""


def bill(body: bytes, terms: Terms, models: Mapping[str, Model]) -> Bill:
    """Return the bill of a chat completion or a message; Unreadable where there is no work in it."""
    document = _document(body)
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Unreadable("there is no message")
    model = str(document.get("model"))
    rates = models.get(model, Model(name=model))
    cap = _cap(document)
    choices = _whole(document.get("n")) or 1
    wanted = cap if terms.to_the_cap else terms.output_tokens
    output = min(wanted, cap) * terms.beyond_the_cap
    count = len(messages) + (document.get("system") is not None)
    written = -(-_text_bytes(document) // terms.bytes_a_token)
    media = sum(_MEDIA.get(str(part.get("type")), 0) for part in _parts(messages))
    cache_write = written if terms.cached else 0
    input_tokens = TOKENS_A_MESSAGE * count + written + media - cache_write
    factor = TIER_FACTOR if document.get("service_tier") == "priority" else 1
    searches = SEARCHES if _searches(document) else 0
    tokens = input_tokens * rates.input + cache_write * rates.cache_write + output * choices * rates.output
    options = document.get("stream_options")
    return Bill(
        model=model,
        stream=document.get("stream") is True,
        usage_asked=isinstance(options, Mapping) and options.get("include_usage") is True,
        choices=min(choices, CHOICES_MAX),
        input_tokens=input_tokens,
        output_tokens=output * choices,
        cache_write_tokens=cache_write,
        shown_tokens=1 if terms.hidden else output,
        capped=terms.to_the_cap or terms.output_tokens > cap,
        amount=Picodollars(tokens * factor + searches * SEARCH_FEE),
    )


def flat(rate: Picodollars = RATE) -> Picodollars:
    """Return what any other endpoint bills for a request: as much as an image of OpenAI's."""
    return Picodollars(4000 * rate)


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        # The last of two equal names counts, as in most readers.
        document = json.loads(body)
    except (ValueError, RecursionError) as cause:
        raise Unreadable("the body is not JSON") from cause
    if not isinstance(document, dict):
        raise Unreadable("the body is not an object")
    return document


def _cap(document: Mapping[str, Any]) -> int:
    caps = [cap for name in ("max_completion_tokens", "max_tokens") if (cap := _whole(document.get(name))) is not None]
    return min(max(caps, default=OUTPUT_TOKENS_MAX), OUTPUT_TOKENS_MAX)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _searches(document: Mapping[str, Any]) -> bool:
    tools = document.get("tools")
    kinds = [str(tool.get("type")) for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []
    return "web_search_options" in document or any(kind.startswith("web_search") for kind in kinds)


def _parts(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, list):
            yield from (part for part in content if isinstance(part, Mapping))


def _text_bytes(document: Mapping[str, Any]) -> int:
    texts = _bytes_of(document["messages"]) + _bytes_of(document.get("system"))
    printed = [document[name] for name in ("tools", "response_format", "functions") if document.get(name) is not None]
    return texts + sum(len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")) for value in printed)


def _bytes_of(value: object) -> int:
    """Count the bytes of all texts within a JSON value; media are counted by the piece."""
    if isinstance(value, str):
        return len(value.encode(errors="surrogatepass"))
    if isinstance(value, Mapping):
        if value.get("type") in _MEDIA:
            return 0
        return sum(_bytes_of(inner) for name, inner in value.items() if name not in _NOT_TEXT)
    if isinstance(value, list):
        return sum(_bytes_of(inner) for inner in value)
    return 0
