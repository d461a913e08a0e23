"""The shipped prices say what the providers' pages said: the money of well-known models, dates, tiers and names."""

import re
from collections import Counter
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta

import pytest

from spendgate.catalogue_files import rows_of
from spendgate.core.money import rate_per_million, usd
from spendgate.core.price import PriceRow, RateCard, Rates
from spendgate.store.price_items import decode_row, row_text
from tests.catalogue.conftest import Find
from tests.catalogue.shipped import PRICES, PROVIDERS

# Models as providers' pages had them on 2026-11-29: USD per million tokens for input, cache read, short and long write,
# output (None: the provider has no write fee of its own), context, output cap.
KNOWN = [
    ("openai", "gpt-6-astra", "10", "1", "12.5", "25", "50", 1_050_000, 128_000),
    ("openai", "gpt-6.1-sol", "2", "0.1", "2.5", "5", "10", 1_050_000, 128_000),
    ("openai", "gpt-6.1-terra", "1", "0.05", "1.25", "2.5", "5", 1_050_000, 128_000),
    ("openai", "gpt-6-luna", "0.1", "0.01", "0.125", "0.25", "0.5", 1_050_000, 128_000),
    ("openai", "gpt-5.6-sol", "4", "0.4", "5", "10", "20", 1_050_000, 128_000),
    ("openai", "gpt-5.5", "5", "0.5", None, None, "30", 1_050_000, 128_000),
    ("openai", "gpt-5.5-pro", "30", None, None, None, "180", 1_050_000, 128_000),
    ("openai", "gpt-4o", "2.5", "1.25", None, None, "10", 128_000, 16_384),
    ("openai", "gpt-4o-mini", "0.15", "0.075", None, None, "0.6", 128_000, 16_384),
    ("anthropic", "claude-fable-5-2", "8", "0.2", "10", "16", "40", 1_000_000, 128_000),
    ("anthropic", "claude-fable-5-1", "10", "0.25", "12.5", "20", "50", 1_000_000, 128_000),
    ("anthropic", "claude-opus-5-5", "4", "0.2", "5", "8", "20", 1_000_000, 128_000),
    ("anthropic", "claude-opus-5", "5", "0.5", "6.25", "10", "25", 1_000_000, 128_000),
    ("anthropic", "claude-sonnet-5-5", "2", "0.1", "2.5", "4", "10", 1_000_000, 128_000),
    ("anthropic", "claude-haiku-5-5", "0.1", "0.01", "0.125", "0.2", "0.5", 1_000_000, 128_000),
    ("anthropic", "claude-haiku-4-5", "1", "0.1", "1.25", "2", "5", 200_000, 64_000),
    ("gemini", "gemini-4-argon", "2", "0.1", None, None, "10", 1_048_576, 1_048_576),
    ("gemini", "gemini-3.8-flash", "0.75", "0.075", None, None, "3.75", 1_048_576, 65_536),
    ("gemini", "gemini-3.1-pro-preview", "2", "0.2", None, None, "12", 1_048_576, 65_536),
    ("gemini", "gemini-2.5-pro", "1.25", "0.125", None, None, "10", 1_048_576, 65_536),
    ("xai", "grok-4.7", "2", "0.5", None, None, "6", 500_000, 500_000),
    ("deepseek", "deepseek-v4-pro", "1.32", "0.044", None, None, "3.96", 1_000_000, 393_216),
    ("mistral", "mistral-large-2512", "0.5", "0.05", None, None, "1.5", 262_144, 262_144),
]


@pytest.mark.parametrize(
    ("provider", "model", "fresh", "read", "short", "long", "out", "context", "cap"), KNOWN, ids=str
)
def test_a_well_known_model_costs_what_its_providers_page_says(
    find: Find,
    provider: str,
    model: str,
    fresh: str,
    read: str | None,
    short: str | None,
    long: str | None,
    out: str,
    context: int,
    cap: int,
) -> None:
    row = find(provider, model)

    rates = row.card.rates
    assert rates.input == rate_per_million(fresh)
    assert rates.cache_read == rate_per_million(read or fresh)
    assert rates.cache_write == rate_per_million(short or fresh)
    # Where nobody says what a long write costs, it is taken at twice the input.
    assert rates.cache_write_long == (rate_per_million(long) if long else 2 * rates.input)
    assert rates.output == rate_per_million(out)
    assert (row.context_tokens, row.output_tokens_max) == (context, cap)


DATED = [
    ("gemini", "gemini-4-argon", datetime(2026, 12, 1, tzinfo=UTC), ("2", "0.1", "10"), ("4", "0.2", "20")),
    ("gemini", "gemini-3.8-flash", datetime(2027, 1, 1, tzinfo=UTC), ("0.75", "0.075", "3.75"), ("1.5", "0.15", "7.5")),
    ("gemini", "gemini-3.6-flash", datetime(2027, 1, 1, tzinfo=UTC), ("0.75", "0.075", "3.75"), ("1.5", "0.15", "7.5")),
    ("openai", "gpt-5.6-sol", datetime(2026, 8, 21, tzinfo=UTC), ("5", "0.5", "30"), ("4", "0.4", "20")),
]


