"""What Hypothesis draws from: prices, requests, what answers may say they used, limits and counters."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import strategies as st

from spendgate.core.bound import Bound, Offer
from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit
from spendgate.core.price import FACTOR_ONE, PriceRow, RateCard, Rates, Tier
from spendgate.core.request import RequestFacts
from spendgate.core.route import Candidate, Framing, Provider
from spendgate.core.usage import Usage, UsageReport
from spendgate.core.window import BUCKET, MEASURES, WINDOWS, bucket, counter

START: Final = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)
SERVICE_TIERS: Final = ("priority", "flex", "batch")
# "global" and "standard" are the plain values of their kinds.
PLACES: Final = ("us", "eu", "global")
SPEEDS: Final = ("fast", "standard")

instants = st.datetimes(min_value=datetime(2024, 1, 1), max_value=datetime(2028, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - the strategy adds the zone

_counts = st.integers(0, 3000)
_a_rate = st.integers(0, 10**9)
_a_factor = st.integers(1, 6 * FACTOR_ONE)

rates = st.builds(
    Rates, input=_a_rate, cache_read=_a_rate, cache_write=_a_rate, cache_write_long=_a_rate, output=_a_rate
)


@st.composite
def cards(draw: st.DrawFn) -> RateCard:
    """Draw a card with up to three long-context tiers at rising thresholds."""
    thresholds = sorted(draw(st.sets(st.integers(1, 6000), max_size=3)))
    tiers = [Tier(above=above, inclusive=draw(st.booleans()), rates=draw(rates)) for above in thresholds]
    return RateCard(rates=draw(rates), tiers=tuple(tiers))


@st.composite
def price_rows(draw: st.DrawFn, *, valid_from: datetime) -> PriceRow:
    """Draw a row with service tiers and factors."""
    names = draw(st.lists(st.sampled_from(SERVICE_TIERS), unique=True))
    pairs = [("geo", "us"), ("geo", "eu"), ("speed", "fast"), ("residency", "eu")]
    return PriceRow(
        provider="p",
        model="m",
        valid_from=valid_from,
        card=draw(cards()),
        service=tuple((name, draw(cards())) for name in names),
        factors=tuple((kind, value, draw(_a_factor)) for kind, value in pairs if draw(st.booleans())),
        context_tokens=draw(st.none() | st.integers(1, 8000)),
        output_tokens_max=draw(st.none() | st.integers(1, 500)),
    )


_framings = st.builds(
    Framing, request=_counts, tooling=_counts, tool=_counts, part=_counts, output_overshoot=st.integers(0, 50)
)


@st.composite
def _rows(draw: st.DrawFn) -> tuple[PriceRow, ...]:
    """Draw one or two rows, the first in force long before the call, the second from some time in it."""
    later = draw(st.none() | st.integers(1, 120))
    starts = [START - timedelta(days=1), *([] if later is None else [START + timedelta(minutes=later)])]
    return tuple(draw(price_rows(valid_from=start)) for start in starts)


@st.composite
def calls(draw: st.DrawFn) -> tuple[RequestFacts, tuple[Offer, ...]]:
    """Draw a request and one or two candidates; what it asks for, or an account declares, has a price at each."""
    candidates = draw(st.lists(_rows(), min_size=1, max_size=2))
    rows = [row for one in candidates for row in one]
    tiers = st.none() | st.sampled_from(
        ["default", *(name for name in SERVICE_TIERS if all(row.card_of(name) for row in rows))]
    )
    places = st.none() | st.sampled_from(
        ["global", *(name for name in ("us", "eu") if all(row.factor_of("geo", name) for row in rows))]
    )
    speeds = st.none() | st.sampled_from(
        ["standard", *(["fast"] if all(row.factor_of("speed", "fast") for row in rows) else [])]
    )
    offers = tuple(
        Offer(
            candidate=Candidate(provider=f"p{index}", model="m"),
            provider=Provider(
                name=f"p{index}",
                dialect="openai",
                base_url="https://example.com",
                framing=draw(_framings),
                service_tier=draw(tiers),
                geo=draw(places),
                speed=draw(speeds),
            ),
            rows=one,
        )
        for index, one in enumerate(candidates)
    )
    facts = draw(
        st.builds(
            RequestFacts,
            dialect=st.just("openai"),
            model=st.just("r"),
            text_bytes=_counts,
            json_bytes=_counts,
            parts=st.integers(0, 20),
            tools=st.integers(0, 5),
            structured=st.booleans(),
            output_cap=st.none() | st.integers(0, 500),
            choices=st.integers(1, 4),
            has_output=st.sampled_from((True, True, True, False)),
            inputs=st.integers(1, 3),
            cache_write=st.sampled_from(("none", "short", "long")),
            service_tier=tiers,
            geo=places,
            speed=speeds,
        )
    )
    return facts, offers


@st.composite
def usages_within(draw: st.DrawFn, facts: RequestFacts, bound: Bound) -> Usage:
    """Draw what an answer may have used: any split of at most the bounded tokens that the request makes possible."""
    # Parts of the input per thousand, so that the limit itself is met often.
    read, short, long, spared = draw(st.tuples(*[st.integers(0, 250) | st.just(0)] * 4))
    whole = bound.input_tokens_max
    cache_read = whole * read // 1000
    cache_write = whole * short // 1000 if facts.cache_write != "none" else 0
    cache_write_long = whole * long // 1000 if facts.cache_write == "long" else 0
    return Usage(
        input_uncached=whole - cache_read - cache_write - cache_write_long - whole * spared // 1000,
        cache_read=cache_read,
        cache_write=cache_write,
        cache_write_long=cache_write_long,
        output=draw(st.just(bound.output_tokens_max) | st.integers(0, bound.output_tokens_max)),
    )


@st.composite
def reports_within(draw: st.DrawFn, facts: RequestFacts, provider: Provider) -> UsageReport:
    """Draw what an answer may say of its price: what was asked for, something plainer, or nothing.

    Where nothing was asked for or declared, the answer may say anything.
    """
    tier = facts.service_tier or provider.service_tier
    geo = facts.geo or provider.geo
    speed = facts.speed or provider.speed or "standard"
    tiers = (*SERVICE_TIERS, "default", "nameless") if tier is None else (tier, "default", "standard")
    places = (*PLACES, "mars") if geo is None else (geo, "global", "not_available")
    return UsageReport(
        service_tier=draw(st.none() | st.sampled_from(tiers)),
        geo=draw(st.none() | st.sampled_from(places)),
        speed=draw(st.none() | st.sampled_from((speed, "standard"))),
    )


_a_maximum = st.integers(0, 100)
limits = st.builds(Limit, measure=st.sampled_from(MEASURES), window=st.sampled_from(WINDOWS), maximum=_a_maximum)
policies = st.builds(
    BudgetPolicy,
    path=st.just("acme"),
    rev=st.just(1),
    limits=st.lists(limits, max_size=6, unique_by=lambda limit: (limit.measure, limit.window)).map(tuple),
    mode=st.sampled_from(("enforce", "observe")),
)
amounts = st.builds(
    Amounts, usd=st.integers(0, 60), requests=st.integers(0, 2), tokens=st.integers(0, 60), tool_calls=st.integers(0, 5)
)


@st.composite
def states(draw: st.DrawFn, now: datetime) -> BudgetState:
    """Draw a budget with counters of its limits, each near its maximum, and buckets in and out of the hour."""
    policy = draw(policies)
    counters: dict[str, int] = {}
    for limit in policy.limits:
        if limit.window == "request" or draw(st.booleans()):
            continue
        name = counter(limit.measure, limit.window, now)
        counters[name] = draw(st.integers(0, 120))
        if limit.window == "hour":
            ages = draw(st.lists(st.integers(0, 20), max_size=4, unique=True))
            for age in ages:
                share = draw(st.integers(0, counters[name]))
                counters[bucket(limit.measure, now - age * BUCKET)] = share
            # What is committed in the hour is never less than the settled buckets it is made of.
            settled = sum(counters[bucket(limit.measure, now - age * BUCKET)] for age in ages)
            counters[name] = max(counters[name], settled)
    reserved = draw(st.integers(0, 120))
    unknown = draw(st.integers(0, reserved))
    return replace(BudgetState(policy=policy), reserved=reserved, unknown=unknown, counters=counters)
