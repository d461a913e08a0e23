"""The most that a call can cost, known before it is sent.

The rule and its reasons are docs/pricing.md, "The bound"; the facts behind the allowances are those of
``core/route.Framing``. Everything here is monotone in the output cap, so the largest cap that fits can be searched.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from spendgate.core.intake import (
    check_uses,
    fees_bound,
    input_bound,
    input_tokens_max,
    rates_of_media,
    uncapped_output,
)
from spendgate.core.kind import caps_reasoning, kind_of
from spendgate.core.money import Picodollars, saturated
from spendgate.core.price import (
    ASKED_TIERS,
    FACTOR_ONE,
    STANDARD_TIER,
    PriceRow,
    RateCard,
    Rates,
    Terms,
    cost,
    rows_touching,
    scaled,
)
from spendgate.core.request import RequestFacts
from spendgate.core.route import Candidate, Provider
from spendgate.core.usage import Usage, UsageReport
from spendgate.errors import CostBoundUnknown, RefusalFacts

# Values that cost what the plain price says: "global" is Anthropic's inference_geo without a surcharge.
_PLAIN: Final = {
    "geo": frozenset({"global", "not_available"}),
    "speed": frozenset({"standard"}),
    # No request names a residency: the provider's entry does.
    "residency": frozenset({"none"}),
}
_FACTOR_KINDS: Final = ("geo", "speed", "residency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One candidate's price, pinned: what an answer of it is settled with, whatever the catalogue does meanwhile.

    ``rows`` are all rows that touch the call's lifetime; ``terms`` are the dearest that the request can be priced by.
    ``tiers`` are all service tiers that it may be served at, where there are several: which of them is dearest depends on
    what is used, and an answer need not say which one it was. Empty is the one of the terms.
    """

    candidate: Candidate
    rows: tuple[PriceRow, ...]
    terms: Terms
    tiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The bound of a call over all its candidates, and what it is made of."""

    amount: Picodollars
    input_tokens_max: int
    output_tokens_max: int
    output_cap: int
    stamped: bool
    quotes: tuple[Quote, ...]

    @property
    def tokens(self) -> int:
        """All tokens that the call can use; what a ``tokens`` limit reserves."""
        return self.input_tokens_max + self.output_tokens_max


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A candidate as the catalogue knows it."""

    candidate: Candidate
    provider: Provider
    rows: tuple[PriceRow, ...]


def bound(facts: RequestFacts, offers: Sequence[Offer], *, output_tokens_default: int | None) -> Bound:
    """Return the bound of a call that can reach any of ``offers``; each must have at least one price row.

    CostBoundUnknown where the output has no cap, or a tier or place asked for has no price.
    """
    cap, stamped = _output_cap(facts, offers, output_tokens_default)
    parts = [_bound_of(facts, offer, cap) for offer in offers]
    return Bound(
        amount=max(part.amount for part in parts),
        input_tokens_max=max(part.input_tokens_max for part in parts),
        output_tokens_max=max(part.output_tokens_max for part in parts),
        output_cap=cap,
        stamped=stamped,
        quotes=tuple(quote for part in parts for quote in part.quotes),
    )


def largest_cap_that_fits(
    facts: RequestFacts, offers: Sequence[Offer], *, below: int, usd: int | None, tokens: int | None
) -> int | None:
    """Return the largest output cap under ``below`` whose bound fits the room that is left; None if not even 1 does.

    ``usd`` in picodollars and ``tokens`` are the rooms; None is no limit.
    """

    def overflows(cap: int) -> bool:
        parts = [_bound_of(facts, offer, cap) for offer in offers]
        too_dear = usd is not None and max(part.amount for part in parts) > usd
        return too_dear or (tokens is not None and max(part.tokens for part in parts) > tokens)

    caps = range(1, max(below, 1))
    return bisect_right(caps, False, key=overflows) or None  # noqa: FBT003


