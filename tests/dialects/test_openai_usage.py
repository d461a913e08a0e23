"""What an OpenAI-shaped answer used: rules of arithmetic, whole and streamed."""

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.usage import BUCKETS, COUNT_MAX, Usage, UsageReport
from spendgate.dialects.openai_chat import DIALECT
from tests.dialects.builders import chunk, events, read_chat, run
from tests.dialects.test_json_strict import json_values
from tests.dialects.test_sse import split

STREAM = read_chat(stream=True)
ASKED = read_chat(stream=True, stream_options={"include_usage": True})
LONG = read_chat(prompt_cache_options={"ttl": "12h"})


def answer(usage: Any, **changes: Any) -> UsageReport:
    document = {"id": "chatcmpl-1", "model": "gpt-x", "choices": [], "usage": usage} | changes
    return DIALECT.report(json.dumps(document).encode(), STREAM)


def used(usage: dict[str, Any]) -> Usage:
    report = answer(usage)
    assert report.usage is not None
    return report.usage


def usage_chunk(usage: Any, **changes: Any) -> dict[str, Any]:
    return {"id": "c1", "model": "gpt-x", "choices": [], "usage": usage} | changes


def plain(prompt: int, completion: int, **changes: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion} | changes


def test_a_plain_answer_is_input_and_output() -> None:
    report = answer(plain(10, 5), service_tier="priority")

    assert report.usage == Usage(input_uncached=10, output=5)
    assert report.finished
    assert (report.problem, report.partial) == (None, None)
    assert (report.response_id, report.model, report.service_tier) == ("chatcmpl-1", "gpt-x", "priority")


def test_details_are_taken_out_of_the_totals_that_contain_them() -> None:
    usage = plain(
        100,
        50,
        prompt_tokens_details={"cached_tokens": 40, "cache_write_tokens": 20, "audio_tokens": 15, "image_tokens": 5},
        completion_tokens_details={
            "reasoning_tokens": 30,
            "audio_tokens": 10,
            "image_tokens": 4,
            "rejected_prediction_tokens": 3,
        },
    )

    assert used(usage) == Usage(
        input_uncached=20,
        cache_read=40,
        cache_write=20,
        audio_input=15,
        image_input=5,
        output=36,
        audio_output=10,
        image_output=4,
    )


def test_details_that_overlap_are_clamped_to_their_total() -> None:
    details = {"cached_tokens": 90, "cache_write_tokens": 30, "audio_tokens": 50, "image_tokens": 50}

    assert used(plain(100, 0, prompt_tokens_details=details)) == Usage(cache_write=30, cache_read=70)


def test_cached_and_audio_that_overlap_leave_the_rest_to_the_dearer_kind() -> None:
    details = {"cached_tokens": 80, "audio_tokens": 100}

    assert used(plain(150, 0, prompt_tokens_details=details)) == Usage(cache_read=80, audio_input=70)


