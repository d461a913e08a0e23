"""Faults seen in the open in other gateways, each as a test of what is right; the numbers are those of our list."""

import json
from dataclasses import replace
from typing import Any

import pytest

from spendgate.core.feature import granted
from spendgate.core.money import usd_text
from spendgate.core.price import Terms
from spendgate.core.price import cost as priced
from spendgate.core.usage import Usage, UsageReport
from spendgate.dialects import anthropic_messages, openai_chat
from spendgate.dialects.json_strict import parse_object
from spendgate.dialects.registry import DIALECTS
from spendgate.errors import OverBudget, Refused, RequestInvalid
from tests.builders import a_card, a_price_row, rates
from tests.dialects.builders import chunk, events, message_stream, named_events, read_chat, read_messages, run

OPENAI = openai_chat.DIALECT
ANTHROPIC = anthropic_messages.DIALECT
CHAT_STREAM = read_chat(stream=True)
MESSAGE_STREAM = read_messages(stream=True)


def cost(usage: Usage | None, *, uncached: int, read: int = 0, write: int = 0, output: int) -> int:
    """Price a usage at whole picodollars a token."""
    assert usage is not None
    return usage.input_uncached * uncached + usage.cache_read * read + usage.cache_write * write + usage.output * output


def chat_answer(usage: Any) -> UsageReport:
    return OPENAI.report(json.dumps({"id": "c", "usage": usage}).encode(), read_chat())


def test_a_cache_write_is_billed_once() -> None:
    """B01: Anthropic's input excludes the cache; 12304 written tokens cost 0.054399 and not 0.091311 USD."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 12304,
        "cache_read_input_tokens": 0,
        "output_tokens": 550,
    }
    request = read_messages(cache_control={"type": "ephemeral"})

    report = ANTHROPIC.report(json.dumps({"usage": usage}).encode(), request)

    assert cost(report.usage, uncached=3_000_000, write=3_750_000, output=15_000_000) == 54_399_000_000


def test_cache_reads_are_in_one_bucket_only() -> None:
    """B02: reads are never billed as input and as reads, by the shipped price or an operator's own."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": 12304, "output_tokens": 550}
    own = a_card(rates=rates(input=3_000_000, cache_read=300_000, output=15_000_000))

    report = ANTHROPIC.report(json.dumps({"usage": usage}).encode())

    assert report.usage == Usage(input_uncached=3, cache_read=12304, output=550)
    assert usd_text(priced(report.usage, a_price_row(card=own), Terms())) == "0.0119502"


def test_whether_input_contains_the_cache_is_decided_by_the_dialect_and_never_below_zero() -> None:
    """B05: 56322 exclusive input tokens and 72960 reads cost 0.064053 USD; a guess made it negative."""
    exclusive = {"input_tokens": 56322, "cache_read_input_tokens": 72960, "output_tokens": 87}
    inclusive = {"prompt_tokens": 56322, "completion_tokens": 87, "prompt_tokens_details": {"cached_tokens": 72960}}

    report = ANTHROPIC.report(json.dumps({"usage": exclusive}).encode())

    assert cost(report.usage, uncached=1_000_000, read=100_000, output=5_000_000) == 64_053_000_000
    # More of the input was read from the cache than there is: whose convention it is cannot be known, so it settles nothing.
    assert chat_answer(inclusive).problem == "usage_unusable"


def test_openais_cache_writes_are_inside_the_input() -> None:
    """B08: 2600 input tokens with 2000 read and 400 written leave 200 fresh, and the total stays 2600."""
    details = {"cached_tokens": 2000, "cache_write_tokens": 400}
    usage = chat_answer({"prompt_tokens": 2600, "completion_tokens": 1, "prompt_tokens_details": details}).usage

    assert usage == Usage(input_uncached=200, cache_read=2000, cache_write=400, output=1)
    assert usage.input_total == 2600


def test_any_openai_prompt_may_be_written_to_the_cache() -> None:
    """B08: the bound takes the write rate though the caller asked for nothing."""
    assert read_chat().facts.cache_write == "short"


@pytest.mark.parametrize("returned", ["qwen3.5-plus-20260216", "gpt-4"])
def test_the_model_that_the_answer_names_is_reported(returned: str) -> None:
    """B16: the answer may name another model than was asked for; settling by the reserved one needs to see it."""
    report = OPENAI.report(json.dumps({"model": returned, "usage": {}}).encode())

    assert report.model == returned


