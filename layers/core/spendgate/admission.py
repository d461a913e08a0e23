"""How a request that was read becomes a reservation to ask for, and what a refusal tells the caller. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from spendgate.core.block import Block, block_on, shape_of
from spendgate.core.bound import Bound, Offer, bound, largest_cap_that_fits
from spendgate.core.budget import Amounts, BudgetPolicy, is_unbudgeted
from spendgate.core.counters import hold_of
from spendgate.core.money import usd_text
from spendgate.core.policy import Denied, precedence
from spendgate.core.price import PriceRow, rows_touching
from spendgate.core.request import RequestFacts
from spendgate.core.reservation import IDEMPOTENCY_KEY_LENGTH_MAX, Reservation, new_id
from spendgate.core.route import Candidate, Provider, Route
from spendgate.core.run import active_asked
from spendgate.core.window import Measure
from spendgate.errors import (
    BudgetBusy,
    CostBoundUnknown,
    NotFound,
    OverBudget,
    PriceUnknown,
    RateLimited,
    RefusalFacts,
    Refused,
    RequestInvalid,
    RequestTooExpensive,
)

# A smaller output makes these fit; a stop or a rate does not care for it.
_SIZED: Final = (OverBudget, BudgetBusy, RequestTooExpensive, RateLimited)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """One candidate of a route: its provider, and every price row that is known of it."""

    provider: Provider
    rows: tuple[PriceRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the caller sent beside the body."""

    raw: bytes
    run: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """When a call is made, how long it may last, and how long after that its outcome is unknown."""

    now: datetime
    call: timedelta
    grace: timedelta


def check_dialect(route: Route, reached: Sequence[Reach], family: str) -> None:
    """Refuse a route that speaks another dialect than the path that was called; NotFound."""
    for reach in reached:
        if reach.provider.dialect != family:
            raise NotFound(
                f"route {route.name} speaks the {reach.provider.dialect} dialect, and this path the {family} one",
                facts=RefusalFacts(field="model", next_action="call the path of the route's dialect, or another route"),
            )


def offers_of(
    route: Route, reached: Sequence[Reach], path: Sequence[BudgetPolicy], life: Lifetime
) -> tuple[Offer, ...] | None:
    """Return every candidate with the rows that touch the call's lifetime; PriceUnknown where one has none.

    None for a caller whose whole path is unbudgeted and whose route has a candidate without a price: it passes.
    """
    offers = tuple(
        Offer(
            candidate=candidate, provider=reach.provider, rows=rows_touching(reach.rows, life.now, life.now + life.call)
        )
        for candidate, reach in zip(route.candidates, reached, strict=True)
    )
    unpriced = [offer.candidate for offer in offers if not offer.rows]
    if not unpriced:
        return offers
    if is_unbudgeted(tuple(path)):
        return None
    first, further = unpriced[0], len(unpriced) - 1
    also = f", nor of {further} further candidate{'s' if further > 1 else ''} of route {route.name}" if further else ""
    raise PriceUnknown(
        f"no price is known of model {first.model} at provider {first.provider}{also}",
        facts=RefusalFacts(
            budget=path[-1].path,
            field="model",
            next_action=f"an operator adds a price row for ({first.provider}, {first.model})",
        ),
    )


def check_blocks(
    facts: RequestFacts, blocks: Sequence[Block], candidates: Sequence[Candidate], path: Sequence[BudgetPolicy]
) -> None:
    """Refuse what has been billed above its bound, until a person has lifted it; CostBoundUnknown.

    Nobody relies on the bound of a caller whose whole path is unbudgeted.
    """
    block = block_on(blocks, candidates, shape_of(facts))
    if block is None or is_unbudgeted(tuple(path)):
        return
    one = block.candidate
    raise CostBoundUnknown(
        f"{block.feature} of model {one.model} at provider {one.provider} is blocked: reservation {block.reservation} held "
        f"{usd_text(block.reserved)} USD at most for it and was billed {usd_text(block.billed)}",
        facts=RefusalFacts(
            budget=path[-1].path,
            field="model",
            reservation=block.reservation,
            next_action="call another model, or an operator finds out why and lifts it: "
            f"spendgate blocks lift {one.provider} {one.model} {block.feature} --reason TEXT",
        ),
    )


