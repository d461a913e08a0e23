"""What the suite's provider bills for a request: pure, and the worst that the wire protocol lets a provider mean.

    input      TOKENS_A_MESSAGE a message + the UTF-8 bytes of every text and of tools and schemas, divided by
               ``bytes_a_token`` and rounded up + IMAGE_TOKENS an image + FILE_TOKENS a file or a sound + KEPT_TOKENS
               for each name of something that the provider has kept
    output     ``output_tokens``, or with ``to_the_cap`` as much as the request allows, for each choice; never more than
               the request's cap, or OUTPUT_TOKENS_MAX where it sets none that can be read. Of two caps the larger counts
    bill       (input + output) x the model's rates, a write to the cache at five quarters of the input's, what was read
               from it at the model's own rate, times TIER_FACTOR for the tier "priority"; and SEARCH_FEE a search

How a dialect's request says all this is read in ``asked`` and ``asked_gemini``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spendgate.core.money import Picodollars
from spendgate.local.conformance.asked import Asked
from spendgate.local.conformance.driver import RATE, Model

TOKENS_A_MESSAGE: Final = 4
CHOICES_MAX: Final = 128
SEARCHES: Final = 2
SEARCH_FEE: Final = Picodollars(10_000_000_000)
TIER_FACTOR: Final = 2


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
    # The text is read from the provider's cache: a part of the input, and cheaper where the model says so.
    from_cache: bool = False
    # Tools and schemas are counted beside the input and not within it.
    tools_beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """One request's work and its price. ``input_tokens`` has what was read from the cache; ``tool_tokens`` are beside it."""

    model: str
    stream: bool
    usage_asked: bool
    choices: int
    input_tokens: int
    tool_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    # Of the output, billed and not shown.
    hidden_tokens: int
    shown_tokens: int
    capped: bool
    amount: Picodollars


def bill(asked: Asked, terms: Terms, models: Mapping[str, Model]) -> Bill:
    """Return the bill of a request."""
    rates = models.get(asked.model, Model(name=asked.model))
    wanted = asked.cap if terms.to_the_cap else terms.output_tokens
    output = min(wanted, asked.cap) * terms.beyond_the_cap
    beside = asked.printed_bytes if terms.tools_beside else 0
    written = -(-(asked.text_bytes + asked.printed_bytes - beside) // terms.bytes_a_token)
    tool_tokens = -(-beside // terms.bytes_a_token)
    cache_write = written if terms.cached else 0
    cache_read = written if terms.from_cache else 0
    other = TOKENS_A_MESSAGE * asked.messages + asked.media_tokens + asked.kept_tokens
    input_tokens = other + written - cache_write
    factor = TIER_FACTOR if asked.priority else 1
    searches = SEARCHES if asked.searches else 0
    tokens = (input_tokens - cache_read + tool_tokens) * rates.input
    tokens += cache_write * rates.cache_write + cache_read * rates.cache_read + output * asked.choices * rates.output
    shown = 1 if terms.hidden else output
    return Bill(
        model=asked.model,
        stream=asked.stream,
        usage_asked=asked.usage_asked,
        choices=min(asked.choices, CHOICES_MAX),
        input_tokens=input_tokens,
        tool_tokens=tool_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        output_tokens=output * asked.choices,
        hidden_tokens=max(0, output - shown) * asked.choices,
        shown_tokens=shown,
        capped=terms.to_the_cap or terms.output_tokens > asked.cap,
        amount=Picodollars(tokens * factor + searches * SEARCH_FEE),
    )


def flat(rate: Picodollars = RATE) -> Picodollars:
    """Return what any other endpoint bills for a request: as much as an image of OpenAI's."""
    return Picodollars(4000 * rate)