@pytest.mark.parametrize(
    "usage,output",
    [
        ({"prompt_tokens": 20, "completion_tokens": 424, "total_tokens": 1016}, 996),
        (
            {
                "prompt_tokens": 20,
                "completion_tokens": 0,
                "total_tokens": 80,
                "completion_tokens_details": {"reasoning_tokens": 60},
            },
            60,
        ),
        (
            {
                "prompt_tokens": 20,
                "completion_tokens": 0,
                "total_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 60},
            },
            60,
        ),
        ({"prompt_tokens": 20, "completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 60}}, 70),
        ({"prompt_tokens": 20, "completion_tokens": 70, "completion_tokens_details": {"reasoning_tokens": 60}}, 70),
        ({"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 5}, 10),
        ({"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": None}, 10),
    ],
)
def test_reasoning_outside_the_completion_and_any_remainder_of_the_total_are_output(usage: Any, output: int) -> None:
    assert used(usage).output == output


def test_deepseeks_cache_hits_are_reads() -> None:
    assert used(plain(100, 1, prompt_cache_hit_tokens=60)) == Usage(input_uncached=40, cache_read=60, output=1)


def test_cache_writes_are_long_only_if_the_request_asked_for_it() -> None:
    body = json.dumps({"usage": plain(10, 0, prompt_tokens_details={"cache_write_tokens": 10})}).encode()

    assert DIALECT.report(body, LONG).usage == Usage(cache_write_long=10)
    assert DIALECT.report(body, STREAM).usage == Usage(cache_write=10)
    assert DIALECT.report(body).usage == Usage(cache_write=10)


def test_an_answer_without_usage_is_not_a_free_one() -> None:
    for report in (answer(None), DIALECT.report(b'{"id":"a"}')):
        assert (report.usage, report.partial, report.problem, report.finished) == (None, None, "usage_missing", True)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 5},
        {"completion_tokens": 5},
        {"prompt_tokens": None, "completion_tokens": 5},
        {},
        [],
        "5",
        0,
        False,
        plain(5, 5, prompt_tokens_details=[]),
        plain(5, 5, prompt_tokens_details={"cached_tokens": "5"}),
        plain(5, 5, completion_tokens_details={"reasoning_tokens": -1}),
        plain(5, 5, total_tokens="10"),
    ],
)
def test_a_missing_total_or_an_odd_count_is_unusable_and_leaves_a_floor(usage: Any) -> None:
    report = answer(usage)

    assert report.usage is None
    assert report.problem == "usage_unusable"
    assert report.partial is not None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"\x1f\x8b", b'{"usage":NaN}'])
def test_an_answer_that_is_no_object_is_unreadable(body: bytes) -> None:
    report = DIALECT.report(body)

    assert (report.usage, report.problem, report.finished) == (None, "answer_unreadable", False)


def test_an_error_inside_a_whole_answer_is_no_settlement() -> None:
    report = answer(plain(5, 5), error={"message": "x"})

    assert (report.usage, report.problem, report.finished) == (None, "error_in_answer", False)
    assert report.partial == Usage(input_uncached=5, output=5)


def test_a_stream_flows_but_for_its_last_frame_and_the_usage_nobody_asked_for() -> None:
    filters: dict[str, Any] = {"id": "", "model": "", "choices": [], "prompt_filter_results": [], "usage": None}
    before = b": OPENROUTER PROCESSING\n\n" + events(filters, chunk("a"), chunk("b"))
    after = b"data: [DONE]\n\n\n"

    flowed, held, report = run(DIALECT, STREAM, [before + events(usage_chunk(plain(10, 5))) + after])

    assert flowed == before
    assert held == after
    assert report.usage == Usage(input_uncached=10, output=5)
    assert (report.finished, report.response_id, report.model) == (True, "c1", "gpt-x")


def test_the_usage_chunk_flows_to_a_caller_who_asked_for_it() -> None:
    stream = events(chunk(), usage_chunk(plain(10, 5)))

    assert run(DIALECT, ASKED, [stream])[0] == stream


def test_a_frame_flows_as_soon_as_it_is_complete() -> None:
    meter = DIALECT.meter(STREAM)
    frame = events(chunk())

    assert meter.feed(frame[:-1]) == b""
    assert meter.feed(frame[-1:]) == frame
    assert meter.report().problem == "stream_unfinished"


def test_usage_beside_choices_is_read_and_flows() -> None:
    stream = events(chunk(usage=plain(10, 5)))

    flowed, _, report = run(DIALECT, STREAM, [stream + b"data: [DONE]\n\n"])

    assert flowed == stream
    assert report.usage == Usage(input_uncached=10, output=5)


def test_a_stream_that_ends_after_its_usage_chunk_is_finished_without_done() -> None:
    assert run(DIALECT, STREAM, [events(chunk(), usage_chunk(plain(10, 5)))])[2].finished


