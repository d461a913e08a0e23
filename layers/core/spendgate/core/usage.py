"""What a call used, in disjoint buckets: no token is in two of them, so a cost is a plain sum.

The buckets are those of every provider's bill; a dialect turns inclusive counts into them.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

# Above 2**53 an IEEE double, which is what most JSON writers hold, no longer counts by one.
COUNT_MAX: Final = 2**53 - 1

BUCKETS: Final = (
    "input_uncached",
    "cache_read",
    "cache_write",
    "cache_write_long",
    "output",
    "audio_input",
    "audio_output",
    "image_input",
    "image_output",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts in disjoint buckets, and units of fees by kind (``("web_search", 2)``).

    ``output`` contains reasoning. ``cache_write`` is the short lifetime, ``cache_write_long`` the long one.
    """

    input_uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_long: int = 0
    output: int = 0
    audio_input: int = 0
    audio_output: int = 0
    image_input: int = 0
    image_output: int = 0
    fees: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for bucket in BUCKETS:
            if getattr(self, bucket) < 0:
                raise ValueError(f"{bucket} is negative")

    @property
    def input_total(self) -> int:
        """All input tokens; what a long-context tier is chosen by."""
        return (
            self.input_uncached
            + self.cache_read
            + self.cache_write
            + self.cache_write_long
            + self.audio_input
            + self.image_input
        )

    @property
    def output_total(self) -> int:
        """All output tokens."""
        return self.output + self.audio_output + self.image_output

    @property
    def total(self) -> int:
        """All tokens; what a ``tokens`` limit counts."""
        return self.input_total + self.output_total


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """What an answer said about itself, merged over its frames.

    ``usage`` is None where a total is missing or unusable; ``problem`` then names the reason. ``partial`` keeps
    what was seen so far as a floor (never a bill). ``finished`` tells that the protocol's own end was seen. ``charge`` is
    what the provider itself says that the answer cost, in picodollars: None, and never 0, where it does not. ``in_full``
    tells that the answer came whole from a protocol that may never say what it used: its bound is charged.
    """

    usage: Usage | None = None
    partial: Usage | None = None
    finished: bool = False
    problem: str | None = None
    model: str | None = None
    service_tier: str | None = None
    geo: str | None = None
    speed: str | None = None
    response_id: str | None = None
    charge: int | None = None
    in_full: bool = False


def usable_count(value: object) -> int | None:
    """Return a token count that can be trusted, else None.

    A whole number from 0 to 2**53 - 1; integral floats and decimals such as ``512.0`` are accepted, since
    compatible servers send them. Booleans, strings, negatives, NaN and infinities are not counts.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value <= COUNT_MAX else None
    # A Decimal's NaN raises where it is compared; a float's fails both comparisons, and infinity the second.
    if isinstance(value, float) or (isinstance(value, Decimal) and value.is_finite()):
        return int(value) if 0 <= value <= COUNT_MAX and value == int(value) else None
    return None