@pytest.mark.parametrize(("provider", "model", "change", "before", "after"), DATED, ids=str)
def test_a_dated_price_holds_from_its_instant_on_and_not_before(
    find: Find, provider: str, model: str, change: datetime, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    sides = [find(provider, model, change - timedelta(microseconds=1)), find(provider, model, change)]

    told = [(row.card.rates.input, row.card.rates.cache_read, row.card.rates.output) for row in sides]
    assert told == [tuple(map(rate_per_million, side)) for side in (before, after)]
    # What the facts say of today's service tiers is as much dearer as the model is.
    assert all(row.card_of("priority") is not None for row in sides)
    ratios = [row.card_of("priority").rates.output * 10 // row.card.rates.output for row in sides]  # type: ignore[union-attr]
    assert ratios[0] == ratios[1]


TIERS = [
    ("openai", "gpt-6-astra", 272_000, 272_001, ("10", "50"), ("20", "75")),
    ("openai", "gpt-5.5", 272_000, 272_001, ("5", "30"), ("10", "45")),
    ("openai", "gpt-6-cyber", 272_000, 272_001, ("20", "100"), ("40", "150")),
    ("anthropic", "claude-haiku-5-5", 100_000, 100_001, ("0.1", "0.5"), ("0.5", "2.5")),
    ("anthropic", "claude-sonnet-4-5", 200_000, 200_001, ("3", "15"), ("6", "22.5")),
    ("anthropic", "claude-sonnet-4-5-20250929", 200_000, 200_001, ("3", "15"), ("6", "22.5")),
    ("gemini", "gemini-2.5-pro", 200_000, 200_001, ("1.25", "10"), ("2.5", "15")),
    ("gemini", "gemini-3.1-pro-preview", 200_000, 200_001, ("2", "12"), ("4", "18")),
    ("xai", "grok-4.7", 199_999, 200_000, ("2", "6"), ("4", "12")),
]


@pytest.mark.parametrize(("provider", "model", "last", "first", "plain", "long"), TIERS, ids=str)
def test_a_long_context_costs_more_from_the_right_token_on(
    find: Find, provider: str, model: str, last: int, first: int, plain: tuple[str, str], long: tuple[str, str]
) -> None:
    card = find(provider, model).card

    for tokens, told in ((last, plain), (first, long)):
        rates = card.at(tokens)
        assert (rates.input, rates.output) == (rate_per_million(told[0]), rate_per_million(told[1]))


def test_openais_service_tiers_are_priced_by_model_and_not_by_one_factor(find: Find) -> None:
    told = {
        (model, tier): card.rates.input * 100 // find("openai", model).card.rates.input
        for model in ("gpt-6-astra", "gpt-5.5", "gpt-4o", "gpt-4o-mini")
        for tier in ("priority", "flex", "ultrafast")
        if (card := find("openai", model).card_of(tier)) is not None
    }

    assert told == {
        ("gpt-6-astra", "priority"): 200,
        ("gpt-6-astra", "flex"): 50,
        ("gpt-6-astra", "ultrafast"): 600,
        ("gpt-5.5", "priority"): 250,
        ("gpt-5.5", "flex"): 50,
        ("gpt-4o", "priority"): 170,
        ("gpt-4o-mini", "priority"): 166,
    }


def test_tiers_and_long_contexts_multiply(find: Find) -> None:
    card = find("openai", "gpt-6-astra").card_of("ultrafast")

    assert card is not None
    assert card.at(272_001).cache_write_long == rate_per_million("300")


def test_the_places_and_speeds_that_cost_more_are_known(find: Find) -> None:
    assert find("anthropic", "claude-fable-5-2").factor_of("geo", "us") == 1_100_000
    assert find("anthropic", "claude-fable-5-2").factor_of("speed", "fast") == 2_000_000
    assert find("anthropic", "claude-opus-5-5").factor_of("speed", "fast") == 2_000_000
    assert find("anthropic", "claude-haiku-4-5").factor_max("geo") == 1_000_000
    assert find("openai", "gpt-6-astra").factor_max("residency") == 1_100_000
    assert find("openai", "gpt-5.4").factor_max("residency") == 1_100_000
    assert find("openai", "gpt-4o").factor_max("residency") == 1_000_000


def test_searches_have_their_fees(find: Find) -> None:
    told = {
        (provider, model): dict(find(provider, model).fees)["web_search"]
        for provider, model in (
            ("anthropic", "claude-opus-5-5"),
            ("gemini", "gemini-2.5-pro"),
            ("gemini", "gemini-4-argon"),
            ("openai", "gpt-6-astra"),
            ("openai", "gpt-4o-mini"),
            ("xai", "grok-4.7"),
        )
    }

    assert list(told.values()) == [usd(text) for text in ("0.01", "0.035", "0.014", "0.01", "0.025", "0.005")]


@pytest.mark.parametrize(
    "name", ["gpt-6.2-astra", "gpt-6.2-sol", "grok-latest", "gemini", "grok", "claude", "deepseek-chat"]
)
def test_a_model_that_nobody_prices_is_absent(name: str) -> None:
    names = {one for row in ALL for one in (row.model, *row.aliases) if row.provider != "azure"}

    assert name not in names


@pytest.mark.parametrize("suffix", ["", ":batch"])
def test_a_reseller_passes_on_what_a_models_maker_has_announced(find: Find, suffix: str) -> None:
    change = datetime(2026, 12, 1, tzinfo=UTC)
    before, after = (
        find("openrouter", f"google/gemini-4-argon{suffix}", at) for at in (change - timedelta(microseconds=1), change)
    )

    assert after.card.rates.input == 2 * before.card.rates.input
    assert after.card.rates.output == 2 * before.card.rates.output


# -- what holds for every row ----------------------------------------------------------------------------------------

ALL = [row for provider in PROVIDERS for row in rows_of(PRICES / f"{provider}.yaml")]


def test_there_is_a_file_for_each_provider_and_no_other() -> None:
    assert sorted(file.stem for file in PRICES.glob("*")) == list(PROVIDERS)
    assert Counter(row.provider for row in ALL).keys() == set(PROVIDERS)


def test_every_row_is_the_same_after_the_store_had_it() -> None:
    assert [row.id for row in ALL if decode_row(row_text(row)) != row] == []


def test_every_row_says_where_and_when_it_was_read() -> None:
    assert [row.id for row in ALL if not row.source.startswith("https://")] == []
    assert {date.fromisoformat(row.checked) for row in ALL} == {date(2026, 11, 29)}


def test_no_two_rows_are_of_one_model_and_instant() -> None:
    assert [name for name, count in Counter(row.id for row in ALL).items() if count > 1] == []


def test_a_name_leads_to_one_model_of_its_provider() -> None:
    owners: dict[tuple[str, str], set[str]] = {}
    for row in ALL:
        for name in (row.model, *row.aliases):
            owners.setdefault((row.provider, name), set()).add(row.model)

    assert {name: models for name, models in owners.items() if len(models) > 1} == {}


def _cards(row: PriceRow) -> list[tuple[str, RateCard]]:
    return [("standard", row.card), *row.service]


def test_no_write_is_free_or_cheaper_by_its_longer_life() -> None:
    wrong = [
        (row.id, name)
        for row in ALL
        for name, card in _cards(row)
        for rates in card.reachable(10**9)
        if rates.input and (not rates.cache_write or rates.cache_write_long < rates.cache_write)
    ]

    assert wrong == []


def test_nothing_is_free_but_what_openrouter_calls_free() -> None:
    free = [row for row in ALL if not row.card.rates.input]

    assert [row.id for row in free if row.provider != "openrouter" or not row.model.endswith(":free")] == []
    assert [row.id for row in ALL if not row.card.rates.output and row.card.rates.input and not _embeds(row)] == []


def _embeds(row: PriceRow) -> bool:
    return any(
        word in name for name in (row.model, *row.aliases) for word in ("embed", "ada", "rerank", "bge", "gte", "e5")
    )


def test_no_rate_falls_as_the_context_grows() -> None:
    fallen = [
        (row.id, name)
        for row in ALL
        for name, card in _cards(row)
        for lower, higher in zip(
            (card.rates, *(tier.rates for tier in card.tiers)), [t.rates for t in card.tiers], strict=False
        )
        if any((getattr(higher, f.name) or 0) < (getattr(lower, f.name) or 0) for f in fields(Rates))
    ]

    assert fallen == []


def test_a_service_tier_has_the_thresholds_of_the_plain_price() -> None:
    lacking = [
        (row.id, name)
        for row in ALL
        for name, card in row.service
        if {tier.above for tier in row.card.tiers} - {tier.above for tier in card.tiers}
    ]

    assert lacking == []


def test_every_model_that_writes_unasked_has_the_price_of_it_wherever_it_is_sold() -> None:
    """OpenAI's from gpt-5.6 on: 1.25 times the input for 30 minutes, 2.5 times for 12 hours, in every tier."""
    sold = [row for row in ALL if re.search(r"(^|[/.])gpt-(5\.6|6)", row.model)]
    wrong = [
        (row.id, name)
        for row in sold
        for name, card in _cards(row)
        for rates in card.reachable(10**9)
        if 4 * rates.cache_write < 5 * rates.input or 2 * rates.cache_write_long < 5 * rates.input
    ]

    assert {row.provider for row in sold} >= {"openai", "azure", "bedrock", "openrouter"}
    assert wrong == []
    assert [
        row.id
        for row in sold
        if row.provider == "openai" and 2 * row.card.rates.cache_write_long != 5 * row.card.rates.input
    ] == []
