"""What providers say that an answer cost: exact, rounded up once, and never 0 where nobody said so."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.kind import KINDS
from spendgate.core.usage import UsageReport
from spendgate.dialects.charges import picodollars
from spendgate.dialects.openai_chat import DIALECT
from tests.dialects.builders import read_chat

COUNTS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(kind: str, **usage: Any) -> UsageReport:
    document = {"id": "gen-1", "model": "m", "choices": [], "usage": {**COUNTS, **usage}}
    return DIALECT.report(json.dumps(document).encode(), request(kind))


def request(kind: str, **changes: Any) -> Any:
    return replace(read_chat(**changes), kind=KINDS[kind])


@pytest.mark.parametrize(
    "usage, charge",
    [
        # OpenRouter's usage-accounting page: cost is what the account is charged.
        ({"cost": 0.95, "cost_details": {"upstream_inference_cost": None}}, 950_000_000_000),
        ({"cost": 0.00014, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.00014}}, 140_000_000),
        # With a key of one's own, the fee and the provider's charge.
        ({"cost": 0.95, "is_byok": True, "cost_details": {"upstream_inference_cost": 19}}, 19_950_000_000_000),
        ({"cost": 0.95, "cost_details": {"upstream_inference_cost": 19}}, 19_950_000_000_000),
        ({"cost": 0.95, "is_byok": True, "cost_details": {}}, None),
        ({"cost": 0.95, "is_byok": True}, None),
        ({"cost": 0}, 0),
        ({"cost": None}, None),
        ({}, None),
        ({"cost": "0.95"}, None),
        ({"cost": True}, None),
        ({"cost": -1}, None),
        ({"cost": 10**12}, None),
    ],
)
def test_openrouter_s_cost_is_the_charge_and_a_missing_one_is_none(usage: dict[str, Any], charge: int | None) -> None:
    assert whole("openrouter", **usage).charge == charge


@pytest.mark.parametrize(
    "ticks, charge", [(10**10, 10**12), (1, 100), (0, 0), (None, None), (-1, None), (1.5, None), ("1", None)]
)
def test_xai_s_ticks_are_ten_to_the_ten_a_dollar(ticks: Any, charge: int | None) -> None:
    assert whole("xai", cost_in_usd_ticks=ticks).charge == charge


@pytest.mark.parametrize("kind", ["compatible", "openai", "groq"])
def test_a_cost_that_another_kind_of_provider_names_is_no_charge(kind: str) -> None:
    assert whole(kind, cost=0.0, cost_in_usd_ticks=0).charge is None


def test_a_stream_s_charge_is_the_greatest_that_was_said() -> None:
    meter = DIALECT.meter(request("openrouter", stream=True))
    for cost in (0.1, 0.3, None, 0.2):
        meter.feed(
            b"data: " + json.dumps({"id": "g", "choices": [], "usage": {**COUNTS, "cost": cost}}).encode() + b"\n\n"
        )
    meter.feed(b"data: [DONE]\n\n")
    meter.end()
    assert meter.report().charge == 300_000_000_000


@given(st.decimals(min_value=0, max_value=10**9, allow_nan=False, allow_infinity=False, places=18))
def test_an_amount_is_rounded_up_to_the_next_picodollar_and_no_further(amount: Decimal) -> None:
    found = picodollars(amount)
    assert found is not None
    exact = amount.as_integer_ratio()
    assert found * exact[1] >= exact[0] * 10**12 > (found - 1) * exact[1]


@pytest.mark.parametrize("text", ["1e400", "NaN", "Infinity", "-0.1", "1e10"])
def test_what_is_no_amount_is_no_charge(text: str) -> None:
    assert picodollars(Decimal(text)) is None


def test_the_smallest_number_that_can_be_written_is_a_picodollar() -> None:
    assert picodollars(Decimal("1e-999999")) == 1


def test_groq_s_usage_in_its_own_field_counts() -> None:
    meter = DIALECT.meter(request("groq", stream=True))
    meter.feed(
        b"data: " + json.dumps({"id": "g", "choices": [{"index": 0}], "x_groq": {"usage": COUNTS}}).encode() + b"\n\n"
    )
    meter.feed(b"data: [DONE]\n\n")
    meter.end()
    usage = meter.report().usage
    assert usage is not None
    assert (usage.input_uncached, usage.output) == (10, 5)


def test_deepseek_s_hits_and_misses_are_the_prompt() -> None:
    document = {"usage": {"prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 4, "completion_tokens": 5}}
    usage = DIALECT.report(json.dumps(document).encode(), request("deepseek")).usage
    assert usage is not None
    assert (usage.cache_read, usage.input_uncached, usage.output) == (6, 4, 5)


def test_mistral_s_nulls_count_as_nothing() -> None:
    nulls: dict[str, Any] = {"prompt_audio_seconds": {}, "prompt_tokens_details": None, "num_cached_tokens": None}
    usage = whole("mistral", **nulls).usage
    assert usage is not None
    assert (usage.input_uncached, usage.output) == (10, 5)


@pytest.mark.parametrize(
    "kind, given, sent",
    [
        ("openai", {}, {"max_completion_tokens": 7}),
        ("azure", {}, {"max_completion_tokens": 7}),
        ("compatible", {}, {"max_tokens": 7}),
        ("mistral", {}, {"max_tokens": 7}),
        ("xai", {}, {"max_tokens": 7}),
        # The caller's own cap: under the name that the host is known to heed.
        ("compatible", {"max_completion_tokens": 5}, {"max_tokens": 5}),
        ("compatible", {"max_tokens": 5}, {"max_tokens": 5}),
        ("openai", {"max_tokens": 5}, {"max_tokens": 5}),
        ("openai", {"max_completion_tokens": 5}, {"max_completion_tokens": 5}),
    ],
)
def test_a_cap_goes_under_the_name_that_the_kind_knows(kind: str, given: dict[str, int], sent: dict[str, int]) -> None:
    body = json.loads(DIALECT.outgoing(request(kind, **given), "m", 7))
    assert {name: value for name, value in body.items() if name.startswith("max_")} == sent


@pytest.mark.parametrize("kind, asked", [("mistral", False), ("openai", True), ("compatible", True)])
def test_a_stream_is_asked_for_its_usage_unless_the_kind_refuses_to_be_asked(kind: str, asked: bool) -> None:
    body = json.loads(DIALECT.outgoing(request(kind, stream=True), "m", 7))
    assert ("stream_options" in body) is asked
