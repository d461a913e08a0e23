"""What an Anthropic answer used, whole and streamed."""

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.money import usd_text
from spendgate.core.price import Terms, cost
from spendgate.core.usage import BUCKETS, Usage, UsageReport
from spendgate.dialects.anthropic_messages import DIALECT
from tests.builders import a_card, a_price_row, rates
from tests.dialects.builders import message_stream, named_events, read_messages, run
from tests.dialects.test_json_strict import json_values
from tests.dialects.test_sse import split

REQUEST = read_messages(stream=True)
SHORT = read_messages(cache_control={"type": "ephemeral"})
LONG = read_messages(cache_control={"type": "ephemeral", "ttl": "1h"})


def answer(usage: Any, **changes: Any) -> UsageReport:
    document = {"id": "msg_1", "type": "message", "model": "claude-x", "usage": usage} | changes
    return DIALECT.report(json.dumps(document).encode(), SHORT)


def delta(usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {}, "usage": usage}


def test_the_buckets_are_the_answers_own() -> None:
    report = answer(
        {
            "input_tokens": 3,
            "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
            "output_tokens": 5,
            "output_tokens_details": {"thinking_tokens": 4},
            "server_tool_use": None,
            "service_tier": "standard",
            "inference_geo": "us",
            "speed": "fast",
        }
    )

    assert report.usage == Usage(input_uncached=3, cache_read=7, cache_write=10, cache_write_long=20, output=5)
    assert (report.finished, report.problem) == (True, None)
    assert (report.response_id, report.model) == ("msg_1", "claude-x")
    assert (report.service_tier, report.geo, report.speed) == ("standard", "us", "fast")


def test_writes_without_a_lifetime_are_taken_at_the_dearest_asked_for() -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10},
    }
    body = json.dumps({"usage": usage}).encode()

    assert DIALECT.report(body, SHORT).usage == Usage(input_uncached=1, cache_write=30, output=1)
    assert DIALECT.report(body, LONG).usage == Usage(input_uncached=1, cache_write=10, cache_write_long=20, output=1)
    assert DIALECT.report(body).usage == Usage(input_uncached=1, cache_write=30, output=1)


def test_a_split_larger_than_its_total_counts_as_it_stands() -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_creation_input_tokens": 0,
        "cache_creation": {"ephemeral_1h_input_tokens": 9},
    }

    assert answer(usage).usage == Usage(input_uncached=1, cache_write_long=9, output=1)


@pytest.mark.parametrize(
    "usage,problem",
    [
        (None, "usage_missing"),
        ({}, "usage_unusable"),
        ({"input_tokens": 1}, "usage_unusable"),
        ({"output_tokens": 1}, "usage_unusable"),
        ({"input_tokens": "1", "output_tokens": 1}, "usage_unusable"),
        ({"input_tokens": 1, "output_tokens": 1, "cache_creation": 5}, "usage_unusable"),
        ([], "usage_unusable"),
        ({"input_tokens": 1, "output_tokens": 1, "server_tool_use": {"web_search_requests": 1}}, "usage_server_tools"),
        (
            {"input_tokens": 1, "output_tokens": 1, "server_tool_use": {"code_execution_requests": "1"}},
            "usage_server_tools",
        ),
        ({"input_tokens": 1, "output_tokens": 1, "server_tool_use": 5}, "usage_server_tools"),
        (
            {"input_tokens": 1, "output_tokens": 1, "iterations": [{"type": "compaction", "input_tokens": 9}]},
            "usage_iterations",
        ),
        (
            {"input_tokens": 1, "output_tokens": 1, "iterations": [{"type": "message", "model": "other"}]},
            "usage_iterations",
        ),
        ({"input_tokens": 1, "output_tokens": 1, "iterations": [{"type": "message", "model": []}]}, "usage_iterations"),
        (
            {"input_tokens": 1, "output_tokens": 1, "iterations": [{"type": "message", "output_tokens": 2}]},
            "usage_iterations",
        ),
        ({"input_tokens": 1, "output_tokens": 1, "iterations": [5]}, "usage_iterations"),
        ({"input_tokens": 1, "output_tokens": 1, "iterations": {}}, "usage_iterations"),
    ],
)
def test_what_cannot_be_billed_from_the_answer_holds_the_money(usage: Any, problem: str) -> None:
    report = answer(usage)

    assert (report.usage, report.problem, report.finished) == (None, problem, True)
    assert (report.partial is None) == (usage is None)


@pytest.mark.parametrize(
    "extra",
    [
        {"server_tool_use": {"web_search_requests": 0, "web_fetch_requests": None}},
        {"iterations": []},
        {"iterations": [{"type": "message", "input_tokens": 1, "output_tokens": 1}]},
        {"iterations": [{"type": "message", "model": "claude-x", "input_tokens": 1, "output_tokens": 0}]},
    ],
)
def test_server_tools_that_did_not_run_and_iterations_that_only_repeat_the_total_change_nothing(extra: Any) -> None:
    assert answer({"input_tokens": 1, "output_tokens": 1} | extra).usage == Usage(input_uncached=1, output=1)


