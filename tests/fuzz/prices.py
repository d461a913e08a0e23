"""Prices as an adversary bills by them: plain numbers, and arithmetic of its own.

Nothing here is taken from the product: what a rate falls back to is design 6.2, what a tier costs providers 2.B to 8.
``seconds`` is when a price begins, from the start of the call; at or before 0 it is in force when the call begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Final

STANDARD: Final = "standard"
INPUTS: Final = ("input", "cache_read", "cache_write", "cache_write_long", "audio_input", "image_input")
# What an absent tier can never mean (providers 2.B: a project may default to Priority, and to nothing dearer).
ONLY_ASKED: Final = "ultrafast"


@dataclass(frozen=True, slots=True)
class Step:
    """The rates of the whole request once its input is above a number of tokens, or at it."""

    above: int
    inclusive: bool
    rates: dict[str, int]

    def holds(self, tokens: int) -> bool:
        return tokens > self.above or (self.inclusive and tokens == self.above)

    @property
    def last_below(self) -> int:
        """The most tokens that are not priced by it."""
        return self.above - 1 if self.inclusive else self.above


@dataclass(frozen=True, slots=True)
class Card:
    """The rates of one service tier."""

    rates: dict[str, int]
    steps: tuple[Step, ...] = ()

    def at(self, tokens: int) -> dict[str, int]:
        held = [step for step in self.steps if step.holds(tokens)]
        return held[-1].rates if held else self.rates


@dataclass(frozen=True, slots=True)
class Price:
    """One model's price from one instant on."""

    seconds: int
    cards: dict[str, Card]
    factors: dict[str, dict[str, Fraction]] = field(default_factory=dict)
    fees: dict[str, int] = field(default_factory=dict)
    context: int | None = None
    output_max: int | None = None
    image_max: int | None = None


def service_tiers(random: Random, dialect: str) -> dict[str, Fraction]:
    """Draw the service tiers of a model, and how many times the plain price each costs."""
    scales = (50, 175, 180, 200, 250, 600)
    return {tier: Fraction(random.choice(scales), 100) for tier in _tiers(random, dialect.partition("-")[0])}


def price(random: Random, *, seconds: int, near: int, dialect: str, tiers: dict[str, Fraction] | None = None) -> Price:
    """Draw a price; its long-context thresholds are near the number of tokens that a request may have.

    ``tiers`` are those of a model whose service tiers cost a number of times the plain price; else they are its own.
    """
    family = dialect.partition("-")[0]
    rates = _rates(random, counts_images=dialect not in {"anthropic", "openai-responses"} and family != "bedrock")
    thresholds = sorted({max(1, _threshold(random, near)) for _ in range(random.choice((0, 0, 1, 1, 2)))})
    inclusive = [random.random() < 0.5 for _ in thresholds]
    plain = _card(random, rates, thresholds, inclusive)
    cards = {STANDARD: plain}
    for tier, scale in (service_tiers(random, dialect) if tiers is None else tiers).items():
        irregular = tiers is None and random.random() < 0.5
        cards[tier] = _card(random, _scaled(rates, scale), thresholds, inclusive) if irregular else _times(plain, scale)
    factors: dict[str, dict[str, Fraction]] = {}
    if family == "anthropic":
        factors["geo"] = {"us": Fraction(11, 10), "eu": Fraction(12, 10)} if random.random() < 0.5 else {}
        factors["speed"] = {"fast": Fraction(2)}
    if family == "openai" and random.random() < 0.4:
        factors["residency"] = {"eu": Fraction(11, 10), "us": Fraction(105, 100)}
    return Price(
        seconds=seconds,
        cards=cards,
        factors=factors,
        fees={"web_search": random.choice((0, 10**10, 25 * 10**9)), "file_search": random.choice((0, 25 * 10**8))},
        context=random.choice((None, max(1, near - 100), near, near + 1, 200_000, 1_000_000)),
        output_max=random.choice((None, 1000, 64_000, 128_000)),
    )


def _threshold(random: Random, near: int) -> int:
    return random.choice((near - 1, near, near, near + 1, near // 2, 200_000, 272_000))


def _rates(random: Random, *, counts_images: bool) -> dict[str, int]:
    """Rates in whole millions of picodollars, so that no factor leaves a fraction."""
    plain = random.choice((1, 2, 3, 5, 10, 30, random.randrange(1, 100))) * 1_000_000
    return {
        "input": plain,
        "cache_read": plain // 10 if random.random() < 0.8 else plain * 2,
        "cache_write": plain * random.choice((100, 125, 80)) // 100,
        "cache_write_long": plain * random.choice((200, 250)) // 100,
        "output": plain * random.choice((0, 4, 5, 8)),
        "audio_input": plain * random.choice((1, 4, 16)),
        # Where an answer does not count images apart, nobody has a rate of their own.
        "image_input": plain * (random.choice((1, 2)) if counts_images else 1),
    }


def _card(random: Random, rates: dict[str, int], thresholds: list[int], inclusive: list[bool]) -> Card:
    steps = [
        # Cheaper above a threshold is not usual, but nothing forbids it.
        Step(above, at, _scaled(rates, Fraction(random.choice((50, 200, 200, 500)), 100)))
        for above, at in zip(thresholds, inclusive, strict=True)
    ]
    return Card(rates, tuple(steps))


def _times(card: Card, by: Fraction) -> Card:
    steps = (Step(step.above, step.inclusive, _scaled(step.rates, by)) for step in card.steps)
    return Card(_scaled(card.rates, by), tuple(steps))


def _tiers(random: Random, family: str) -> tuple[str, ...]:
    names = {"anthropic": ("priority", "batch"), "gemini": ("priority", "flex"), "bedrock": ("priority", "flex")}.get(
        family, ("priority", "flex", "scale", ONLY_ASKED)
    )
    return tuple(one for one in names if random.random() < 0.5)


def _scaled(rates: dict[str, int], by: Fraction) -> dict[str, int]:
    return {name: rate * by.numerator // by.denominator for name, rate in rates.items()}