@pytest.mark.parametrize("field", ["customer", "team", "tags"])
def test_no_identity_is_read_from_a_body(field: str) -> None:
    """B32: a field that could name a budget is unknown here; metadata is the provider's and decides nothing."""
    with pytest.raises(Refused, match=field):
        read_chat(**{field: "acme"})

    assert read_chat(metadata={"team": "acme"}).facts == read_chat().facts


def test_usage_is_asked_for_though_the_caller_did_not() -> None:
    """B36: a stream without usage must not be a way around the budget."""
    document = json.loads(OPENAI.outgoing(CHAT_STREAM, "m", 5))

    assert document["stream_options"] == {"include_usage": True}


def test_a_stream_whose_usage_never_came_is_not_free() -> None:
    """B36: asked for and still absent, the money stays held."""
    report = run(OPENAI, CHAT_STREAM, [events(chunk(), done=True)])[2]

    assert (report.usage, report.problem) == (None, "usage_missing")


def test_cumulative_usage_counts_once() -> None:
    """B38: totals of 5, 9 and 14 in three chunks are 14 and not 28."""
    chunks = [chunk(usage={"prompt_tokens": 4, "completion_tokens": n, "total_tokens": 4 + n}) for n in (1, 5, 10)]

    usage = run(OPENAI, CHAT_STREAM, [events(*chunks, done=True)])[2].usage

    assert usage is not None
    assert usage.total == 14


@pytest.mark.parametrize(
    "dialect,request_read,stream,floor",
    [
        (
            OPENAI,
            CHAT_STREAM,
            events(chunk(usage={"prompt_tokens": 9, "completion_tokens": 1}), {"error": {"code": 429}}),
            Usage(input_uncached=9, output=1),
        ),
        (OPENAI, CHAT_STREAM, events(chunk()), None),
        (
            ANTHROPIC,
            MESSAGE_STREAM,
            message_stream(start={"input_tokens": 9, "output_tokens": 1}, delta={"output_tokens": 5}, stop=False)[:-40],
            Usage(input_uncached=9, output=1),
        ),
    ],
)
def test_a_stream_that_dies_half_way_is_neither_guessed_nor_free(
    dialect: Any, request_read: Any, stream: bytes, floor: Any
) -> None:
    """B41: nothing is settled, and what was seen is kept as a floor."""
    report = run(dialect, request_read, [stream])[2]

    assert (report.usage, report.finished, report.partial) == (None, False, floor)


def test_an_error_inside_a_successful_stream_is_passed_on_and_settles_nothing() -> None:
    """B42: message_start, deltas, then an error event: the usage so far is a floor."""
    begun = message_stream(start={"input_tokens": 9, "output_tokens": 1}, delta={"output_tokens": 5}, stop=False)
    error = named_events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})

    flowed, _, report = run(ANTHROPIC, MESSAGE_STREAM, [begun + error])

    assert flowed == begun + error
    assert (report.usage, report.finished, report.problem) == (None, False, "error_in_stream")
    assert report.partial == Usage(input_uncached=9, output=5)


def test_a_compressed_answer_that_nobody_asked_for_settles_nothing() -> None:
    """B44: what cannot be decoded keeps the money held."""
    gzip = b"\x1f\x8b\x08\x00" + b"\xff" * 50

    for dialect, request in ((OPENAI, CHAT_STREAM), (ANTHROPIC, MESSAGE_STREAM)):
        whole, streamed = dialect.report(gzip, request), run(dialect, request, [gzip])[2]
        assert (whole.usage, whole.partial, whole.finished, whole.problem) == (None, None, False, "answer_unreadable")
        assert (streamed.usage, streamed.partial, streamed.finished) == (None, None, False)


def test_a_compressed_request_is_refused() -> None:
    """B44: what is bounded is what is read."""
    with pytest.raises(RequestInvalid, match="compressed"):
        parse_object(b"\x1f\x8b\x08\x00", content_encoding="gzip")


@pytest.mark.parametrize(
    "odd", ["null", '"10"', "-5", "NaN", "1e400", "true", "Infinity", "[]", "{}", "9007199254740992", "0.5"]
)
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
def test_an_odd_count_holds_the_money_and_raises_nothing(odd: str, field: str) -> None:
    """B46: a count that is no whole number keeps the reservation; no exception may skip the settlement."""
    usage = '{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}'.replace(
        f'"{field}":{10 if field == "prompt_tokens" else 5}', f'"{field}":{odd}'
    )
    whole = f'{{"choices":[],"usage":{usage}}}'.encode()

    for report in (OPENAI.report(whole), run(OPENAI, CHAT_STREAM, [b"data: " + whole + b"\n\ndata: [DONE]\n\n"])[2]):
        assert report.usage is None
        assert report.problem in {"usage_unusable", "answer_unreadable", "frame_unreadable"}