def settled_cost(report: UsageReport, usage: Usage, quote: Quote, *, start: datetime, end: datetime) -> Picodollars:
    """Return what an answer cost, by the pinned rows that were in force while it was made: of several, the dearest.

    What the provider names (tier, place, speed) decides; what it leaves out, or names without a known rate, is priced
    as it was reserved. ValueError where the row has no rate for what was used.
    """
    rows = rows_touching(quote.rows, start, end) or quote.rows
    return Picodollars(max(cost(usage, row, terms) for row in rows for terms in _terms_reported(report, quote, row)))


def _output_cap(facts: RequestFacts, offers: Sequence[Offer], default: int | None) -> tuple[int, bool]:
    if facts.output_cap is not None:
        return facts.output_cap, False
    # A provider refuses a cap above its model's maximum, so what is stamped is the smallest of all candidates'.
    known = [row.output_tokens_max for offer in offers for row in offer.rows if row.output_tokens_max is not None]
    if default is not None:
        known.append(default)
    if not known:
        raise CostBoundUnknown(
            f"the request has no output cap, and neither a price row of {facts.model!r} nor the budget gives one: "
            "set the output cap in the request, or default_output_tokens on the budget",
            facts=RefusalFacts(field="max_tokens", next_action="set an output cap in the request"),
        )
    return min(known), True


def _bound_of(facts: RequestFacts, offer: Offer, cap: int) -> Bound:
    framing = offer.provider.framing
    check_uses(facts, offer.provider)
    measured = input_tokens_max(facts, framing, None)
    tokens_in = input_bound(facts, offer.candidate, offer.rows, measured=measured)
    tokens_out = (_output_max(offer, cap) + framing.output_overshoot) * facts.choices if facts.has_output else 0
    tokens_out += uncapped_output(facts, offer.candidate, offer.rows, overshoot=framing.output_overshoot)
    factors = _factors_assumed(facts, offer)
    worst, worst_terms = 0, Terms()
    tiers: dict[str, None] = {}
    for row in offer.rows:
        for tier, card in _cards_assumed(facts, offer.provider, row):
            tiers[tier] = None
            terms = Terms(service_tier=tier, factors=factors)
            amount = _dearest(facts, card, terms, tokens_in, tokens_out) + fees_bound(facts, row)
            if amount >= worst:
                worst, worst_terms = amount, terms
    quote = Quote(
        candidate=offer.candidate, rows=offer.rows, terms=worst_terms, tiers=tuple(tiers) if len(tiers) > 1 else ()
    )
    return Bound(
        # A refusal that costs a fee, and an answer: whether both can be is said nowhere.
        amount=saturated(worst + kind_of(offer.provider).refusal_fee),
        input_tokens_max=tokens_in,
        output_tokens_max=tokens_out,
        output_cap=cap,
        stamped=facts.output_cap is None,
        quotes=(quote,),
    )


def _output_max(offer: Offer, cap: int) -> int:
    """Return the most output tokens of one choice: the cap, or all that the model can do where reasoning ignores it."""
    if caps_reasoning(offer.provider, offer.candidate.model):
        return cap
    sizes = [max(row.context_tokens or 0, row.output_tokens_max or 0) for row in offer.rows]
    if min(sizes) == 0:
        raise CostBoundUnknown(
            f"provider {offer.candidate.provider} may put out reasoning beyond the output cap, and a price row of "
            f"{offer.candidate.model} has neither context_tokens nor output_tokens_max",
            facts=RefusalFacts(
                field="max_tokens",
                next_action="an operator adds context_tokens to the price row, or declares cap_includes_reasoning: true "
                "on the provider",
            ),
        )
    return max(cap, *sizes)


def _dearest(facts: RequestFacts, card: RateCard, terms: Terms, tokens_in: int, tokens_out: int) -> int:
    return max(
        tokens_in * scaled(_input_rate_max(facts, rates), terms) + tokens_out * scaled(rates.output, terms)
        for rates in card.reachable(tokens_in)
    )


