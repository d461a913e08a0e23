"""What a response used: rules of arithmetic, whole and streamed, however it ended."""

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.kind import KINDS
from spendgate.core.money import usd, usd_text
from spendgate.core.price import Terms, cost
from spendgate.core.usage import BUCKETS, COUNT_MAX, Usage, UsageReport
from spendgate.dialects.dialect import Request
from spendgate.dialects.openai_responses import DIALECT
from tests.builders import a_price_row
from tests.dialects.builders import named_events, run
from tests.dialects.test_json_strict import json_values
from tests.dialects.test_openai_responses import read
from tests.dialects.test_sse import split

STREAM = read(stream=True)
LONG = read(prompt_cache_options={"ttl": "12h"})
FINAL = ("completed", "incomplete", "failed", "cancelled")
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
FILE_SEARCH = {"type": "file_search_call", "id": "fs_1", "status": "completed"}


def plain(prompt: int, output: int, **changes: Any) -> dict[str, Any]:
    return {"input_tokens": prompt, "output_tokens": output, "total_tokens": prompt + output} | changes


def response(usage: Any, status: str = "completed", **changes: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x",
        "status": status,
        "error": None,
        "output": [],
        "service_tier": "default",
        "usage": usage,
    } | changes


def answer(usage: Any, status: str = "completed", **changes: Any) -> UsageReport:
    return DIALECT.report(json.dumps(response(usage, status, **changes)).encode(), read())


def event(status: str, usage: Any, **changes: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": response(usage, status, **changes)}


def delta(text: str = "hi") -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "delta": text}


CREATED = event("in_progress", None, service_tier="auto") | {"type": "response.created"}


def streamed(*documents: dict[str, Any]) -> UsageReport:
    report: UsageReport = run(DIALECT, STREAM, [named_events(*documents)])[2]
    return report


def test_a_plain_answer_is_input_and_output() -> None:
    report = answer(plain(10, 5), service_tier="priority")

    assert report.usage == Usage(input_uncached=10, output=5)
    assert report.finished
    assert (report.problem, report.partial) == (None, None)
    assert (report.response_id, report.model, report.service_tier) == ("resp_1", "gpt-x", "priority")


def test_cache_writes_are_inside_the_input_and_split_by_lifetime() -> None:
    """B08: the total stays 2600, of which 2000 were read and 400 written."""
    details = {"cached_tokens": 2000, "cache_write_tokens": 400}
    split_details = details | {"cache_write_tokens_details": {"ttl_30m_tokens": 300, "ttl_12h_tokens": 100}}

    assert answer(plain(2600, 5, input_tokens_details=details)).usage == Usage(
        input_uncached=200, cache_read=2000, cache_write=400, output=5
    )
    assert answer(plain(2600, 5, input_tokens_details=split_details)).usage == Usage(
        input_uncached=200, cache_read=2000, cache_write=300, cache_write_long=100, output=5
    )


def test_writes_whose_lifetime_is_not_told_are_of_the_longest_that_was_asked_for() -> None:
    def used(details: dict[str, Any]) -> Usage | None:
        body = response(plain(100, 0, input_tokens_details={"cache_write_tokens": 40} | details))
        return DIALECT.report(json.dumps(body).encode(), LONG).usage

    assert used({}) == Usage(input_uncached=60, cache_write_long=40)
    assert used({"cache_write_tokens_details": {"ttl_30m_tokens": 10}}) == Usage(
        input_uncached=60, cache_write=10, cache_write_long=30
    )


def test_a_split_that_says_more_than_its_sum_is_believed_as_far_as_the_input_goes() -> None:
    split_only = {"cache_write_tokens_details": {"ttl_30m_tokens": 30, "ttl_12h_tokens": 50}}

    assert answer(plain(100, 0, input_tokens_details=split_only)).usage == Usage(
        input_uncached=20, cache_write=30, cache_write_long=50
    )
    assert answer(plain(60, 0, input_tokens_details=split_only)).usage == Usage(cache_write=10, cache_write_long=50)


