"""The worst bill that an adversarial provider may write for a request, by arithmetic of its own.

Imports nothing of ``spendgate``. It finds as many tokens as the rules let it (``reading.py``), counts them where they cost
most, at the dearest tier, place, instant and long-context step that it can claim, and puts out all that it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tests.fuzz.prices import ONLY_ASKED, STANDARD, Price
from tests.fuzz.reading import CLAUDE_TURNS, OVERSHOOT, Reading

_STANDARD_NAMES = frozenset({"default", "standard", "standard_only", "on_demand"})
_ANY_TIER = frozenset({None, "auto", "unspecified"})
# [3, 12] who is known to hold a number of calls, and to bill its tools by the price list.
_HOLDS_CALLS = frozenset({"openai"})
# [5.B, 12] a page that is read costs its tokens only.
_WITHOUT_FEE = frozenset({"web_fetch"})


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
class Loop:
    """What a server does by itself: turns of the model, summaries before and after them, calls, and what nobody counts."""

    turns: int = 1
    summaries: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    fees: dict[str, int] = field(default_factory=dict)
    untold: int = 0

    @property
    def contexts(self) -> int:
        return self.turns + self.summaries


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
    loop: Loop = field(default_factory=Loop)
    # The output of each summary, which is in ``output`` too.
    summary: int = 0
    model: str = "m"

    @property
    def input(self) -> int:
        return sum(self.buckets.values())


def worst(read: Reading, prices: tuple[Price, ...], account: Account, allowed: dict[str, int]) -> Bill | None:
    """Return the worst bill; None where nothing bounds it, so that the request must have been refused."""
    context = _known(prices, "context")
    loop = _loop(read, account, allowed)
    if loop is None:
        return None
    most = _input(read, prices, context, loop)
    output = _output(read, prices, account)
    summary = _summary(loop, prices)
    if most is None or output is None or summary is None:
        return None
    output += loop.summaries * summary
    untold = loop.untold
    best: Bill | None = None
    for price in prices:
        loop = _spent(loop, read, price)
        fees = sum(Fraction(count * price.fees[name]) for name, count in loop.fees.items())
        for tier, speed, geo, factor in _terms(read, price, account):
            card = price.cards[tier]
            counts = {most, *(step.last_below for step in card.steps if untold < step.last_below < most)}
            for count in counts:
                rates = card.at(count)
                # What no count shows can only be said to have been read afresh.
                buckets = _dearest(read, rates, count - untold, loop.contexts)
                buckets["input"] = buckets.get("input", 0) + untold
                total = sum((rates[name] * number for name, number in buckets.items()), rates["output"] * output)
                amount = total * factor + fees
                if best is None or amount > best.amount:
                    best = Bill(amount, buckets, output, tier, geo, speed, loop.fees, untold, loop, summary, read.model)
    return best


def _known(prices: tuple[Price, ...], name: str) -> int | None:
    """[10.4] the largest of the sizes that the prices name, if all do."""
    sizes = [getattr(price, name) for price in prices]
    return None if None in sizes else max(sizes)


def _loop(read: Reading, account: Account, allowed: dict[str, int]) -> Loop | None:
    """[12] Return what the server does by itself; None where nothing bounds it, or nobody has allowed so much."""
    claude = account.family == "anthropic"
    if read.unbounded or read.held > allowed["server_state"]:
        return None
    if read.counts_calls and (read.calls is None or account.kind not in _HOLDS_CALLS):
        return None
    if claude and None in read.uses.values():
        return None
    uses = {name: (read.calls if read.counts_calls else stated) or allowed[name] for name, stated in read.uses.items()}
    if any(used > allowed[name] for name, used in uses.items()):
        return None
    if not uses:
        turns = 1
    elif claude:
        turns = CLAUDE_TURNS
    else:
        # One number may be for all of them together.
        turns = 1 + (max(uses.values()) if read.counts_calls else sum(uses.values()))
    # Before the first turn, and after each.
    summaries = turns + 1 if read.compacts else 0
    if summaries > allowed["compaction"]:
        return None
    return Loop(turns, summaries, uses, {}, read.unseen * uses.get("web_search", 0))


def _spent(loop: Loop, read: Reading, price: Price) -> Loop:
    """Return the loop with its calls where they cost most: all of one kind, if one number is for all."""
    fees = {
        name: used * (read.fees_each if name == "web_search" else 1)
        for name, used in loop.calls.items()
        if name not in _WITHOUT_FEE
    }
    if not read.counts_calls or len(fees) < 2:
        return replace(loop, fees=fees)
    dearest = max(fees, key=lambda name: fees[name] * price.fees[name])
    # What no usage shows comes with searches alone.
    if loop.untold:
        dearest = "web_search"
    return replace(loop, fees={dearest: fees[dearest]})


def _input(read: Reading, prices: tuple[Price, ...], context: int | None, loop: Loop) -> int | None:
    """Return the most input tokens, those among them that no count shows."""
    if read.uses or read.compacts:
        # [12] each turn reads the whole context again.
        return None if context is None else loop.contexts * (context * read.inputs + read.beside) + loop.untold
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
    return tokens + read.beside


def _summary(loop: Loop, prices: tuple[Price, ...]) -> int | None:
    """[5.D] what a summary puts out, which the cap does not hold: all that the model can."""
    if not loop.summaries:
        return 0
    longest = _known(prices, "output_max")
    return None if longest is None else longest + OVERSHOOT


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


def _dearest(read: Reading, rates: dict[str, int], count: int, contexts: int) -> dict[str, int]:
    """Return the input where it costs most; of images and sound no more than there can be."""
    plain = ["input", *(["cache_read"] if read.reads_cache else [])]
    if read.writes:
        plain.append("cache_write")
    if read.long_write:
        plain.append("cache_write_long")
    dearest = max(plain, key=rates.__getitem__)
    left, buckets = count, {}
    everything = count if read.fills_context or read.uses or read.compacts else 0
    for name, most in (
        ("audio_input", everything if read.sound else 0),
        ("image_input", everything if read.pages else (read.image_tokens + read.beside) * contexts),
    ):
        if rates[name] > rates[dearest] and most:
            buckets[name] = min(most, left)
            left -= buckets[name]
    return buckets | {dearest: left}
