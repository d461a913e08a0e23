"""What a request uses at a provider, and what that costs: by arithmetic of the simulation's own, in picodollars.

What is used is drawn where the request arrives, from what the caller asked for and by what providers do; nothing of it
comes from the bound or the meter, which are held to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.simulation.wants import SPOKEN, Wants

# Of a model that is rich: what it can read, what an image takes of it at most, and beyond what all of a request is dear.
CONTEXT: Final = 1000
IMAGE_MAX: Final = 300
LONG_ABOVE: Final = 600
SEARCH_FEE: Final = 10_000_000_000
# Percent of the plain rates.
TIERS: Final = {"standard": 100, "priority": 200, "flex": 50}
PLACES: Final = {"global": 100, "us": 110}
LONG_PERCENT: Final = 200
# Whose cache is written, and billed for it, though nobody asks.
_WRITES_UNASKED: Final = ("openai", "openai-responses")


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a token in and a token out cost; all other rates follow from them. A rich one has tiers, places and fees."""

    fresh: int
    out: int
    rich: bool = False

    @property
    def read(self) -> int:
        return self.fresh // 10

    @property
    def written(self) -> int:
        return self.fresh * 5 // 4

    @property
    def written_long(self) -> int:
        return self.fresh * 2

    @property
    def sound(self) -> int:
        return self.fresh * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Tokens of each kind, none in two of them; searches; and by which tier and place they are priced."""

    fresh: int = 0
    read: int = 0
    written: int = 0
    written_long: int = 0
    images: int = 0
    sound: int = 0
    out: int = 0
    searches: int = 0
    tier: str = "standard"
    place: str = "global"

    @property
    def taken_in(self) -> int:
        return self.fresh + self.read + self.written + self.written_long + self.images + self.sound

    @property
    def tokens(self) -> int:
        return self.taken_in + self.out


def cost(bill: Bill, tariff: Tariff) -> int:
    """Return what is billed."""
    plain = (
        (bill.fresh + bill.images) * tariff.fresh
        + bill.read * tariff.read
        + bill.written * tariff.written
        + bill.written_long * tariff.written_long
        + bill.sound * tariff.sound
        + bill.out * tariff.out
    )
    if not tariff.rich:
        return plain
    long = LONG_PERCENT if bill.taken_in > LONG_ABOVE else 100
    # Rates are such that nothing is left of this.
    return plain * TIERS[bill.tier] * PLACES[bill.place] * long // 100**3 + bill.searches * SEARCH_FEE


def bill_of(
    random: Random, *, dialect: str, wants: Wants, rich: bool, text_tokens: int, out: int, searches_max: int
) -> Bill:
    """Draw what a request uses; of the text no more than there is, of all else no more than the provider may."""
    bill = Bill(fresh=text_tokens, out=out)
    if rich:
        bill = _searched(random, _seen(random, bill, wants), searches_max)
        bill = replace(bill, tier=_tier(random, dialect, wants.tier))
        if dialect == "anthropic":
            bill = replace(bill, place=random.choice(tuple(PLACES)))
    return _kept(random, bill, dialect, wants)


def _seen(random: Random, bill: Bill, wants: Wants) -> Bill:
    """Add media, as far as the model reads: an image often takes all that one can."""
    for _ in range(wants.images):
        most = max(1, min(IMAGE_MAX, CONTEXT - bill.taken_in))
        bill = replace(bill, images=bill.images + _often_all(random, most))
    if wants.sound:
        bill = replace(bill, sound=_often_all(random, max(1, CONTEXT - bill.taken_in)))
    if wants.pages:
        bill = replace(bill, fresh=bill.fresh + _often_all(random, max(1, CONTEXT - bill.taken_in)))
    return bill


def _searched(random: Random, bill: Bill, searches_max: int) -> Bill:
    """Search now and then: each time the model reads all that it had again, and what was found."""
    searches = random.choice((searches_max, random.randrange(searches_max + 1)))
    found = sum(_often_all(random, CONTEXT) for _ in range(searches))
    return replace(bill, searches=searches, fresh=bill.fresh + found)


def _often_all(random: Random, most: int) -> int:
    return random.choice((most, random.randrange(1, most + 1)))


def _tier(random: Random, dialect: str, asked: str | None) -> str:
    """What is asked for may be served as the plain one; where nothing is asked for, the account decides, but at Bedrock."""
    if asked is None and dialect.startswith("bedrock"):
        return "standard"
    if asked in (None, "auto", "unspecified"):
        return random.choice(tuple(TIERS))
    return random.choice(("standard", asked)) if asked in TIERS else "standard"


def _kept(random: Random, bill: Bill, dialect: str, wants: Wants) -> Bill:
    """Take some of the text from the cache, and write some to it."""
    if dialect not in SPOKEN:
        return bill
    if random.random() < 0.4:
        read = random.randrange(bill.fresh + 1)
        bill = replace(bill, fresh=bill.fresh - read, read=read)
    if wants.writes or (dialect in _WRITES_UNASKED and random.random() < 0.3):
        count = random.choice((bill.fresh, random.randrange(bill.fresh + 1)))
        long = count if wants.writes == "long" and random.random() < 0.8 else 0
        bill = replace(bill, fresh=bill.fresh - count, written=count - long, written_long=long)
    return bill