def test_reasoning_is_inside_the_output_and_what_the_total_has_beside_is_output() -> None:
    assert answer(plain(10, 50, output_tokens_details={"reasoning_tokens": 40})).usage == Usage(
        input_uncached=10, output=50
    )
    assert answer(plain(10, 5, total_tokens=100)).usage == Usage(input_uncached=10, output=90)


@pytest.mark.parametrize("status", FINAL)
def test_a_response_is_billed_by_its_usage_however_it_ended(status: str) -> None:
    """B39: completed, incomplete, failed and cancelled alike, whole and streamed."""
    details = {"incomplete_details": {"reason": "max_output_tokens"}, "error": {"code": "server_error"}}
    whole = answer(plain(20, 60), status, **details)
    stream = streamed(CREATED, delta(), event(status, plain(20, 60), **details))

    assert whole == stream
    assert whole.usage == Usage(input_uncached=20, output=60)
    assert whole.finished


@pytest.mark.parametrize("status", FINAL)
def test_a_response_without_usage_is_not_a_free_one(status: str) -> None:
    """B39: none of the totals seen keeps the money held."""
    for report in (answer(None, status), streamed(CREATED, event(status, None))):
        assert (report.usage, report.problem, report.finished) == (None, "usage_missing", True)


@pytest.mark.parametrize("status", ["queued", "in_progress", "new", "", None, 5])
def test_a_response_that_goes_on_is_not_settled(status: Any) -> None:
    report = answer(plain(20, 60), status)

    assert (report.usage, report.problem, report.finished) == (None, "response_unfinished", False)
    assert report.partial == Usage(input_uncached=20, output=60)
    assert report.response_id == "resp_1"


def test_an_error_in_place_of_a_response_is_no_settlement() -> None:
    report = DIALECT.report(b'{"error":{"message":"x"}}')

    assert (report.usage, report.problem, report.finished) == (None, "error_in_answer", False)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"usage":NaN}'])
def test_an_answer_that_is_no_object_is_unreadable(body: bytes) -> None:
    report = DIALECT.report(body)

    assert (report.usage, report.problem, report.finished) == (None, "answer_unreadable", False)


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 5},
        {"output_tokens": 5},
        {},
        [],
        "5",
        False,
        plain(5, 5, input_tokens_details=[]),
        plain(5, 5, input_tokens_details={"cache_write_tokens_details": 5}),
        plain(5, 5, input_tokens_details={"cached_tokens": "5"}),
        plain(5, 5, output_tokens_details={"reasoning_tokens": -1}),
        plain(5, 5, total_tokens="10"),
    ],
)
def test_a_missing_total_or_an_odd_count_is_unusable(usage: Any) -> None:
    report = answer(usage)

    assert (report.usage, report.problem) == (None, "usage_unusable")
    assert report.partial is not None


