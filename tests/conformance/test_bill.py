"""The provider bills the worst that the protocol lets it mean; each rule of its docstring."""

import json
from typing import Any

import pytest

from spendgate.local.conformance.asked import OUTPUT_TOKENS_MAX, Unreadable, chat, document_of
from spendgate.local.conformance.bill import SEARCH_FEE, SEARCHES, Bill, Terms, bill
from spendgate.local.conformance.driver import MODEL, RATE, Model

MODELS = {MODEL: Model()}
TO_THE_CAP = Terms(to_the_cap=True)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}}


def _billed(terms: Terms, **fields: Any) -> Bill:
    return bill(chat({"model": MODEL, "messages": [{"role": "user", "content": "12345678"}], **fields}), terms, MODELS)


def test_a_call_is_its_messages_its_text_and_its_output() -> None:
    done = _billed(Terms(output_tokens=100), max_tokens=50)

    assert (done.input_tokens, done.output_tokens, done.amount) == (4 + 2, 50, 56 * RATE)


@pytest.mark.parametrize(
    "fields,output",
    [
        ({}, OUTPUT_TOKENS_MAX),
        ({"max_tokens": 10}, 10),
        ({"max_tokens": 10, "max_completion_tokens": 30}, 30),
        ({"max_tokens": -1}, OUTPUT_TOKENS_MAX),
        ({"max_tokens": True}, OUTPUT_TOKENS_MAX),
        ({"max_tokens": "10"}, OUTPUT_TOKENS_MAX),
        ({"max_tokens": 2**62}, OUTPUT_TOKENS_MAX),
        ({"max_tokens": 10, "n": 3}, 30),
    ],
)
def test_of_caps_the_larger_counts_and_one_that_cannot_be_read_is_none(fields: dict[str, Any], output: int) -> None:
    assert _billed(TO_THE_CAP, **fields).output_tokens == output


def test_dense_text_is_a_token_a_byte_wherever_it_stands() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    schema = len(json.dumps(tools))

    assert _billed(Terms(bytes_a_token=1), tools=tools, max_tokens=0).input_tokens == 4 + 8 + schema


def test_an_image_costs_by_the_piece_and_not_by_its_bytes() -> None:
    messages = [{"role": "user", "content": [IMAGE]}]

    assert _billed(Terms(), messages=messages).input_tokens == 4 + 1105


def test_the_tier_doubles_and_searches_cost_a_fee_each() -> None:
    plain = _billed(Terms(), max_tokens=50).amount

    assert _billed(Terms(), max_tokens=50, service_tier="priority").amount == 2 * plain
    assert _billed(Terms(), max_tokens=50, web_search_options={}).amount == plain + SEARCHES * SEARCH_FEE


def test_a_write_to_the_cache_is_beside_the_input_and_dearer() -> None:
    done = _billed(Terms(cached=True), max_tokens=0)

    assert (done.input_tokens, done.cache_write_tokens, done.amount) == (4, 2, 4 * RATE + 2 * (RATE * 5 // 4))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": []}', b"\xff"])
def test_what_has_no_work_in_it_is_not_answered(body: bytes) -> None:
    with pytest.raises(Unreadable):
        bill(chat(document_of(body)), Terms(), MODELS)