def bound_of(facts: RequestFacts, offers: Sequence[Offer], path: Sequence[BudgetPolicy]) -> Bound:
    """Return the bound; an output cap that is absent is the nearest budget's default, or the model's maximum."""
    defaults = [policy.default_output_tokens for policy in reversed(path) if policy.default_output_tokens is not None]
    return bound(facts, offers, output_tokens_default=defaults[0] if defaults else None)


def reservation_of(
    facts: RequestFacts,
    *,
    asked: Asked,
    bounded: Bound | None,
    path: Sequence[BudgetPolicy],
    key_name: str,
    life: Lifetime,
    randomness: bytes,
) -> Reservation:
    """Return the reservation to ask for. Without a bound (unbudgeted, unpriced) nothing is held and the cap is 0."""
    tokens = 0 if bounded is None else bounded.tokens
    amount = 0 if bounded is None else bounded.amount
    return Reservation(
        id=new_id(life.now, randomness),
        state="in_flight",
        path=path[-1].path,
        key_name=key_name,
        route=facts.model,
        dialect=facts.dialect,
        # Some dialects have the model in the path and not in the body.
        fingerprint=fingerprint(f"{facts.dialect}\0{facts.model}", asked.raw),
        asked=Amounts(
            usd=amount, requests=1, tokens=tokens, tool_calls=facts.tool_results, active_milliseconds=active_asked(path)
        ),
        holds=tuple(hold_of(policy, life.now) for policy in path),
        quotes=() if bounded is None else bounded.quotes,
        created_at=life.now,
        deadline=life.now + life.call + life.grace,
        input_tokens_max=0 if bounded is None else bounded.input_tokens_max,
        output_tokens_max=0 if bounded is None else bounded.output_tokens_max,
        output_cap=0 if bounded is None else bounded.output_cap,
        stamped=bounded is not None and bounded.stamped,
        unpriced=bounded is None,
        shape=shape_of(facts),
        idempotency_key=asked.idempotency_key,
        stops_on_unknown=tuple(policy.path for policy in path if policy.stop_on_unknown),
    )


def refusal_of(
    denials: Sequence[Denied],
    rooms: Sequence[tuple[Measure, int]],
    asked: Amounts,
    *,
    facts: RequestFacts,
    offers: Sequence[Offer] | None,
    bounded: Bound | None,
) -> Refused:
    """Return the refusal that is answered: of several the first of the documented order, with the cap that would fit.

    ``rooms`` is what is left of every limit that may be smaller than what is asked.
    """
    chosen = min(denials, key=lambda denied: precedence(denied.refusal))
    if offers is None or bounded is None or not isinstance(chosen.refusal, _SIZED):
        return chosen.refusal
    if any(measure not in ("usd", "tokens") and asked.of(measure) > room for measure, room in rooms):
        return chosen.refusal
    fits = largest_cap_that_fits(
        facts,
        offers,
        below=bounded.output_cap,
        usd=min((room for measure, room in rooms if measure == "usd"), default=None),
        tokens=min((room for measure, room in rooms if measure == "tokens"), default=None),
    )
    refusal = chosen.refusal
    if fits is None:
        return _retold(refusal, replace(refusal.facts, fits_output_tokens=0))
    advice = f"set the output cap to {fits} tokens or less"
    action = advice if isinstance(refusal, RequestTooExpensive) else f"{advice}, or {refusal.facts.next_action}"
    return _retold(refusal, replace(refusal.facts, fits_output_tokens=fits, next_action=action))


def fingerprint(asked: str, raw: bytes) -> str:
    """Return what tells whether two requests are the same: a digest of what was asked and of the body as it came."""
    return hashlib.sha256(asked.encode() + b"\0" + raw).hexdigest()


def parse_idempotency_key(text: str | None) -> str | None:
    """Return an idempotency key; RequestInvalid for one that is empty, too long, or not printable ASCII."""
    if text is None:
        return None
    if not 0 < len(text) <= IDEMPOTENCY_KEY_LENGTH_MAX or not text.isascii() or not text.isprintable():
        raise RequestInvalid(
            f"an idempotency key has 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} printable ASCII characters",
            facts=RefusalFacts(field="idempotency-key"),
        )
    return text


def _retold(refusal: Refused, facts: RefusalFacts) -> Refused:
    return type(refusal)(
        str(refusal), facts=facts, retry_after_seconds=refusal.retry_after_seconds, status=refusal.status
    )
