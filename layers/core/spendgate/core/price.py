"""What a token costs at one provider, from one instant on.

Every rate is in picodollars a token. A price row is never changed: a new rate is a new row with its own instant.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from spendgate.core.money import Picodollars
from spendgate.core.usage import Usage

# A factor is a whole number of millionths, so that a rate times a factor is rounded (up) once and everywhere alike.
FACTOR_ONE: Final = 1_000_000

STANDARD_TIER: Final = "standard"
# "default" is OpenAI's word for the standard tier, in requests and in answers (openai-python service_tier).
STANDARD_TIER_NAMES: Final = frozenset({STANDARD_TIER, "default", "standard_only", "on_demand"})

# What only a request can ask for: a project's setting makes an absent tier mean "priority" at most (OpenAI docs, priority
# processing, 2026-07), and a bound at six times the price would be of no use.
ASKED_TIERS: Final = frozenset({"ultrafast"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Picodollars a token for each bucket; None where the model has no rate for a modality."""

    input: int
    cache_read: int
    cache_write: int
    cache_write_long: int
    output: int
    audio_input: int | None = None
    audio_output: int | None = None
    image_input: int | None = None
    image_output: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Rates of the whole request once its input is above (``inclusive``: at least) a number of tokens."""

    above: int
    rates: Rates
    inclusive: bool = False

    def applies(self, input_tokens: int) -> bool:
        """Tell whether a request of so many input tokens is priced by this tier."""
        return input_tokens >= self.above if self.inclusive else input_tokens > self.above


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCard:
    """The rates of one service tier: the plain ones, and those of long contexts, by rising threshold."""

    rates: Rates
    tiers: tuple[Tier, ...] = ()

    def at(self, input_tokens: int) -> Rates:
        """Return the rates of a request with so many input tokens."""
        found = self.rates
        for tier in self.tiers:
            if tier.applies(input_tokens):
                found = tier.rates
        return found

    def reachable(self, input_tokens_max: int) -> tuple[Rates, ...]:
        """Return all rates that a request of at most so many input tokens can be priced by."""
        return (self.rates, *(tier.rates for tier in self.tiers if tier.applies(input_tokens_max)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """All that is known of the price of one (provider, model) from ``valid_from`` on.

    ``service`` holds (service tier, card) for every tier but the standard one. ``factors`` holds (kind, value,
    millionths), kinds being ``geo``, ``speed``, ``residency``. ``fees`` holds (kind, picodollars a unit).
    ``output_tokens_max`` is what the model can put out at most, ``image_tokens_max`` what an image costs at most as an
    operator says; None where nobody does.
    """

    provider: str
    model: str
    valid_from: datetime
    card: RateCard
    service: tuple[tuple[str, RateCard], ...] = ()
    factors: tuple[tuple[str, str, int], ...] = ()
    fees: tuple[tuple[str, int], ...] = ()
    context_tokens: int | None = None
    output_tokens_max: int | None = None
    image_tokens_max: int | None = None
    aliases: tuple[str, ...] = ()
    source: str = ""
    checked: str = ""

    @property
    def id(self) -> str:
        """The row's name in records: provider, model and instant."""
        return f"{self.provider}#{self.model}#{self.valid_from:%Y-%m-%dT%H:%M:%SZ}"

    def card_of(self, service_tier: str) -> RateCard | None:
        """Return the rates of a service tier, None where the row has none."""
        if service_tier in STANDARD_TIER_NAMES:
            return self.card
        return next((card for name, card in self.service if name == service_tier), None)

    def factor_of(self, kind: str, value: str) -> int | None:
        """Return the factor of one value in millionths, None where the row has none."""
        return next((number for k, v, number in self.factors if (k, v) == (kind, value)), None)

    def factor_max(self, kind: str) -> int:
        """Return the greatest factor of a kind, at least one."""
        return max([FACTOR_ONE, *(number for k, _, number in self.factors if k == kind)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How one answer is priced: its service tier, and its factors as (kind, millionths), applied in order."""

    service_tier: str = STANDARD_TIER
    factors: tuple[tuple[str, int], ...] = ()


def rows_touching(rows: Iterable[PriceRow], start: datetime, end: datetime) -> tuple[PriceRow, ...]:
    """Return the rows in force at any instant from ``start`` to ``end``, the oldest first."""
    ordered = sorted(rows, key=lambda row: row.valid_from)
    in_force = [row for row in ordered if row.valid_from <= start][-1:]
    return (*in_force, *(row for row in ordered if start < row.valid_from <= end))


def row_in_force(rows: Iterable[PriceRow], at: datetime) -> PriceRow | None:
    """Return the newest row that is valid at ``at``."""
    return max((row for row in rows if row.valid_from <= at), key=lambda row: row.valid_from, default=None)


def scaled(rate: int, terms: Terms) -> int:
    """Return a rate times its factors, rounded up once a factor: this is the rate that is reserved and settled with."""
    for _, factor in terms.factors:
        rate = -(-rate * factor // FACTOR_ONE)
    return rate


def cost(usage: Usage, row: PriceRow, terms: Terms) -> Picodollars:
    """Return what ``usage`` costs; ValueError where the row has no rate for a bucket, a tier or a fee that was used."""
    card = row.card_of(terms.service_tier)
    if card is None:
        raise ValueError(f"{row.id} has no rates for service tier {terms.service_tier!r}")
    rates = card.at(usage.input_total)
    total = 0
    for name, tokens, rate in (
        ("input", usage.input_uncached, rates.input),
        ("cache_read", usage.cache_read, rates.cache_read),
        ("cache_write", usage.cache_write, rates.cache_write),
        ("cache_write_long", usage.cache_write_long, rates.cache_write_long),
        ("output", usage.output, rates.output),
        ("audio_input", usage.audio_input, rates.audio_input),
        ("audio_output", usage.audio_output, rates.audio_output),
        # Models that see are priced by the text rate, but for the few with a rate of its own.
        ("image_input", usage.image_input, rates.input if rates.image_input is None else rates.image_input),
        ("image_output", usage.image_output, rates.image_output),
    ):
        if not tokens:
            continue
        if rate is None:
            raise ValueError(f"{row.id} has no {name} rate")
        total += tokens * scaled(rate, terms)
    fees = dict(row.fees)
    for kind, units in usage.fees:
        if kind not in fees:
            raise ValueError(f"{row.id} has no fee for {kind}")
        total += units * fees[kind]
    return Picodollars(total)