def test_a_stream_is_not_finished_by_its_usage_chunk_before_it_is_over() -> None:
    meter = DIALECT.meter(STREAM)
    meter.feed(events(chunk(), usage_chunk(plain(10, 5))))

    assert (meter.report().finished, meter.report().usage) == (False, None)


def test_a_stream_that_ends_on_usage_beside_choices_may_have_been_cut() -> None:
    report = run(DIALECT, STREAM, [events(chunk(usage=plain(10, 5)))])[2]

    assert (report.usage, report.finished, report.problem) == (None, False, "stream_unfinished")
    assert report.partial == Usage(input_uncached=10, output=5)


def test_a_done_stream_without_usage_is_finished_and_not_free() -> None:
    report = run(DIALECT, STREAM, [events(chunk(), done=True)])[2]

    assert (report.usage, report.finished, report.problem) == (None, True, "usage_missing")


@pytest.mark.parametrize(
    "frame", [b"event: error\ndata: {}\n\n", b'data: {"error":{"message":"x"},"choices":[],"usage":{}}\n\n']
)
def test_an_error_in_the_stream_flows_and_is_never_finished(frame: bytes) -> None:
    flowed, _, report = run(DIALECT, STREAM, [events(chunk()) + frame + b"data: [DONE]\n\n"])

    assert flowed.endswith(frame)
    assert (report.usage, report.finished, report.problem) == (None, False, "error_in_stream")


@pytest.mark.parametrize("data", [b"{", b"[]", b"null", b"\xff", b'{"usage":{"completion_tokens":NaN}}'])
def test_a_frame_that_cannot_be_read_flows_and_holds_the_money(data: bytes) -> None:
    frame = b"data: " + data + b"\n\n"

    flowed, _, report = run(DIALECT, STREAM, [frame + events(usage_chunk(plain(10, 5)), done=True)])

    assert flowed == frame
    assert (report.usage, report.problem) == (None, "frame_unreadable")
    assert report.partial == Usage(input_uncached=10, output=5)


def test_a_frame_above_the_limit_flows_and_holds_the_money() -> None:
    frame = b"data: " + b"x" * (17 * 1024 * 1024) + b"\n\n"

    flowed, _, report = run(DIALECT, STREAM, [frame, events(usage_chunk(plain(10, 5)), done=True)])

    assert len(flowed) == len(frame)
    assert report.problem == "frame_unreadable"


def test_blank_data_flows() -> None:
    assert run(DIALECT, STREAM, [b"data:\n\n"])[0] == b"data:\n\n"


def test_half_an_event_at_a_cut_is_not_passed_on() -> None:
    whole = events(chunk())

    flowed, held, report = run(DIALECT, STREAM, [whole + whole[:-20]])

    assert (flowed, held) == (whole, b"")
    assert report.problem == "stream_unfinished"


def test_a_last_frame_without_its_blank_line_is_read_and_passed_on() -> None:
    stream = events(chunk(), usage_chunk(plain(10, 5))) + b"data: [DONE]"

    _, held, report = run(DIALECT, ASKED, [stream])

    assert held == b"data: [DONE]"
    assert report.usage == Usage(input_uncached=10, output=5)


def test_what_follows_the_end_is_held_up_to_a_limit() -> None:
    done = b"data: [DONE]\n\n"
    noise = b": " + b"x" * 1000 + b"\n\n"

    _, held, _ = run(DIALECT, STREAM, [done, *[noise] * 2000])

    assert held.startswith(done)
    assert 1024 * 1024 - len(noise) < len(held) <= 1024 * 1024


def test_the_first_id_and_the_last_model_named_are_kept_and_empty_ones_are_not() -> None:
    stray = {"id": "", "model": "", "choices": [], "usage": plain(1, 1)}
    stream = events(chunk(id=""), chunk(id="c1", model="a"), chunk(id="c2", model="b"), stray, done=True)

    report = run(DIALECT, STREAM, [stream])[2]

    assert (report.response_id, report.model) == ("c1", "b")