COMPACTING = read_messages(
    stream=True,
    cache_control={"type": "ephemeral"},
    context_management={"edits": [{"type": "compact_20260112"}]},
)
SUMMARY = {
    "type": "compaction",
    "input_tokens": 1_000,
    "output_tokens": 200,
    "cache_read_input_tokens": 50,
    "cache_creation_input_tokens": 30,
}
TURN = {"type": "message", "input_tokens": 300, "output_tokens": 40}


def compacted(*iterations: Any) -> UsageReport:
    usage = {"input_tokens": 300, "output_tokens": 40, "iterations": list(iterations)}
    return DIALECT.report(json.dumps({"model": "claude-x", "usage": usage}).encode(), COMPACTING)


def test_what_summing_up_used_is_added_to_the_top_level_that_leaves_it_out() -> None:
    report = compacted(SUMMARY, TURN)

    assert report.problem is None
    assert report.usage == Usage(input_uncached=1_300, cache_read=50, cache_write=30, output=240)


def test_summing_up_is_priced_by_the_rates_of_its_model() -> None:
    # 1,300 x 3 + 50 x 0.30 + 30 x 3.75 + 240 x 15 USD a million.
    found = compacted(SUMMARY, TURN).usage
    row = a_price_row(
        card=a_card(rates=rates(input=3_000_000, cache_read=300_000, cache_write=3_750_000, output=15_000_000))
    )

    assert found is not None
    assert usd_text(cost(found, row, Terms())) == "0.0076275"


@pytest.mark.parametrize(
    "entry",
    [
        SUMMARY | {"output_tokens": None},
        SUMMARY | {"input_tokens": -1},
        SUMMARY | {"model": "claude-dearer"},
        SUMMARY | {"type": "advisor_message", "model": "claude-x"},
        SUMMARY | {"type": "fallback_message", "model": "claude-x"},
    ],
)
def test_an_iteration_that_nobody_can_price_holds_the_money(entry: Any) -> None:
    assert (compacted(entry, TURN).usage, compacted(entry, TURN).problem) == (None, "usage_iterations")


def test_a_streamed_summing_up_counts_once_however_often_it_is_told() -> None:
    start = {"input_tokens": 300, "output_tokens": 1, "iterations": [SUMMARY]}
    last = {"output_tokens": 40, "iterations": [SUMMARY, TURN]}

    _, _, report = run(DIALECT, COMPACTING, [message_stream(start=start, delta=last)])

    assert report.usage == Usage(input_uncached=1_300, cache_read=50, cache_write=30, output=240)


def test_code_that_filters_what_a_web_tool_finds_is_free_and_code_beside_none_holds_the_money() -> None:
    search = {"name": "web_search", "max_uses": 2}
    used = {"web_search_requests": 2, "code_execution_requests": 1}
    body = json.dumps({"usage": {"input_tokens": 9, "output_tokens": 1, "server_tool_use": used}}).encode()

    later = DIALECT.report(body, read_messages(tools=[search | {"type": "web_search_20260209"}]))
    older = DIALECT.report(body, read_messages(tools=[search | {"type": "web_search_20250305"}]))

    assert later.usage == Usage(input_uncached=9, output=1, fees=(("web_search", 2),))
    assert older.problem == "usage_server_tools"


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"\xff"])
def test_an_answer_that_is_no_object_is_unreadable(body: bytes) -> None:
    report = DIALECT.report(body)

    assert (report.usage, report.problem, report.finished) == (None, "answer_unreadable", False)


@pytest.mark.parametrize("changes", [{"type": "error"}, {"error": {"type": "api_error"}}])
def test_an_error_inside_a_whole_answer_is_no_settlement(changes: dict[str, Any]) -> None:
    report = answer({"input_tokens": 1, "output_tokens": 1}, **changes)

    assert (report.usage, report.problem, report.finished) == (None, "error_in_answer", False)


def test_a_stream_flows_but_for_its_last_frame() -> None:
    stream = message_stream(start={"input_tokens": 9, "output_tokens": 1}, delta={"output_tokens": 5})
    last = named_events({"type": "message_stop"})

    flowed, held, report = run(DIALECT, REQUEST, [b": hello\n\n" + stream + b"\n"])

    assert flowed == b": hello\n\n" + stream.removesuffix(last)
    assert held == last + b"\n"
    assert report.usage == Usage(input_uncached=9, output=5)
    assert (report.finished, report.response_id, report.model) == (True, "msg_1", "claude-x")


def test_the_deltas_counts_are_cumulative_and_the_starts_split_is_kept() -> None:
    start = {
        "input_tokens": 2679,
        "output_tokens": 3,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 0},
        "service_tier": "priority",
    }
    last = {
        "input_tokens": 10682,
        "output_tokens": 510,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": None,
    }

    report = run(DIALECT, REQUEST, [message_stream(start=start, delta=last)])[2]

    assert report.usage == Usage(input_uncached=10682, cache_write_long=30, output=510)
    assert report.service_tier == "priority"


