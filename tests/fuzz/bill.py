"""The worst bill that an adversarial provider may write for a request, by arithmetic of its own.

Imports nothing of ``spendgate``. It finds as many tokens as the rules let it (``reading.py``), counts them where they cost
most, at the dearest tier, place, instant and long-context step that it can claim, and puts out all that it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from tests.fuzz.prices import ONLY_ASKED, STANDARD, Price
from tests.fuzz.reading import CLAUDE_TURNS, OVERSHOOT, SEARCH_TOKENS, Reading

_STANDARD_NAMES = frozenset({"default", "standard", "standard_only", "on_demand"})
_ANY_TIER = frozenset({None, "auto", "unspecified"})


@dataclass(frozen=True, slots=True)
class Account:
    """What is declared of a provider's account, and whether its reasoning goes beyond the cap [10.3, 11]."""

    kind: str
    family: str
    tier: str | None = None
    geo: str | None = None
    residency: str | None = None
    reasoning_outside: bool = False


@dataclass(frozen=True, slots=True)
class Bill:
    """What is billed, and all that the usage can say of it."""

    amount: Fraction
    buckets: dict[str, int]
    output: int
    tier: str
    geo: str | None
    speed: str | None
    fees: dict[str, int] = field(default_factory=dict)
    # Tokens that are billed and stand in no count of an answer.
    untold: int = 0

    @property
    def input(self) -> int:
        return sum(self.buckets.values())


def worst(read: Reading, prices: tuple[Price, ...], account: Account, allowed: dict[str, int]) -> Bill | None:
    """Return the worst bill; None where nothing bounds it, so that the request must have been refused."""
    context = _known(prices, "context")
    tokens = _input(read, prices, context, account, allowed)
    output = _output(read, prices, account)
    if tokens is None or output is None:
        return None
    most, untold = tokens
    best: Bill | None = None
    for price in prices:
        uses = {name: used for name, used in _uses(read, account, allowed).items() if name == "web_search"}
        fees = sum(Fraction(count * price.fees[name]) for name, count in uses.items())
        for tier, speed, geo, factor in _terms(read, price, account):
            card = price.cards[tier]
            counts = {most, *(step.last_below for step in card.steps if untold < step.last_below < most)}
            for count in counts:
                rates = card.at(count)
                # What no count shows can only be said to have been read afresh.
                buckets = _dearest(read, rates, count - untold)
                buckets["input"] = buckets.get("input", 0) + untold
                total = sum((rates[name] * number for name, number in buckets.items()), rates["output"] * output)
                amount = total * factor + fees
                if best is None or amount > best.amount:
                    best = Bill(amount, buckets, output, tier, geo, speed, uses, untold)
    return best


def _known(prices: tuple[Price, ...], name: str) -> int | None:
    """[10.4] the largest of the sizes that the prices name, if all do."""
    sizes = [getattr(price, name) for price in prices]
    return None if None in sizes else max(sizes)


def _uses(read: Reading, account: Account, allowed: dict[str, int]) -> dict[str, int]:
    return {name: allowed[name] if stated is None else stated for name, stated in read.uses.items()}


def _input(
    read: Reading, prices: tuple[Price, ...], context: int | None, account: Account, allowed: dict[str, int]
) -> tuple[int, int] | None:
    """Return the most input tokens, and how many of them no count shows."""
    if read.uses:
        if context is None:
            return None
        # [12] each turn reads the whole context again.
        uses = sum(_uses(read, account, allowed).values())
        untold = 0 if account.family == "anthropic" else uses * SEARCH_TOKENS
        turns = CLAUDE_TURNS if account.family == "anthropic" else uses + 1
        return turns * (context * read.inputs + read.beside) + untold, untold
    tokens = read.within
    if read.hidden_blocks:
        longest = _known(prices, "output_max")
        if longest is None and context is None:
            return None
        tokens += read.hidden_blocks * (longest or 0) if longest is not None else (context or 0)
    if read.fills_context:
        if context is None:
            return None
        tokens = context * read.inputs
    if context is not None:
        tokens = min(tokens, context * read.inputs)
    return tokens + read.beside, 0


def _output(read: Reading, prices: tuple[Price, ...], account: Account) -> int | None:
    if not read.has_output:
        return 0
    if read.cap is None:
        return None
    cap = read.cap
    if account.reasoning_outside:
        # [8, xAI] what is thought is beside the cap: all that the model can do.
        sizes = [max(price.context or 0, price.output_max or 0) for price in prices]
        if min(sizes) == 0:
            return None
        cap = max(cap, *sizes)
    return (cap + OVERSHOOT) * read.choices


def _terms(read: Reading, price: Price, account: Account) -> Iterator[tuple[str, str | None, str | None, Fraction]]:
    """[2.B, 5.B, 8] all tiers, speeds and places that a request can be billed by."""
    asked = account.tier if read.tier in _ANY_TIER else read.tier
    asked = {"fast": "priority"}.get(asked or "", asked)
    if asked is None:
        tiers = [tier for tier in price.cards if tier != ONLY_ASKED]
    else:
        tiers = [STANDARD, *([asked] if asked not in _STANDARD_NAMES and asked in price.cards else [])]
    # A faster answer is opt-in.
    speeds = [("standard", Fraction(1))]
    if read.speed == "fast":
        speeds = [*speeds, ("fast", price.factors["speed"]["fast"])]
    geo = read.geo or account.geo
    places = price.factors.get("geo", {})
    geos = [("global", Fraction(1)), *((one, by) for one, by in places.items() if geo in (None, one))]
    homes = price.factors.get("residency", {})
    residency = [Fraction(1), *(by for one, by in homes.items() if account.residency in (None, one))]
    for tier in tiers:
        for speed, fast in speeds:
            for place, far in geos:
                yield tier, speed, place, fast * far * max(residency)


def _dearest(read: Reading, rates: dict[str, int], count: int) -> dict[str, int]:
    """Return the input where it costs most; of images and sound no more than there can be."""
    plain = ["input", *(["cache_read"] if read.reads_cache else [])]
    if read.writes:
        plain.append("cache_write")
    if read.long_write:
        plain.append("cache_write_long")
    dearest = max(plain, key=rates.__getitem__)
    left, buckets = count, {}
    everything = count if read.fills_context else 0
    for name, most in (
        ("audio_input", everything if read.sound else 0),
        ("image_input", everything if read.pages else read.image_tokens + read.beside),
    ):
        if rates[name] > rates[dearest] and most:
            buckets[name] = min(most, left)
            left -= buckets[name]
    return buckets | {dearest: left}
