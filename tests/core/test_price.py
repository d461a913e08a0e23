"""Prices: rows in force, tiers, factors, and the plain sum that a cost is."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.money import rate_per_million
from spendgate.core.price import (
    FACTOR_ONE,
    STANDARD_TIER_NAMES,
    Rates,
    Terms,
    Tier,
    cost,
    row_in_force,
    rows_touching,
    scaled,
)
from spendgate.core.usage import Usage
from tests.builders import NOW, USD, a_card, a_price_row, rates
from tests.strategies import instants, price_rows
from tests.strategies import rates as any_rates

SUM_OF_PARTS = st.builds(
    Usage,
    input_uncached=st.integers(0, 10**6),
    cache_read=st.integers(0, 10**6),
    cache_write=st.integers(0, 10**6),
    cache_write_long=st.integers(0, 10**6),
    output=st.integers(0, 10**6),
)


@given(any_rates, SUM_OF_PARTS)
def test_a_cost_is_the_sum_of_each_bucket_at_its_rate(by: Rates, usage: Usage) -> None:
    assert cost(usage, a_price_row(card=a_card(rates=by)), Terms()) == (
        usage.input_uncached * by.input
        + usage.cache_read * by.cache_read
        + usage.cache_write * by.cache_write
        + usage.cache_write_long * by.cache_write_long
        + usage.output * by.output
    )


def test_every_modality_and_fee_has_its_rate() -> None:
    row = a_price_row(
        card=a_card(rates=rates(audio_input=3, audio_output=5, image_input=7, image_output=11)),
        fees=(("web_search", 13), ("file_search", 17)),
    )
    usage = Usage(audio_input=1, audio_output=2, image_input=3, image_output=4, fees=(("web_search", 2),))

    assert cost(usage, row, Terms()) == 3 + 10 + 21 + 44 + 26


def test_an_image_without_a_rate_of_its_own_costs_what_text_does() -> None:
    assert cost(Usage(image_input=3), a_price_row(), Terms()) == 3 * 2_500_000


@pytest.mark.parametrize(
    ("usage", "what"),
    [
        (Usage(audio_input=1), "audio_input"),
        (Usage(audio_output=1), "audio_output"),
        (Usage(image_output=1), "image_output"),
        (Usage(fees=(("web_search", 1),)), "web_search"),
    ],
)
def test_what_has_no_rate_is_an_error_and_not_free(usage: Usage, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        cost(usage, a_price_row(), Terms())


def test_a_service_tier_that_the_row_does_not_know_has_no_cost() -> None:
    with pytest.raises(ValueError, match="no rates for service tier 'priority'"):
        cost(Usage(), a_price_row(), Terms(service_tier="priority"))


@pytest.mark.parametrize("name", sorted(STANDARD_TIER_NAMES))
def test_the_standard_tier_has_many_names(name: str) -> None:
    row = a_price_row()

    assert row.card_of(name) == row.card


def test_a_tier_prices_the_whole_request_once_its_input_is_above() -> None:
    long = rates(input=5_000_000, output=15_000_000)
    row = a_price_row(card=a_card(tiers=(Tier(above=1000, rates=long),)))

    assert cost(Usage(input_uncached=1000), row, Terms()) == 1000 * 2_500_000
    assert (
        cost(Usage(input_uncached=1, cache_read=1000, output=1), row, Terms())
        == 5_000_000 + 1000 * 1_250_000 + 15_000_000
    )


def test_an_inclusive_tier_begins_at_its_threshold() -> None:
    card = a_card(tiers=(Tier(above=1000, inclusive=True, rates=rates(input=1)),))

    assert [card.at(tokens).input for tokens in (999, 1000, 1001)] == [2_500_000, 1, 1]


@given(st.data())
def test_the_rates_of_a_request_are_reachable_by_any_larger_one(data: st.DataObject) -> None:
    card = data.draw(price_rows(valid_from=NOW)).card
    tokens, more = sorted(data.draw(st.tuples(st.integers(0, 8000), st.integers(0, 8000))))

    assert card.at(tokens) in card.reachable(more)
    assert set(card.reachable(tokens)) <= set(card.reachable(more))


@given(st.integers(0, 10**9), st.lists(st.integers(1, 6 * FACTOR_ONE), max_size=3))
def test_a_factor_rounds_a_rate_up_and_never_by_a_picodollar_or_more(rate: int, factors: list[int]) -> None:
    expected = rate
    for factor in factors:
        exact, remainder = divmod(expected * factor, FACTOR_ONE)
        expected = exact + (remainder > 0)

    assert scaled(rate, Terms(factors=tuple(("geo", factor) for factor in factors))) == expected


def test_a_factor_is_found_by_kind_and_value_and_the_greatest_is_at_least_one() -> None:
    row = a_price_row(factors=(("geo", "us", 1_100_000), ("speed", "fast", 2_000_000), ("residency", "eu", 900_000)))

    assert row.factor_of("geo", "us") == 1_100_000
    assert row.factor_of("geo", "fast") is None
    assert (row.factor_max("geo"), row.factor_max("residency"), row.factor_max("nothing")) == (
        1_100_000,
        FACTOR_ONE,
        FACTOR_ONE,
    )


@given(st.lists(instants, max_size=6, unique=True), instants, st.integers(0, 10**6))
def test_the_rows_that_touch_a_call_are_those_in_force_at_any_instant_of_it(
    starts: list[datetime], start: datetime, seconds: int
) -> None:
    rows = [a_price_row(valid_from=at) for at in starts]
    end = start + timedelta(seconds=seconds)

    touching = rows_touching(rows, start, end)

    moments = [start, end, *(at for at in starts if start <= at <= end)]
    in_force = {row.valid_from for at in moments if (row := row_in_force(rows, at)) is not None}
    assert {row.valid_from for row in touching} == in_force
    assert list(touching) == sorted(touching, key=lambda row: row.valid_from)


def test_no_row_is_in_force_before_the_first() -> None:
    row = a_price_row(valid_from=NOW)

    assert row_in_force([row], NOW - timedelta(microseconds=1)) is None
    assert row_in_force([row], NOW) == row
    assert rows_touching([row], NOW - timedelta(hours=1), NOW - timedelta(seconds=1)) == ()


def test_a_row_is_named_by_provider_model_and_instant() -> None:
    assert a_price_row(valid_from=NOW).id == "demo#demo-model#2026-11-29T23:14:30Z"


def test_a_million_tokens_at_a_published_rate_cost_what_is_published() -> None:
    row = a_price_row(card=a_card(rates=rates(input=rate_per_million("2.50"), output=rate_per_million("10"))))

    assert cost(Usage(input_uncached=10**6, output=10**6), row, Terms()) == 12 * USD + USD // 2