@pytest.mark.parametrize("odd", ["null", '"10"', "-5", "NaN", "1e400", "true"])
def test_an_odd_count_of_anthropic_holds_the_money_too(odd: str) -> None:
    """B46: the same in the other dialect."""
    report = ANTHROPIC.report(f'{{"usage":{{"input_tokens":{odd},"output_tokens":5}}}}'.encode())

    assert report.usage is None
    assert report.problem in {"usage_unusable", "answer_unreadable"}


def test_a_count_written_as_an_integral_float_is_a_count() -> None:
    """B46: compatible servers send 512.0."""
    assert chat_answer({"prompt_tokens": 512.0, "completion_tokens": 5}).usage == Usage(input_uncached=512, output=5)


def test_a_missing_usage_is_held_and_not_zero() -> None:
    """B46: an answer that was paid for and says nothing is not free."""
    assert OPENAI.report(b'{"choices":[{}]}').problem == "usage_missing"
    assert ANTHROPIC.report(b'{"content":[]}').problem == "usage_missing"


def test_a_server_tool_that_ran_is_not_settled_without_its_fee() -> None:
    """B49: search requests in the usage are a fee that may not be dropped."""
    usage = {"input_tokens": 1, "output_tokens": 1, "server_tool_use": {"web_search_requests": 2}}

    report = ANTHROPIC.report(json.dumps({"usage": usage}).encode())

    assert (report.usage, report.problem) == (None, "usage_server_tools")


def test_a_server_tool_that_was_asked_for_is_settled_with_its_fee() -> None:
    """B49: each search is a fee of its own, merged like every other count; fetches cost their tokens only."""
    tools = [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 3},
    ]
    request = read_messages(tools=tools)
    used = {"web_search_requests": 2, "web_fetch_requests": 1}
    usage = {"input_tokens": 1, "output_tokens": 1, "server_tool_use": used}

    report = ANTHROPIC.report(json.dumps({"usage": usage}).encode(), request)
    odd = ANTHROPIC.report(
        json.dumps({"usage": usage | {"server_tool_use": {"web_search_requests": "2"}}}).encode(), request
    )
    other = ANTHROPIC.report(
        json.dumps({"usage": usage | {"server_tool_use": {"code_execution_requests": 1}}}).encode(), request
    )

    assert report.usage == Usage(input_uncached=1, output=1, fees=(("web_search", 2),))
    assert (odd.usage, odd.problem) == (None, "usage_unusable")
    assert (other.usage, other.problem) == (None, "usage_server_tools")


@pytest.mark.parametrize(("model", "pages"), [("gpt-4o-search-preview", 0), ("gpt-4o-mini-search-preview", 16_000)])
def test_searches_that_an_answer_does_not_count_are_settled_as_they_were_allowed(model: str, pages: int) -> None:
    """B49: chat's usage has no count of searches, so all that were allowed are billed, with the pages they read."""
    asked = read_chat(web_search_options={})
    request = replace(asked, facts=granted(asked.facts, {"web_search": 2}))
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    answer = {"model": model, "choices": [{}], "usage": usage}
    last = answer | {"choices": []}

    whole = OPENAI.report(json.dumps(answer).encode(), request)
    _, _, streamed = run(OPENAI, request, [events(last, done=True)])

    assert whole.usage == streamed.usage == Usage(input_uncached=5 + pages, output=1, fees=(("web_search", 2),))


def test_a_missing_completion_is_not_zero_where_there_is_output() -> None:
    """B53: only input-only routes may leave it out."""
    assert chat_answer({"prompt_tokens": 8, "total_tokens": 8}).problem == "usage_unusable"


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_refusal_tells_in_one_look_what_is_spent_held_and_asked(dialect: str) -> None:
    """B22, B58: a stable code and every amount by itself, in the shape of the caller's protocol."""
    document = json.dumps(DIALECTS[dialect].refusal(OverBudget("No."), "r"))

    for fact in ("over_budget", "retryable", "limit", "settled", "reserved", "unknown", "asked", "resets_at"):
        assert f'"{fact}"' in document
