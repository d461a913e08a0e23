"""One case: a request is read and bounded by the product, billed by the adversary, and settled by the product again."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any, Final

from spendgate.core.bound import Bound, Offer, bound
from spendgate.core.feature import granted
from spendgate.core.kind import KINDS, kind_of
from spendgate.core.price import FACTOR_ONE, PriceRow, RateCard, Rates, Tier
from spendgate.core.route import Candidate, Provider
from spendgate.dialects.dialect import Dialect, Request
from spendgate.dialects.json_strict import parse_object
from spendgate.dialects.registry import DIALECTS
from spendgate.errors import CostBoundUnknown, RequestInvalid
from spendgate.metering import answered
from tests.builders import NOW, a_reservation
from tests.fuzz import answers, reading_openai, reading_others
from tests.fuzz.bill import Account, Bill, worst
from tests.fuzz.prices import STANDARD, Card, Price, price, service_tiers
from tests.fuzz.reading import Reader, Reading
from tests.fuzz.requests import Ask
from tests.fuzz.requests_served import DRAWN

CALL_SECONDS: Final = 900
# A summary before the first turn of Claude's loop and after each: 12.
ALLOWED: Final = {"web_search": 3, "web_fetch": 3, "file_search": 3, "compaction": 12, "server_state": 2}
READERS: Final[dict[str, Reader]] = {
    "openai": reading_openai.chat,
    "openai-completions": reading_openai.completions,
    "openai-embeddings": reading_openai.embeddings,
    "openai-responses": reading_openai.responses,
    "anthropic": reading_others.messages,
    "gemini": reading_others.generate_content,
    "gemini-stream": reading_others.generate_content,
    "gemini-embeddings": reading_others.embed_content,
    "gemini-batch-embeddings": reading_others.embed_content,
    "bedrock-converse": reading_others.converse,
    "bedrock-converse-stream": reading_others.converse,
}
_OPENAI_KINDS: Final = tuple(kind for kind in KINDS.values() if kind.dialect == "openai")
_RESERVATION: Final = a_reservation()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: refused, or the bill beside the bound; ``wrong`` says what does not hold."""

    dialect: str
    refused: str | None = None
    bill: int = 0
    bound: int = 0
    wrong: str | None = None

    @property
    def ratio(self) -> float:
        """The share of what was held that the adversary could bill."""
        return self.bill / self.bound if self.bound else 0.0


@dataclass(frozen=True, slots=True)
class World:
    """What a candidate of the route is: the provider as it is configured and as it is known, and its prices."""

    account: Account
    provider: Provider
    prices: tuple[Price, ...]
    row_prices: tuple[PriceRow, ...]
    # Every service tier costs a number of times the plain price, and the same at all times.
    regular: bool


def drawn(dialect: str, seed: str) -> Ask:
    """Return the request of a case; it depends on nothing but the seed."""
    return DRAWN[dialect](Random(f"{seed}/request"))  # noqa: S311 - it is to be repeated


def run(ask: Ask, seed: str) -> Outcome:
    """Run a case; the worlds that it is run in depend on the seed, and on the size of the request alone."""
    random = Random(f"{seed}/world")  # noqa: S311 - it is to be repeated
    dialect = DIALECTS[ask.dialect]
    try:
        body = parse_object(json.dumps(ask.body).encode())
        request = dialect.read(body, {}, ask.query, ask.path)
        request = replace(request, facts=granted(request.facts, ALLOWED))
    except (CostBoundUnknown, RequestInvalid) as refused:
        named = ask.refused is None or ask.refused in str(refused)
        return Outcome(
            ask.dialect, refused=str(refused), wrong=None if named else f"it was refused without {ask.refused}"
        )
    if ask.refused is not None:
        return Outcome(ask.dialect, wrong=f"it was admitted, and nothing bounds its {ask.refused}")
    first = _Sent(_sent(dialect, request, ask, output_cap=None), ask)
    worlds = [
        _world(random, ask, near=first.reading.within, number=number) for number in range(random.choice((1, 1, 1, 2)))
    ]
    offers = [Offer(candidate=_candidate(one, ask), provider=one.provider, rows=one.row_prices) for one in worlds]
    try:
        bounded = bound(request.facts, offers, output_tokens_default=random.choice((None, 256)))
    except CostBoundUnknown as refused:
        return Outcome(ask.dialect, refused=str(refused))
    return _billed(dialect, request, ask, bounded, random.choice(worlds), random, first)