def _input_rate_max(facts: RequestFacts, rates: Rates) -> int:
    # Which tokens the provider finds in its cache is not known yet, and writing can cost more than missing.
    possible = [rates.input, rates.cache_read]
    if facts.cache_write != "none":
        possible.append(rates.cache_write)
    if facts.cache_write == "long":
        possible.append(rates.cache_write_long)
    return max(*possible, *rates_of_media(facts, rates))


def _factors_assumed(facts: RequestFacts, offer: Offer) -> tuple[tuple[str, int], ...]:
    # The terms are pinned once for all rows, so a factor is the greatest that any of them has.
    greatest = (
        (kind, max(_factor_assumed(kind, _asked(facts, offer.provider, kind), row) for row in offer.rows))
        for kind in _FACTOR_KINDS
    )
    return tuple((kind, factor) for kind, factor in greatest if factor != FACTOR_ONE)


def _asked(facts: RequestFacts, provider: Provider, kind: str) -> str | None:
    match kind:
        case "geo":
            return facts.geo or provider.geo
        case "speed":
            # Fast mode is opt-in at every provider that has it, so an absent speed is the standard one.
            return facts.speed or provider.speed or "standard"
        case _:
            return provider.residency


def _factor_assumed(kind: str, value: str | None, row: PriceRow) -> int:
    if value is None:
        return row.factor_max(kind)
    factor = row.factor_of(kind, value)
    if factor is not None:
        # What is asked for may be served, and billed, as the plain value: a discount is not reserved by.
        return max(factor, FACTOR_ONE)
    if value in _PLAIN[kind]:
        return FACTOR_ONE
    raise CostBoundUnknown(
        f"{kind} {value!r} has no price at {row.provider} for {row.model}",
        facts=RefusalFacts(
            field="inference_geo" if kind == "geo" else kind,
            next_action=f"leave {kind} out, or add its factor to the price row",
        ),
    )


def _cards_assumed(facts: RequestFacts, provider: Provider, row: PriceRow) -> tuple[tuple[str, RateCard], ...]:
    asked = facts.service_tier or provider.service_tier
    if asked is None:
        return (STANDARD_TIER, row.card), *(one for one in row.service if one[0] not in ASKED_TIERS)
    card = row.card_of(asked)
    if card is None:
        raise CostBoundUnknown(
            f"service_tier {asked!r} has no price at {row.provider} for {row.model}",
            facts=RefusalFacts(
                field="service_tier", next_action="leave service_tier out, or add its rates to the price row"
            ),
        )
    # A dearer tier may be served, and billed, as the standard one; a cheaper one never as a dearer.
    return (STANDARD_TIER, row.card), (asked, card)


def _terms_reported(report: UsageReport, quote: Quote, row: PriceRow) -> tuple[Terms, ...]:
    """Return the terms that an answer may be billed by: of several tiers where it does not say which one it had."""
    said = {"geo": report.geo, "speed": report.speed}
    assumed = dict(quote.terms.factors)
    # All kinds, reserved for or not: what the provider names is what it bills, even where a declaration was wrong.
    factors = tuple(
        (kind, factor)
        for kind in _FACTOR_KINDS
        if (factor := _factor_reported(kind, said.get(kind), assumed.get(kind, FACTOR_ONE), row)) != FACTOR_ONE
    )
    return tuple(Terms(service_tier=tier, factors=factors) for tier in _tiers_reported(report, quote, row))


def _tiers_reported(report: UsageReport, quote: Quote, row: PriceRow) -> tuple[str, ...]:
    if report.service_tier is not None and row.card_of(report.service_tier) is not None:
        return (report.service_tier,)
    reserved = quote.tiers or (quote.terms.service_tier,)
    return tuple(tier for tier in reserved if row.card_of(tier) is not None) or (STANDARD_TIER,)


def _factor_reported(kind: str, value: str | None, reserved: int, row: PriceRow) -> int:
    if value is None:
        return reserved
    if value in _PLAIN[kind]:
        return FACTOR_ONE
    return row.factor_of(kind, value) or reserved
