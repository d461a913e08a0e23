"""No bill is above the bound: requests of every dialect against a provider that bills the worst it may.

The long run is ``make fuzz``; here each dialect has a few hundred cases, the same at every run.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import spendgate.core.bound
import spendgate.dialects.measure
from spendgate.core.feature import loop_of
from spendgate.core.price import PriceRow, RateCard
from spendgate.core.request import Demand, RequestFacts
from spendgate.dialects import anthropic_messages, gemini_embeddings, openai_chat, openai_responses_measure
from tests.fuzz import answers, bill, prices, reading, reading_openai, reading_others, requests, requests_served, values
from tests.fuzz.__main__ import smallest
from tests.fuzz.case import drawn, run
from tests.fuzz.requests import Ask
from tests.fuzz.requests_served import DRAWN
from tests.fuzz.tally import batch

CASES = 250
SEED = 3


@pytest.mark.parametrize("dialect", DRAWN)
def test_no_bill_is_above_the_bound_and_none_is_settled_for_less_or_more(dialect: str) -> None:
    _, tally = batch((dialect, SEED, 0, CASES))

    assert tally.wrong == []
    # A generator whose requests are refused, or a bound far above all bills, would prove nothing.
    assert tally.refused < CASES // 2
    assert 0.9 < tally.ratio <= 1


@pytest.mark.parametrize(
    "module",
    [answers, bill, prices, reading, reading_openai, reading_others, requests, requests_served, values],
    ids=lambda m: m.__name__,
)
def test_the_adversary_knows_nothing_of_the_product(module: Any) -> None:
    imported = [
        node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = [getattr(node, "module", None) or node.names[0].name for node in imported]

    assert [name for name in names if name.startswith("spendgate")] == []


Mutate = Callable[[pytest.MonkeyPatch], None]


def _without_normalisation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(openai_chat, "text_bytes", lambda text: len(text.encode()))


def _json_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spendgate.core.intake, "JSON_FACTOR", 1)


def _facts_without(**changes: Any) -> Mutate:
    def mutate(patch: pytest.MonkeyPatch) -> None:
        for dialect in (openai_chat, anthropic_messages):
            patch.setattr(dialect, "RequestFacts", lambda **facts: RequestFacts(**(facts | changes)))

    return mutate


def _exclusive_thresholds(patch: pytest.MonkeyPatch) -> None:
    def reachable(card: RateCard, most: int) -> tuple[Any, ...]:
        return (card.rates, *(tier.rates for tier in card.tiers if most > tier.above))

    patch.setattr(RateCard, "reachable", reachable)


def _only_the_last_threshold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RateCard, "reachable", lambda card, most: (card.at(most),))


def _no_overshoot(patch: pytest.MonkeyPatch) -> None:
    output_max = spendgate.core.bound._output_max
    patch.setattr(spendgate.core.bound, "_output_max", lambda offer, cap: output_max(offer, cap) - 16)


def _plain_tier_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spendgate.core.bound, "_cards_assumed", lambda _facts, _provider, row: (("standard", row.card),))


def _no_growth_of_schemas(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(openai_chat, "schema_growth", lambda _schema, *, place: 0)
    patch.setattr(openai_chat, "json_bytes", lambda value: spendgate.dialects.measure.json_bytes(value) // 2)


def _first_row_only(patch: pytest.MonkeyPatch) -> None:
    bound_of = spendgate.core.bound._bound_of

    def of_the_first(facts: RequestFacts, offer: Any, cap: int) -> Any:
        return bound_of(
            facts,
            spendgate.core.bound.Offer(candidate=offer.candidate, provider=offer.provider, rows=offer.rows[:1]),
            cap,
        )

    patch.setattr(spendgate.core.bound, "_bound_of", of_the_first)


def _no_factors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PriceRow, "factor_max", lambda _row, _kind: 1_000_000)


def _no_hidden_thinking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spendgate.core.intake, "_hidden", lambda *_: 0)


def _each_tool_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spendgate.core.intake, "loop_of", lambda facts: replace(loop_of(facts), turns=1))


def _no_fees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spendgate.core.bound, "fees_bound", lambda _facts, _row: 0)


def _one_fee_a_use(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(openai_responses_measure, "Demand", lambda **said: Demand(**(said | {"fees_each": 1})))


def _nothing_unseen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(openai_responses_measure, "SEARCH_TOKENS", 0)


def _summaries_within_the_cap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spendgate.core.bound, "uncapped_output", lambda *_, overshoot: 0 * overshoot)


def _no_images_under_an_address(patch: pytest.MonkeyPatch) -> None:
    of_media = spendgate.core.intake.rates_of_media
    patch.setattr(
        spendgate.core.bound, "rates_of_media", lambda facts, rates: of_media(replace(facts, demands=()), rates)
    )


def _one_context_for_all_inputs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gemini_embeddings, "RequestFacts", lambda **facts: RequestFacts(**(facts | {"inputs": 1})))


@pytest.mark.parametrize(
    ("mutate", "dialect"),
    [
        (_without_normalisation, "openai"),
        (_json_once, "openai"),
        (_facts_without(choices=1), "openai"),
        (_facts_without(parts=0), "openai"),
        (_facts_without(media=()), "openai"),
        (_facts_without(cache_write="none"), "openai"),
        (_facts_without(cache_write="short"), "anthropic"),
        (_facts_without(demands=()), "anthropic"),
        (_facts_without(speed=None), "anthropic"),
        (_exclusive_thresholds, "openai"),
        (_only_the_last_threshold, "openai"),
        (_no_overshoot, "openai"),
        (_plain_tier_only, "openai"),
        (_no_growth_of_schemas, "openai"),
        (_first_row_only, "openai"),
        (_no_factors, "openai"),
        (_no_hidden_thinking, "anthropic"),
        (_each_tool_once, "openai-responses-served"),
        (_each_tool_once, "anthropic-served"),
        (_each_tool_once, "gemini-served"),
        (_no_fees, "openai-responses-served"),
        (_no_fees, "gemini-served"),
        (_one_fee_a_use, "openai-responses-served"),
        (_nothing_unseen, "openai-responses-served"),
        (_summaries_within_the_cap, "anthropic-served"),
        (_no_images_under_an_address, "gemini-served"),
        (_one_context_for_all_inputs, "gemini-embeddings"),
    ],
)
def test_a_bound_that_forgets_something_is_found_out(
    monkeypatch: pytest.MonkeyPatch, mutate: Mutate, dialect: str
) -> None:
    mutate(monkeypatch)

    found = (number for number in range(1500) if run(drawn(dialect, f"{SEED}/{number}"), f"{SEED}/{number}").wrong)

    assert next(found, None) is not None


def test_what_nobody_can_bound_is_found_out_where_it_is_admitted_or_refused_for_something_else() -> None:
    asks = [drawn("anthropic-served", f"{SEED}/{number}") for number in range(100)]
    named = next(ask for ask in asks if ask.refused)
    plain = Ask(
        "openai", "gpt-4o", {"model": "gpt-4o", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]}
    )

    assert run(named, "1").wrong is None
    assert run(replace(named, refused="another"), "1").wrong == "it was refused without another"
    assert run(replace(plain, refused="content"), "1").wrong == "it was admitted, and nothing bounds its content"


def test_what_goes_wrong_is_made_smaller_until_only_the_cause_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spendgate.core.intake, "JSON_FACTOR", 0)
    number = next(n for n in range(1500) if run(drawn("anthropic", f"{SEED}/{n}"), f"{SEED}/{n}").wrong)
    whole = drawn("anthropic", f"{SEED}/{number}")

    least, outcome = smallest(whole, f"{SEED}/{number}", tries_max=150)

    assert outcome.wrong is not None
    assert len(str(least.body)) < len(str(whole.body))