def test_the_server_s_searches_are_counted_once_and_held_since_nothing_bounded_them() -> None:
    """B49: two searches on the web and one in files, of which the usage says nothing."""
    output = [SEARCH, {"type": "message"}, SEARCH, FILE_SEARCH]
    told = {"web_search": {"num_requests": 2}, "image_gen": {"input_tokens": 0, "output_tokens": 0}}
    items = [
        {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(output)
    ]
    whole = answer(plain(10, 5), output=output, tool_usage=told)
    stream = streamed(CREATED, *items, event("completed", plain(10, 5), output=output, tool_usage=told))

    assert whole == stream
    assert (whole.usage, whole.problem, whole.finished) == (None, "server_tool_used", True)
    assert whole.partial == Usage(input_uncached=10, output=5, fees=(("file_search", 1), ("web_search", 2)))


SEARCHING = read(tools=[{"type": "web_search"}, {"type": "file_search", "vector_store_ids": ["v"]}])
IMAGES = read(tools=[{"type": "web_search", "search_content_types": ["image"]}])
PAGE = SEARCH | {"action": {"type": "open_page", "url": "u"}}
LOOKED = SEARCH | {"action": {"type": "find_in_page", "pattern": "p", "url": "u"}}
ASKED = SEARCH | {"action": {"type": "search", "query": "q"}}


def searched(request: Request, output: list[Any], told: int | None = None, model: str = "gpt-x") -> UsageReport:
    """Return the report of an answer, which is the same whole and as a stream whose items come twice."""
    usage: Any = None if told is None else {"web_search": {"num_requests": told}, "image_gen": {"input_tokens": 0}}
    final = {"output": output, "tool_usage": usage, "model": model}
    whole = DIALECT.report(json.dumps(response(plain(10, 5), **final)).encode(), request)
    items = [
        {"type": f"response.output_item.{what}", "output_index": index, "item": shown}
        for index, item in enumerate(output)
        for what, shown in (("added", {name: item[name] for name in ("type", "id")}), ("done", item))
    ]
    stream: UsageReport = run(
        DIALECT, request, [named_events(CREATED, *items, event("completed", plain(10, 5), **final))]
    )[2]
    assert stream == whole
    return whole


@pytest.mark.parametrize(
    "output,told,searches,files",
    [
        ([ASKED, PAGE, LOOKED, ASKED], None, 2, 0),
        ([ASKED, ASKED], 3, 3, 0),
        ([ASKED, ASKED], 1, 2, 0),
        # What nobody says anything of was a search.
        ([SEARCH, SEARCH | {"action": {"type": "new"}}, SEARCH | {"action": 5}], None, 3, 0),
        ([FILE_SEARCH, ASKED], 1, 1, 1),
        ([PAGE], 0, 0, 0),
        ([], 2, 2, 0),
    ],
)
def test_searches_that_were_allowed_are_settled_by_what_is_shown_or_told_whichever_is_more(
    output: list[Any], told: int | None, searches: int, files: int
) -> None:
    """B49: opening a page that was found is no search."""
    report = searched(SEARCHING, output, told)

    fees = tuple((kind, count) for kind, count in (("file_search", files), ("web_search", searches)) if count)
    assert (report.usage, report.problem) == (Usage(input_uncached=10, output=5, fees=fees), None)


def test_two_searches_and_one_in_files_cost_their_fees_beside_the_tokens() -> None:
    """B49: at 0.01 and 0.0025 USD a call, and 10 and 5 tokens at 2.50 and 10 a million, 0.022575 USD."""
    fees = (("file_search", usd("0.0025")), ("web_search", usd("0.01")))

    report = searched(SEARCHING, [ASKED, FILE_SEARCH, ASKED], 2)

    assert report.usage is not None
    assert usd_text(cost(report.usage, a_price_row(fees=fees), Terms())) == "0.022575"


def test_a_search_that_may_be_for_images_too_counts_twice_where_nobody_tells_how_often_it_was() -> None:
    untold, told = searched(IMAGES, [ASKED]), searched(IMAGES, [ASKED], 1)

    assert untold.usage is not None
    assert told.usage is not None
    assert (untold.usage.fees, told.usage.fees) == ((("web_search", 2),), (("web_search", 1),))


def test_at_the_models_that_bill_a_fixed_block_for_a_search_it_is_added_to_what_the_usage_shows() -> None:
    report = searched(SEARCHING, [ASKED, PAGE], 1, "gpt-4.1-mini-2025-04-14")

    assert report.usage == Usage(input_uncached=10 + 8_000, output=5, fees=(("web_search", 1),))


def test_a_tool_that_nobody_asked_for_holds_the_money_beside_one_that_was_allowed() -> None:
    only_files = read(tools=[{"type": "file_search", "vector_store_ids": ["v"]}])

    assert searched(only_files, [ASKED]).problem == "server_tool_used"
    assert searched(only_files, [], 1).problem == "server_tool_used"
    assert searched(SEARCHING, [{"type": "mcp_call", "id": "m"}]).problem == "server_tool_used"


@pytest.mark.parametrize(
    "changes",
    [
        {"tool_usage": {"web_search": {"num_requests": 1}}},
        {"tool_usage": {"web_search": {"num_requests": "1"}}},
        {"tool_usage": {"web_search": 1}},
        {"tool_usage": {"image_gen": {"output_tokens": 5}}},
        {"tool_usage": {"new": [1]}},
        {"tool_usage": []},
        {"output": [{"type": "code_interpreter_call"}]},
        {"output": [{"type": "mcp_list_tools"}]},
        {"output": [{"type": "compaction"}]},
        {"output": [{}]},
        {"output": ["x"]},
        {"output": 5},
    ],
)
def test_anything_that_a_server_did_beside_the_tokens_holds_the_money(changes: dict[str, Any]) -> None:
    """B49: the usage of tokens is not the whole bill."""
    assert answer(plain(10, 5), **changes).problem == "server_tool_used"


def test_what_the_caller_s_own_tools_are_asked_is_paid_with_tokens() -> None:
    output = [{"type": kind} for kind in ("reasoning", "message", "function_call", "custom_tool_call")]

    assert answer(plain(10, 5), output=output, tool_usage={"web_search": {"num_requests": 0}}).problem is None


def test_every_event_flows_at_once_but_the_last_which_waits_for_the_settlement() -> None:
    before, last = named_events(CREATED, delta("a"), delta("b")), named_events(event("completed", plain(10, 5)))
    meter = DIALECT.meter(STREAM)

    assert meter.feed(before) == before
    assert meter.report().response_id == "resp_1"
    assert (meter.report().problem, meter.report().finished) == ("stream_unfinished", False)
    assert meter.feed(last) == b""
    assert meter.feed(b"data: [DONE]\n\n") == b""
    assert meter.end() == last + b"data: [DONE]\n\n"
    assert meter.report().usage == Usage(input_uncached=10, output=5)
    assert meter.report().service_tier == "default"


def test_a_stream_that_only_ends_is_not_finished() -> None:
    for documents in ((CREATED, delta()), (CREATED, event("queued", plain(1, 1)))):
        report = run(DIALECT, STREAM, [named_events(*documents) + b"data: [DONE]\n\n"])[2]

        assert (report.usage, report.finished, report.problem) == (None, False, "stream_unfinished")
        assert report.response_id == "resp_1"


@pytest.mark.parametrize(
    "error",
    [
        b'event: error\ndata: {"type":"error","code":"server_error","message":"x","param":null}\n\n',
        b'event: error\ndata: {"message":"x"}\n\n',
        b'data: {"error":{"message":"x"}}\n\n',
    ],
)
def test_an_error_that_ends_a_stream_flows_and_holds_the_money(error: bytes) -> None:
    flowed, _, report = run(DIALECT, STREAM, [named_events(CREATED, delta()) + error])

    assert flowed.endswith(error)
    assert (report.usage, report.finished, report.problem) == (None, False, "error_in_stream")


def test_a_response_that_says_its_usage_after_an_error_is_billed_by_it() -> None:
    """B39: a failed response has a bill of its own."""
    error = {"type": "error", "code": "server_error", "message": "x"}

    assert streamed(CREATED, error, event("failed", plain(10, 5))).usage == Usage(input_uncached=10, output=5)


@pytest.mark.parametrize("data", [b"{", b"[]", b"null", b"\xff", b'{"response":{"usage":{"output_tokens":NaN}}}'])
def test_a_frame_that_cannot_be_read_flows_and_holds_the_money(data: bytes) -> None:
    frame = b"data: " + data + b"\n\n"

    flowed, _, report = run(DIALECT, STREAM, [frame + named_events(event("completed", plain(10, 5)))])

    assert flowed == frame
    assert (report.usage, report.problem) == (None, "frame_unreadable")
    assert report.partial == Usage(input_uncached=10, output=5)


def test_a_frame_above_the_limit_flows_and_holds_the_money() -> None:
    frame = b"data: " + b"x" * (17 * 1024 * 1024) + b"\n\n"

    flowed, _, report = run(DIALECT, STREAM, [frame, named_events(event("completed", plain(10, 5)))])

    assert flowed == frame
    assert (report.usage, report.problem) == (None, "frame_unreadable")


def test_comments_and_events_without_data_flow() -> None:
    frames = b": ping\n\nevent: ping\n\n"

    flowed, _, report = run(DIALECT, STREAM, [frames + named_events(event("completed", plain(1, 1)))])

    assert flowed == frames
    assert report.problem is None


def test_usage_merges_by_the_greatest_in_any_order() -> None:
    events = [event("in_progress", plain(10, 1)), event("in_progress", plain(8, 70)), event("in_progress", plain(9, 3))]

    reports = {streamed(*order, event("completed", plain(10, 5))).usage for order in permutations(events)}

    assert reports == {Usage(input_uncached=10, output=70)}


WHOLE_STREAM = named_events(
    CREATED,
    delta("hé"),
    {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}},
    event("incomplete", plain(20, 60, input_tokens_details={"cached_tokens": 5, "cache_write_tokens": 3})),
)


