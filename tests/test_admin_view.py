"""What operators see says everything: two things that differ never look alike in a plan."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spendgate.admin_configuration_view import price_view, provider_view
from spendgate.admin_view import policy_view, span_text
from spendgate.core.budget import BudgetPolicy, Limit, RunPolicy
from spendgate.core.price import PriceRow, RateCard, Rates, Tier
from spendgate.core.route import Framing, Provider
from spendgate.core.window import MEASURES, WINDOWS

START = datetime(2026, 1, 1, tzinfo=UTC)

counts = st.integers(0, 5)
limits = st.lists(
    st.builds(Limit, measure=st.sampled_from(MEASURES), window=st.sampled_from(WINDOWS), maximum=counts),
    max_size=4,
    unique_by=lambda limit: (limit.measure, limit.window),
).map(lambda found: tuple(sorted(found, key=lambda limit: (limit.measure, limit.window))))
runs = st.builds(
    RunPolicy,
    limits=limits,
    expire_after=st.none() | st.integers(1, 200).map(lambda minutes: timedelta(minutes=minutes)),
    stop_on_unknown=st.booleans(),
)
policies = st.builds(
    BudgetPolicy,
    path=st.just("acme"),
    rev=st.just(0),
    limits=limits,
    mode=st.sampled_from(["enforce", "observe"]),
    unbudgeted=st.booleans(),
    default_output_tokens=st.none() | st.integers(1, 3),
    failover=st.booleans(),
    runs=st.none() | runs,
    stop_on_unknown=st.booleans(),
    allow=st.lists(st.tuples(st.just("web_search"), counts), max_size=1).map(tuple),
    warn_at=st.none() | st.lists(st.integers(1, 2), max_size=2, unique=True).map(sorted).map(tuple),
)
rates = st.builds(
    Rates,
    input=counts,
    cache_read=counts,
    cache_write=counts,
    cache_write_long=counts,
    output=counts,
    audio_input=st.none() | counts,
    audio_output=st.none() | counts,
    image_input=st.none() | counts,
    image_output=st.none() | counts,
)
tiers = st.builds(Tier, above=st.integers(1, 3), rates=rates, inclusive=st.booleans())
cards = st.builds(RateCard, rates=rates, tiers=st.lists(tiers, max_size=2).map(tuple))
rows = st.builds(
    PriceRow,
    provider=st.just("p"),
    model=st.just("m"),
    valid_from=st.sampled_from([START, START + timedelta(days=1), START + timedelta(seconds=1)]),
    card=cards,
    service=st.lists(st.tuples(st.just("priority"), cards), max_size=1).map(tuple),
    factors=st.lists(st.tuples(st.sampled_from(["geo", "speed"]), st.just("us"), st.integers(1, 3)), max_size=1).map(
        tuple
    ),
    fees=st.lists(st.tuples(st.just("web_search"), counts), max_size=1).map(tuple),
    context_tokens=st.none() | st.integers(1, 3),
    output_tokens_max=st.none() | st.integers(1, 3),
    image_tokens_max=st.none() | st.integers(1, 3),
    aliases=st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True).map(tuple),
)
framings = st.builds(Framing, request=counts, tooling=counts, tool=counts, part=counts, output_overshoot=counts)
providers = st.builds(
    Provider,
    name=st.just("p"),
    dialect=st.sampled_from(["openai", "anthropic"]),
    base_url=st.sampled_from(["https://a", "https://b"]),
    secret=st.none() | st.just("env:KEY"),
    framing=st.just(Framing()) | framings,
    service_tier=st.none() | st.just("flex"),
    geo=st.none() | st.just("us"),
    speed=st.none() | st.just("fast"),
)


def differ_alike(view: Any, one: Any, other: Any) -> None:
    assert (view(one) == view(other)) == (one == other)


@given(one=policies, other=policies, data=st.data())
def test_policies_look_alike_only_if_they_are_the_same(
    one: BudgetPolicy, other: BudgetPolicy, data: st.DataObject
) -> None:
    name = data.draw(
        st.sampled_from(["limits", "mode", "unbudgeted", "default_output_tokens", "failover", "runs", "allow"])
    )

    differ_alike(policy_view, one, other)
    differ_alike(policy_view, one, replace(one, **{name: getattr(other, name)}))


@given(one=rows, other=rows, data=st.data())
def test_price_rows_look_alike_only_if_they_price_the_same(one: PriceRow, other: PriceRow, data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from(["valid_from", "card", "service", "factors", "fees", "image_tokens_max", "aliases"])
    )

    differ_alike(price_view, one, other)
    differ_alike(price_view, one, replace(one, **{name: getattr(other, name)}))


@given(one=providers, other=providers, data=st.data())
def test_providers_look_alike_only_if_they_are_the_same(one: Provider, other: Provider, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["dialect", "base_url", "secret", "framing", "service_tier", "geo", "speed"]))

    differ_alike(provider_view, one, other)
    differ_alike(provider_view, one, replace(one, **{name: getattr(other, name)}))


def test_where_a_price_was_read_is_no_difference() -> None:
    row = PriceRow(
        provider="p",
        model="m",
        valid_from=START,
        card=RateCard(rates=Rates(input=2_500_000, cache_read=1, cache_write=1, cache_write_long=1, output=10_000_000)),
    )

    assert price_view(row) == price_view(replace(row, source="a page", checked="2026-11-30"))
    assert (price_view(row)["input"], price_view(row)["output"]) == ("2.5", "10")


def test_a_length_of_time_is_written_as_the_file_writes_it() -> None:
    assert [span_text(timedelta(**span)) for span in ({"hours": 24}, {"minutes": 90}, {"seconds": 45})] == [
        "24h",
        "90m",
        "45s",
    ]
