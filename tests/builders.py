"""Values for tests: each builder gives a small, plausible one, and takes what a test wants to be different."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from spendgate.core.bound import Offer, Quote
from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit, prefixes
from spendgate.core.counters import hold_of
from spendgate.core.key import Key, hash_secret
from spendgate.core.money import PICODOLLARS_PER_USD, usd
from spendgate.core.price import PriceRow, RateCard, Rates, Terms
from spendgate.core.request import RequestFacts
from spendgate.core.reservation import Reservation, new_id
from spendgate.core.route import Candidate, Provider, Route
from spendgate.core.window import Measure, Window

NOW: Final = datetime(2026, 11, 29, 23, 14, 30, tzinfo=UTC)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
USD: Final = PICODOLLARS_PER_USD

_RATES: Final = Rates(
    input=2_500_000, cache_read=1_250_000, cache_write=2_500_000, cache_write_long=5_000_000, output=10_000_000
)


def rates(**changes: Any) -> Rates:
    """Return rates of 2.50 and 10 USD per million tokens."""
    return replace(_RATES, **changes)


def a_card(**changes: Any) -> RateCard:
    """Return a card of ``rates()`` without long-context tiers."""
    return replace(RateCard(rates=_RATES), **changes)


def a_price_row(**changes: Any) -> PriceRow:
    """Return a row of 2.50 and 10 USD per million tokens, valid from the beginning."""
    row = PriceRow(provider="demo", model="demo-model", valid_from=EPOCH, card=a_card())
    return replace(row, **changes)


def a_provider(**changes: Any) -> Provider:
    """Return a provider that speaks ``openai``."""
    return replace(Provider(name="demo", dialect="openai", base_url="https://demo.example.com/v1"), **changes)


def a_candidate(**changes: Any) -> Candidate:
    """Return the candidate that ``a_price_row`` prices."""
    return replace(Candidate(provider="demo", model="demo-model"), **changes)


def a_route(**changes: Any) -> Route:
    """Return a route to ``a_candidate``."""
    return replace(Route(name="agent-model", candidates=(a_candidate(),)), **changes)


def an_offer(*rows: PriceRow, provider: Provider | None = None) -> Offer:
    """Return an offer of ``a_candidate`` at these rows, or at ``a_price_row``."""
    return Offer(candidate=a_candidate(), provider=provider or a_provider(), rows=rows or (a_price_row(),))


def a_quote(**changes: Any) -> Quote:
    """Return the quote that pins ``a_price_row``."""
    return replace(Quote(candidate=a_candidate(), rows=(a_price_row(),), terms=Terms()), **changes)


def facts(**changes: Any) -> RequestFacts:
    """Return the facts of a short question with an output cap."""
    return replace(
        RequestFacts(dialect="openai", model="agent-model", text_bytes=100, parts=1, output_cap=40), **changes
    )


def a_limit(maximum: str | int, measure: Measure = "usd", window: Window = "day") -> Limit:
    """Return a limit: of USD where the maximum is text, as it is where it is a number."""
    return Limit(measure=measure, window=window, maximum=usd(maximum) if isinstance(maximum, str) else maximum)


def a_policy(*limits: Limit, **changes: Any) -> BudgetPolicy:
    """Return the policy of budget ``acme`` at revision 1 with these limits."""
    return replace(BudgetPolicy(path="acme", rev=1, limits=limits), **changes)


def a_state(*limits: Limit, **changes: Any) -> BudgetState:
    """Return budget ``acme`` with these limits and nothing counted."""
    return replace(BudgetState(policy=a_policy(*limits)), **changes)


def a_key(secret: str = "sg-0123456789abcdef", **changes: Any) -> Key:
    """Return a key of budget ``acme``."""
    return replace(Key(hash=hash_secret(secret), name="a-key", budget="acme"), **changes)


def a_reservation(
    path: str = "acme",
    *,
    at: datetime = NOW,
    number: int = 1,
    policies: tuple[BudgetPolicy, ...] | None = None,
    **changes: Any,
) -> Reservation:
    """Return a call in flight that holds one cent on every budget of its path; ``number`` makes its id its own."""
    on = policies or tuple(BudgetPolicy(path=prefix, rev=1) for prefix in prefixes(path))
    reservation = Reservation(
        id=new_id(at, number.to_bytes(10)),
        state="in_flight",
        path=path,
        key_name="a-key",
        route="agent-model",
        dialect="openai",
        fingerprint="0" * 64,
        asked=Amounts(usd=usd("0.01"), requests=1, tokens=1000),
        holds=tuple(hold_of(policy, at) for policy in on),
        quotes=(a_quote(),),
        created_at=at,
        deadline=at + timedelta(minutes=15),
    )
    return replace(reservation, **changes)