@given(cuts=st.lists(st.integers(0, len(WHOLE_STREAM)), max_size=30))
def test_any_split_of_a_stream_gives_the_same_bytes_and_the_same_report(cuts: list[int]) -> None:
    flowed, held, report = run(DIALECT, STREAM, split(WHOLE_STREAM, cuts))

    assert flowed + held == WHOLE_STREAM
    assert held == WHOLE_STREAM[WHOLE_STREAM.index(b"event: response.incomplete") :]
    assert report.usage == Usage(input_uncached=12, cache_read=5, cache_write=3, output=60)


@given(at=st.integers(0, len(WHOLE_STREAM) - 3))
def test_a_stream_cut_anywhere_is_never_settled(at: int) -> None:
    _, _, report = run(DIALECT, STREAM, [WHOLE_STREAM[:at]])

    assert (report.usage, report.finished) == (None, False)


@given(value=json_values)
def test_any_answer_is_read_without_an_exception(value: Any) -> None:
    for body in (value, response(value), response(plain(1, 1), output=value), response(plain(1, 1), tool_usage=value)):
        report = DIALECT.report(json.dumps(body).encode(), read())
        assert report.usage is None or all(0 <= getattr(report.usage, bucket) <= COUNT_MAX for bucket in BUCKETS)


@given(value=json_values, kind=st.sampled_from(("created", "completed", "output_item.done")))
def test_any_event_is_read_without_an_exception(value: Any, kind: str) -> None:
    documents: list[dict[str, Any]] = [
        {"type": f"response.{kind}", "response": value, "item": value, "output_index": value},
        {"type": f"response.{kind}", "response": response(value, model=value, id=value)},
    ]
    for document in documents:
        run(DIALECT, STREAM, [named_events(document)])


