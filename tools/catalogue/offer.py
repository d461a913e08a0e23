"""What one source says of one model's price, in the build's own terms: picodollars a token as exact fractions."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

# The day on which the sources below were read; every row carries it.
CHECKED: Final = "2026-11-29"
SOURCES: Final = "genai-prices 0.2.3, LiteLLM 1.110.2"

STANDARD: Final = "standard"
INPUT_BUCKETS: Final = ("input", "cache_read", "cache_write", "cache_write_long", "audio_input", "image_input")
OUTPUT_BUCKETS: Final = ("output", "audio_output", "image_output")
# The order in which a row names its rates.
BUCKETS: Final = (
    "input", "cache_read", "cache_write", "cache_write_long", "output",
    "audio_input", "audio_output", "image_input", "image_output",
)  # fmt: skip
WRITES: Final = ("cache_write", "cache_write_long")

Rates = dict[str, Fraction]
# The first input count at which rates apply (0: from the first token on) -> bucket -> picodollars a token.
Card = dict[int, Rates]


@dataclass(slots=True, kw_only=True)
class Offer:
    """One price: rates by service tier and threshold, factors, fees in USD a unit, and the model's sizes."""

    cards: dict[str, Card] = field(default_factory=dict)
    factors: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    fees: dict[str, Decimal] = field(default_factory=dict)
    context: int | None = None
    output_max: int | None = None

    def put(self, tier: str, first: int, bucket: str, rate: Fraction) -> None:
        """Set a rate, or the dearer one where there is one. A write of nothing means that nobody knows its rate."""
        if bucket in WRITES and not rate:
            return
        rates = self.cards.setdefault(tier, {}).setdefault(first, {})
        rates[bucket] = max(rate, rates.get(bucket, rate))

    def at(self, tier: str, first: int, bucket: str) -> Fraction | None:
        """Return the rate of a bucket at an input count."""
        card = self.cards.get(tier, {})
        known = [start for start in card if start <= first and bucket in card[start]]
        return card[max(known)][bucket] if known else None

    def base(self, bucket: str) -> Fraction | None:
        """Return the plain rate of a bucket."""
        return self.at(STANDARD, 0, bucket)


# A price from a day on; None is "always". The oldest first.
Windows = list[tuple[date | None, Offer]]


def in_force(windows: Windows, day: date) -> int:
    """Return the index of the window that a day falls into."""
    return max(index for index, (start, _) in enumerate(windows) if start is None or start <= day)


@dataclass(slots=True)
class Report:
    """What the build has to tell: by heading, a line each."""

    lines: dict[str, list[str]] = field(default_factory=dict)

    def add(self, heading: str, line: str) -> None:
        """Add a line under a heading."""
        self.lines.setdefault(heading, []).append(line)