def _billed(
    dialect: Dialect, request: Request, ask: Ask, bounded: Bound, world: World, random: Random, first: _Sent
) -> Outcome:
    request = replace(request, kind=kind_of(world.provider))
    sent = _sent(dialect, request, ask, output_cap=bounded.output_cap)
    # Most of the time is spent on reading, and most bodies leave as they came.
    read = first if sent == first.body else _Sent(sent, ask)
    bill = worst(read.reading, world.prices, world.account, ALLOWED)
    if bill is None:
        return Outcome(ask.dialect, bound=bounded.amount, wrong="it was admitted, and nothing bounds it")
    amount = -(-bill.amount.numerator // bill.amount.denominator)
    outcome = Outcome(ask.dialect, bill=amount, bound=bounded.amount)
    if amount > bounded.amount:
        return replace(outcome, wrong="the bill is above the bound")
    # A tier that is not told is settled as it was reserved: the dearest by what was bounded. Where tiers are irregular
    # another may be the dearest by what was used, so there the adversary has to tell.
    tells = not world.regular or random.random() < 0.7
    settled = _settled(dialect, request, ask, bounded, world, bill, random, tells=tells)
    if isinstance(settled, str):
        return replace(outcome, wrong=f"the usage was not understood: {settled}")
    if settled < amount - (100 if world.account.kind == "xai" else 0):
        return replace(outcome, wrong=f"it was settled at {settled}, which is less than the bill")
    if settled > bounded.amount:
        return replace(outcome, wrong=f"it was settled at {settled}, which is above the bound")
    if settled > amount and tells and not bill.untold:
        return replace(outcome, wrong=f"it was settled at {settled}, which is more than the bill")
    return outcome


class _Sent:
    """A body as the provider sees it, which is all that the adversary sees, and how it reads it."""

    def __init__(self, body: dict[str, Any], ask: Ask) -> None:
        self.body = body
        self.reading: Reading = READERS[ask.dialect](body, ask.model)


def _sent(dialect: Dialect, request: Request, ask: Ask, *, output_cap: int | None) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(dialect.outgoing(request, ask.model, output_cap))
    return sent


def _settled(
    dialect: Dialect,
    request: Request,
    ask: Ask,
    bounded: Bound,
    world: World,
    bill: Bill,
    random: Random,
    *,
    tells: bool,
) -> int | str:
    """Return what the product books of the answer, or why it books nothing."""
    choices = request.facts.choices
    if ask.streams:
        stream = answers.streamed(
            ask.dialect, bill, world.account, random, query=ask.query, tells=tells, choices=choices
        )
        meter = dialect.meter(request)
        middle = random.randrange(len(stream))
        for piece in (stream[:middle], stream[middle:]):
            meter.feed(piece)
        meter.end()
        report = meter.report()
    else:
        report = dialect.report(answers.whole(ask.dialect, bill, world.account, tells=tells, choices=choices), request)
    reservation = replace(_RESERVATION, quotes=bounded.quotes, created_at=NOW)
    end = NOW + timedelta(seconds=CALL_SECONDS)
    resolution = answered(reservation, _candidate(world, ask), report, end)
    if resolution.state != "settled" or resolution.actual is None:
        return resolution.reason or resolution.state
    return resolution.actual.usd


def _candidate(world: World, ask: Ask) -> Candidate:
    return Candidate(provider=world.provider.name, model=ask.model)


def _world(random: Random, ask: Ask, *, near: int, number: int) -> World:
    family = DIALECTS[ask.dialect].family
    kinds = [KINDS[name] for name in ask.kinds] or _OPENAI_KINDS
    kind = random.choice(kinds) if family == "openai" else KINDS[family]
    declares = random.random() < 0.3
    provider = Provider(
        name=f"p{number}",
        dialect=family,
        base_url="https://example.com/v1",
        kind=kind.name,
        service_tier="default" if declares else None,
        geo="global" if declares and family == "anthropic" else None,
        residency="none" if declares and family == "openai" else None,
    )
    account = Account(
        kind=kind.name,
        family=family,
        tier=provider.service_tier,
        geo=provider.geo,
        residency=provider.residency,
        # What is not confirmed of xAI is taken for the worst.
        reasoning_outside=kind.name == "xai",
    )
    tiers = service_tiers(random, ask.dialect) if random.random() < 0.7 else None
    first = price(random, seconds=-1, near=near, dialect=ask.dialect, tiers=tiers)
    prices = [first]
    if random.random() < 0.3:
        # A dated price that changes while the call is on its way. What is said aloud of the account is not.
        later = price(random, seconds=random.choice((1, CALL_SECONDS)), near=near, dialect=ask.dialect, tiers=tiers)
        prices.append(replace(later, factors=first.factors, fees=first.fees))
    rows = tuple(_row(one, provider.name, ask.model) for one in prices)
    return World(account, provider, tuple(prices), rows, regular=tiers is not None)


def _row(one: Price, provider: str, model: str) -> PriceRow:
    return PriceRow(
        provider=provider,
        model=model,
        valid_from=NOW + timedelta(seconds=one.seconds),
        card=_card(one.cards[STANDARD]),
        service=tuple((name, _card(card)) for name, card in one.cards.items() if name != STANDARD),
        factors=tuple(
            (kind, value, int(by * FACTOR_ONE)) for kind, values in one.factors.items() for value, by in values.items()
        ),
        fees=tuple(one.fees.items()),
        context_tokens=one.context,
        output_tokens_max=one.output_max,
    )


def _card(card: Card) -> RateCard:
    tiers = (Tier(above=step.above, inclusive=step.inclusive, rates=Rates(**step.rates)) for step in card.steps)
    return RateCard(rates=Rates(**card.rates), tiers=tuple(tiers))