def test_a_stream_without_its_end_leaves_a_floor() -> None:
    stream = message_stream(start={"input_tokens": 9, "output_tokens": 1}, delta={"output_tokens": 5}, stop=False)

    report = run(DIALECT, REQUEST, [stream])[2]

    assert (report.usage, report.finished, report.problem) == (None, False, "stream_unfinished")
    assert report.partial == Usage(input_uncached=9, output=5)


@pytest.mark.parametrize("last", [None, {}, {"output_tokens": None}, {"input_tokens": 9}])
def test_the_placeholder_of_the_start_is_no_output(last: Any) -> None:
    report = run(DIALECT, REQUEST, [message_stream(start={"input_tokens": 9, "output_tokens": 3}, delta=last)])[2]

    assert (report.usage, report.problem) == (None, "usage_missing")


@pytest.mark.parametrize("message", [None, 5, []])
def test_a_start_without_a_message_leaves_the_input_unknown(message: Any) -> None:
    stream = named_events(
        {"type": "message_start", "message": message}, delta({"output_tokens": 3}), {"type": "message_stop"}
    )

    report = run(DIALECT, REQUEST, [stream])[2]

    assert (report.usage, report.problem) == (None, "usage_unusable")


@pytest.mark.parametrize("frame", [b"data: {\n\n", b"data: []\n\n", b"data: " + b"x" * (17 * 1024 * 1024) + b"\n\n"])
def test_a_frame_that_cannot_be_read_flows_and_holds_the_money(frame: bytes) -> None:
    stream = message_stream(start={"input_tokens": 9, "output_tokens": 1}, delta={"output_tokens": 5})

    flowed, _, report = run(DIALECT, REQUEST, [frame, stream])

    assert flowed.startswith(frame)
    assert (report.usage, report.problem) == (None, "frame_unreadable")


def test_an_event_is_known_by_its_name_where_its_data_has_no_type() -> None:
    flowed, held, report = run(DIALECT, REQUEST, [b"event: message_stop\ndata: {}\n\n"])

    assert (flowed, held) == (b"", b"event: message_stop\ndata: {}\n\n")
    assert report.finished


def test_an_odd_kind_of_event_flows() -> None:
    stream = b'data: {"type": ["x"]}\n\ndata: {"type": 5}\n\ndata:\n\n'

    assert run(DIALECT, REQUEST, [stream])[0] == stream


counts = st.none() | st.integers(0, 1000)
usages = st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 1000), "output_tokens": st.integers(0, 1000)},
    optional={
        "cache_read_input_tokens": counts,
        "cache_creation_input_tokens": counts,
        "cache_creation": st.none()
        | st.dictionaries(st.sampled_from(["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"]), counts),
    },
)


@given(usage=usages)
def test_the_buckets_add_up_to_what_was_reported(usage: dict[str, Any]) -> None:
    split_sum = sum(count or 0 for count in (usage.get("cache_creation") or {}).values())
    written = max(usage.get("cache_creation_input_tokens") or 0, split_sum)

    buckets = answer(usage).usage

    assert buckets is not None
    assert buckets.total == (
        usage["input_tokens"] + usage["output_tokens"] + (usage.get("cache_read_input_tokens") or 0) + written
    )


@given(
    usage=json_values
    | st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "iterations", "server_tool_use"]), json_values)
)
def test_no_usage_raises_or_is_negative(usage: Any) -> None:
    for report in (answer(usage), run(DIALECT, REQUEST, [message_stream(start=usage, delta=usage)])[2]):
        for seen in (report.usage, report.partial):
            assert seen is None or all(getattr(seen, bucket) >= 0 for bucket in BUCKETS)
        assert (report.usage is None) == (report.problem is not None)


@given(several=st.lists(usages, min_size=1, max_size=3))
def test_merging_frames_does_not_depend_on_their_order(several: list[dict[str, Any]]) -> None:
    reports = {
        run(DIALECT, REQUEST, [named_events(*map(delta, order), {"type": "message_stop"})])[2].usage
        for order in permutations(several)
    }

    assert len(reports) == 1


parts = st.lists(
    st.sampled_from(
        [
            {"type": "message_start", "message": {"id": "é", "usage": {"input_tokens": 5, "output_tokens": 1}}},
            {"type": "ping"},
            {"type": "content_block_delta", "delta": {"text": "é😀\u2028"}},
            delta({"output_tokens": 7}),
            delta({"output_tokens": "x"}),
            {"type": "error", "error": {"type": "overloaded_error"}},
            {"type": "message_stop"},
        ]
    ),
    max_size=7,
)


@given(documents=parts, cuts=st.lists(st.integers(0, 3000), max_size=20), cut_short=st.integers(0, 30))
def test_any_split_of_a_stream_gives_the_same_bytes_and_report(
    documents: list[Any], cuts: list[int], cut_short: int
) -> None:
    stream = named_events(*documents)
    stream = stream[: len(stream) - cut_short]
    whole = run(DIALECT, REQUEST, [stream])

    assert run(DIALECT, REQUEST, split(stream, cuts)) == whole
    assert run(DIALECT, REQUEST, [stream[i : i + 1] for i in range(len(stream))]) == whole