def test_an_identifier_that_cannot_be_stored_is_not_kept() -> None:
    report = answer(plain(1, 1), id=5, model="m" * 300, service_tier="")

    assert (report.response_id, report.model, report.service_tier) == (None, None, None)


counts = st.integers(0, 1000)
details = st.none() | st.dictionaries(
    st.sampled_from(["cached_tokens", "cache_write_tokens", "audio_tokens", "image_tokens", "reasoning_tokens"]),
    st.none() | counts,
)
usages = st.fixed_dictionaries(
    {"prompt_tokens": counts, "completion_tokens": counts},
    optional={"total_tokens": counts, "prompt_tokens_details": details, "completion_tokens_details": details},
)


@given(usage=usages)
def test_the_buckets_add_up_to_what_was_reported(usage: dict[str, Any]) -> None:
    told = usage.get("prompt_tokens_details") or {}
    if any((told.get(name) or 0) > usage["prompt_tokens"] for name in ("cached_tokens", "cache_write_tokens")):
        assert (answer(usage).problem, answer(usage).usage) == ("usage_unusable", None)
        return
    buckets = used(usage)
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    total = usage.get("total_tokens")

    assert buckets.input_total == usage["prompt_tokens"]
    assert buckets.output_total >= max(usage["completion_tokens"], reasoning)
    if total is not None:
        assert buckets.total == max(total, usage["prompt_tokens"] + max(usage["completion_tokens"], reasoning))
    elif reasoning <= usage["completion_tokens"]:
        assert buckets.output_total == usage["completion_tokens"]


@pytest.mark.parametrize("name", ["cached_tokens", "cache_write_tokens"])
def test_more_from_the_cache_than_there_is_settles_nothing(name: str) -> None:
    """A relay of another convention counts the cache beside the prompt: all at the cache's rate would be too little."""
    report = answer(plain(10, 5, prompt_tokens_details={name: 11}))

    assert (report.problem, report.usage) == ("usage_unusable", None)
    assert answer(plain(10, 5, prompt_tokens_details={name: 10})).problem is None


odd = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from([COUNT_MAX, 2**53])
)


@given(
    usage=st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens"]), odd) | json_values
)
def test_no_usage_raises_or_is_negative(usage: Any) -> None:
    for report in (answer(usage), run(DIALECT, STREAM, [events(usage_chunk(usage), done=True)])[2]):
        for seen in (report.usage, report.partial):
            assert seen is None or all(getattr(seen, bucket) >= 0 for bucket in BUCKETS)
        assert (report.usage is None) == (report.problem is not None)


@given(several=st.lists(usages, min_size=1, max_size=3))
def test_merging_frames_does_not_depend_on_their_order(several: list[dict[str, Any]]) -> None:
    reports = {
        run(DIALECT, STREAM, [events(*(chunk(usage=usage) for usage in order), done=True)])[2].usage
        for order in permutations(several)
    }

    assert len(reports) == 1


frames_of_streams = st.lists(
    st.sampled_from(
        [
            chunk("é😀"),
            chunk(usage=plain(3, 1)),
            usage_chunk(plain(10, 5)),
            usage_chunk(None),
            usage_chunk({"prompt_tokens": 4, "completion_tokens": "x"}),
            {"error": {"message": "m"}},
            [],
        ]
    ),
    max_size=6,
)


@given(
    documents=frames_of_streams,
    done=st.booleans(),
    cuts=st.lists(st.integers(0, 3000), max_size=20),
    cut_short=st.integers(0, 30),
)
def test_any_split_of_a_stream_gives_the_same_bytes_and_report(
    documents: list[Any], *, done: bool, cuts: list[int], cut_short: int
) -> None:
    stream = events(*documents, done=done)
    stream = stream[: len(stream) - cut_short]
    for request in (STREAM, ASKED):
        whole = run(DIALECT, request, [stream])

        assert run(DIALECT, request, split(stream, cuts)) == whole
        assert run(DIALECT, request, [stream[i : i + 1] for i in range(len(stream))]) == whole