@given(
    counts=st.lists(st.integers(0, COUNT_MAX) | st.integers(0, 100), min_size=7, max_size=7),
    long_writes=st.booleans(),
)
def test_the_buckets_add_up_to_what_was_told(counts: list[int], long_writes: bool) -> None:
    prompt, output, cached, write, short, long, reasoning = counts
    usage = {
        "input_tokens": prompt,
        "output_tokens": output,
        "input_tokens_details": {
            "cached_tokens": cached,
            "cache_write_tokens": write,
            "cache_write_tokens_details": {"ttl_30m_tokens": short, "ttl_12h_tokens": long},
        },
        "output_tokens_details": {"reasoning_tokens": reasoning},
    }

    report = DIALECT.report(json.dumps(response(usage)).encode(), LONG if long_writes else STREAM)

    if max(cached, write) > prompt:
        assert (report.problem, report.usage) == ("usage_unusable", None)
        return
    assert report.usage is not None
    assert report.usage.input_total == prompt
    assert report.usage.output >= output
    assert report.usage.cache_write + report.usage.cache_write_long >= min(write, prompt)


def test_what_the_provider_says_that_a_response_cost_is_kept_beside_the_counts() -> None:
    usage = plain(10, 5, cost_in_usd_ticks=3)
    asked = replace(STREAM, kind=KINDS["xai"])

    whole = DIALECT.report(json.dumps(response(usage)).encode(), asked)
    stream = run(DIALECT, asked, [named_events(CREATED, event("completed", usage))])[2]

    assert whole.charge == stream.charge == 300
    assert answer(usage).charge is None
