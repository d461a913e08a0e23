"""What a Gemini answer used: rules of arithmetic, whole and streamed, as events and as an array."""

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.usage import BUCKETS, COUNT_MAX, Usage, UsageReport
from spendgate.dialects.dialect import Request
from spendgate.dialects.gemini import DIALECT, STREAM_DIALECT
from tests.dialects.builders import events, parsed, run
from tests.dialects.test_json_strict import json_values
from tests.dialects.test_sse import split

BODY = {"contents": [{"parts": [{"text": "hello"}]}]}
PATH = {"model": "house-model"}


def streamed(query: str, **config: Any) -> Request:
    return STREAM_DIALECT.read(parsed(BODY | {"generationConfig": config}), {}, query, PATH)


EVENTS = streamed("alt=sse")
ARRAY = streamed("")
FORMS = pytest.mark.parametrize("request_", [EVENTS, ARRAY], ids=["events", "array"])


def wire(request: Request, *chunks: Any) -> bytes:
    """Return chunks as the provider streams them."""
    if request.query:
        return events(*chunks)
    return b"[" + b"\n,\r\n".join(json.dumps(chunk, indent=1).encode() for chunk in chunks) + b"\n]\n"


def chunk(usage: Any = None, *, text: str = 'a "quoted" ]},{[ hé\\', finish: str | None = None, index: int = 0) -> Any:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": index}
    document = {"candidates": [candidate | ({"finishReason": finish} if finish else {})], "modelVersion": "gemini-x"}
    return document | ({} if usage is None else {"usageMetadata": usage}) | {"responseId": "r1"}


def plain(prompt: int, candidates: int, **changes: Any) -> dict[str, Any]:
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": candidates, "totalTokenCount": prompt + candidates}
    return counts | changes


def answer(usage: Any, **changes: Any) -> UsageReport:
    return DIALECT.report(json.dumps(chunk(usage, finish="STOP") | changes).encode())


def used(usage: dict[str, Any]) -> Usage:
    report = answer(usage)
    assert report.usage is not None
    return report.usage


def modal(**counts: int) -> list[dict[str, Any]]:
    return [{"modality": modality.upper(), "tokenCount": count} for modality, count in counts.items()]


def test_a_plain_answer_is_input_and_output() -> None:
    report = answer(plain(10, 5, serviceTier="PRIORITY", trafficType="ON_DEMAND"))

    assert report.usage == Usage(input_uncached=10, output=5)
    assert report.finished
    assert (report.problem, report.partial) == (None, None)
    assert (report.response_id, report.model, report.service_tier) == ("r1", "gemini-x", "priority")


@pytest.mark.parametrize(
    "usage,expected",
    [
        # Thoughts are beside the candidates, not in them.
        (plain(10, 5, thoughtsTokenCount=7, totalTokenCount=22), Usage(input_uncached=10, output=12)),
        # What tools put into the prompt is beside it, and billed as input.
        (plain(10, 5, toolUsePromptTokenCount=30, totalTokenCount=45), Usage(input_uncached=40, output=5)),
        # The cache is inside the prompt.
        (plain(10, 5, cachedContentTokenCount=4), Usage(input_uncached=6, cache_read=4, output=5)),
        (plain(10, 5, cachedContentTokenCount=10), Usage(cache_read=10, output=5)),
        # What the total holds beside the rest is output.
        (plain(10, 5, totalTokenCount=100), Usage(input_uncached=10, output=90)),
        (plain(10, 5, totalTokenCount=1), Usage(input_uncached=10, output=5)),
        (plain(10, 5, totalTokenCount=None, thoughtsTokenCount=3), Usage(input_uncached=10, output=8)),
        # Nothing visible has no count.
        ({"promptTokenCount": 10, "totalTokenCount": 10}, Usage(input_uncached=10)),
        (
            {"promptTokenCount": 10, "thoughtsTokenCount": 40, "totalTokenCount": 50},
            Usage(input_uncached=10, output=40),
        ),
        (plain(10.0, 5), Usage(input_uncached=10, output=5)),  # type: ignore[arg-type]
    ],
)
def test_counts_become_disjoint_buckets(usage: Any, expected: Usage) -> None:
    assert used(usage) == expected


def test_more_from_the_cache_than_there_is_settles_nothing() -> None:
    report = answer(plain(10, 5, cachedContentTokenCount=11))

    assert (report.problem, report.usage) == ("usage_unusable", None)


def test_modalities_are_taken_out_of_the_counts_that_contain_them() -> None:
    usage = plain(
        100,
        50,
        cachedContentTokenCount=20,
        toolUsePromptTokenCount=10,
        totalTokenCount=160,
        promptTokensDetails=modal(text=60, audio=25, image=15),
        cacheTokensDetails=modal(text=20),
        toolUsePromptTokensDetails=modal(audio=4, image=3),
        candidatesTokensDetails=modal(text=35, audio=10, image=5),
    )

    assert used(usage) == Usage(
        input_uncached=80 - 40 + 10 - 7,
        cache_read=20,
        audio_input=25 + 4,
        image_input=15 + 3,
        output=35,
        audio_output=10,
        image_output=5,
    )


def test_modalities_that_overlap_or_exceed_their_count_are_clamped() -> None:
    usage = plain(
        100,
        50,
        cachedContentTokenCount=80,
        promptTokensDetails=[*modal(audio=15), *modal(audio=1), *modal(image=90)],
        candidatesTokensDetails=modal(audio=70, image=70),
    )

    assert used(usage) == Usage(cache_read=80, audio_input=16, image_input=4, audio_output=50)


@pytest.mark.parametrize(
    "usage",
    [
        {"promptTokenCount": 5},
        {"candidatesTokenCount": 5, "totalTokenCount": 10},
        {},
        [],
        "5",
        0,
        False,
        plain(5, 5, totalTokenCount="10"),
        plain(5, 5, cachedContentTokenCount=-1),
        plain(5, 5, thoughtsTokenCount=1.5),
        plain(5, 5, thoughtsTokenCount=True),
        plain(5, 2**53),
        plain(5, 5, promptTokensDetails={}),
        plain(5, 5, promptTokensDetails=[1]),
        plain(5, 5, promptTokensDetails=[{"modality": "AUDIO", "tokenCount": "9"}]),
        plain(5, 5, promptTokensDetails=[*modal(audio=1), {"modality": "AUDIO", "tokenCount": -9}]),
    ],
)
def test_usage_that_cannot_be_trusted_is_a_floor_and_no_bill(usage: Any) -> None:
    report = answer(usage)

    assert (report.usage, report.problem, report.finished) == (None, "usage_unusable", True)
    assert report.partial is not None


def test_an_answer_without_usage_is_not_a_free_one() -> None:
    report = answer(None)

    assert (report.usage, report.partial, report.problem, report.finished) == (None, None, "usage_missing", True)


@pytest.mark.parametrize(
    "extra", [{"groundingMetadata": {"webSearchQueries": ["a"]}}, {"urlContextMetadata": {"a": 1}}]
)
def test_an_answer_that_searched_is_not_settled_without_its_fee(extra: dict[str, Any]) -> None:
    document = chunk(plain(1, 1), finish="STOP")
    document["candidates"][0] |= extra

    for report in (
        DIALECT.report(json.dumps(document).encode()),
        run(STREAM_DIALECT, EVENTS, [wire(EVENTS, document)])[2],
    ):
        assert (report.usage, report.partial) == (None, Usage(input_uncached=1, output=1))
        assert report.problem == "usage_grounding"


SEARCHES: list[dict[str, Any]] = [{"googleSearch": {}}]
READS: list[dict[str, Any]] = [{"urlContext": {}}]


def grounded(
    tools: list[dict[str, Any]], *metadata: Any, model: str = "gemini-3.8-flash", extra: Any = None
) -> UsageReport:
    """Report a stream whose chunks have these grounding metadata."""
    request = STREAM_DIALECT.read(parsed(BODY | {"tools": tools}), {}, "alt=sse", PATH)
    chunks = [chunk(plain(1, 1), finish="STOP") | {"modelVersion": model} for _ in metadata]
    for document, one in zip(chunks, metadata, strict=True):
        document["candidates"][0] |= {"groundingMetadata": one} | (extra or {})
    report: UsageReport = run(STREAM_DIALECT, request, [wire(request, *chunks)])[2]
    return report


@pytest.mark.parametrize(
    "metadata,searches",
    [
        ([{"webSearchQueries": ["a", "b"]}], 2),
        ([{"webSearchQueries": ["a"], "imageSearchQueries": ["b", "b"]}], 3),
        # Told again with each chunk, and told as it comes.
        ([{"webSearchQueries": ["a"]}, {"webSearchQueries": ["a", "b"]}, {"webSearchQueries": ["b"]}], 2),
        ([{"webSearchQueries": ["a", "a"]}, {"webSearchQueries": ["b", "a"]}], 4),
        # Grounded without a word of how.
        ([{"groundingChunks": [{"web": {"uri": "u"}}]}], 1),
        ([{"searchEntryPoint": {"renderedContent": "x"}}, None, {}], 1),
        ([{"webSearchQueries": []}], 0),
    ],
)
def test_every_search_that_was_allowed_is_a_fee(metadata: list[Any], searches: int) -> None:
    """B49: a search costs more than its tokens."""
    usage = grounded(SEARCHES, *metadata).usage

    assert usage == Usage(input_uncached=1, output=1, fees=(("web_search", searches),) if searches else ())


@pytest.mark.parametrize("model,searches", [("gemini-2.5-pro", 1), ("gemini-3.1-pro-preview", 3), ("other", 3)])
def test_models_before_gemini_3_bill_a_grounded_prompt_and_not_its_queries(model: str, searches: int) -> None:
    usage = grounded(SEARCHES, {"webSearchQueries": ["a", "b", "c"]}, model=model).usage

    assert usage is not None
    assert usage.fees == (("web_search", searches),)


@pytest.mark.parametrize(
    "tools,metadata",
    [
        (SEARCHES, {"webSearchQueries": [1]}),
        (SEARCHES, {"webSearchQueries": {"a": 1}}),
        (SEARCHES, [1]),
        (SEARCHES, "x"),
        (SEARCHES, {"groundingChunks": [{"maps": {"placeId": "p"}}]}),
        (SEARCHES, {"groundingChunks": ["x"]}),
        (SEARCHES, {"googleMapsWidgetContextToken": "t"}),
        (SEARCHES, {"retrievalQueries": ["q"]}),
        (READS, {"webSearchQueries": ["a"]}),
    ],
)
def test_grounding_that_cannot_be_counted_or_was_not_allowed_is_no_bill(tools: Any, metadata: Any) -> None:
    report = grounded(tools, metadata)

    assert (report.usage, report.problem) == (None, "usage_grounding")


def test_pages_that_were_read_cost_their_tokens() -> None:
    extra = {"urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "u"}]}}
    chunks = {"groundingChunks": [{"web": {"uri": "u"}}]}

    assert grounded(READS, chunks, extra=extra).usage == Usage(input_uncached=1, output=1)
    assert grounded(SEARCHES, None, extra=extra).problem == "usage_grounding"


@pytest.mark.parametrize(
    "details,expected",
    [
        # All of it in the cache, part of it, and nobody says: what has no room beside the cache was in it.
        ({"audio": 50, "cached": 60, "cached_audio": 50}, Usage(input_uncached=40, cache_read=10, audio_input=50)),
        ({"audio": 50, "cached": 60, "cached_audio": 30}, Usage(input_uncached=20, cache_read=30, audio_input=50)),
        ({"audio": 50, "cached": 80, "cached_audio": 0}, Usage(cache_read=50, audio_input=50)),
        ({"audio": 0, "cached": 80, "cached_audio": 90}, Usage(input_uncached=20, audio_input=80)),
        ({"audio": 900, "cached": 80, "cached_audio": 900}, Usage(audio_input=100)),
    ],
)
def test_sound_from_the_cache_is_not_priced_as_text_from_there(details: dict[str, int], expected: Usage) -> None:
    usage = plain(
        100,
        0,
        cachedContentTokenCount=details["cached"],
        promptTokensDetails=modal(audio=details["audio"]),
        cacheTokensDetails=modal(audio=details["cached_audio"]),
    )

    assert used(usage) == expected


def test_empty_grounding_is_none() -> None:
    document = chunk(plain(1, 1), finish="STOP")
    document["candidates"][0]["groundingMetadata"] = {}

    assert DIALECT.report(json.dumps(document).encode()).problem is None


@pytest.mark.parametrize(
    "body,problem", [(b"[]", "answer_unreadable"), (b"{", "answer_unreadable"), (b'{"error":{}}', "error_in_answer")]
)
def test_an_answer_that_is_none_is_not_finished(body: bytes, problem: str) -> None:
    report = DIALECT.report(body)

    assert (report.usage, report.problem, report.finished) == (None, problem, False)


# --- streams


THREE = (
    chunk({"promptTokenCount": 2, "totalTokenCount": 7}, text="one"),
    chunk(plain(2, 7, thoughtsTokenCount=0), text="two"),
    chunk(plain(2, 12), text="three", finish="STOP"),
)


@FORMS
def test_b38_usage_on_every_chunk_counts_once(request_: Request) -> None:
    """B38: totals so far of 5, 9 and 14 are 14, not 28."""
    chunks = [chunk(plain(0, total), finish="STOP" if total == 14 else None) for total in (5, 9, 14)]

    _, _, report = run(STREAM_DIALECT, request_, [wire(request_, *chunks)])

    assert report.usage == Usage(output=14)


@FORMS
def test_a_late_chunk_that_leaves_a_count_out_loses_nothing(request_: Request) -> None:
    chunks = [
        chunk(plain(10, 5, cachedContentTokenCount=4, thoughtsTokenCount=30, totalTokenCount=45)),
        chunk({"promptTokenCount": 10, "candidatesTokenCount": 6}, finish="STOP"),
    ]

    _, _, report = run(STREAM_DIALECT, request_, [wire(request_, *chunks)])

    assert report.usage == Usage(input_uncached=6, cache_read=4, output=36)


@FORMS
def test_the_chunk_that_ends_the_answer_waits_for_the_settlement_and_nothing_before_it(request_: Request) -> None:
    stream = wire(request_, *THREE)

    flowed, held, report = run(STREAM_DIALECT, request_, [stream])

    assert flowed + held == stream
    assert b"two" in flowed
    assert b"three" in held
    assert b"three" not in flowed
    assert report.finished


@FORMS
def test_a_usage_alone_after_the_last_text_counts_and_waits_too(request_: Request) -> None:
    stream = wire(request_, chunk(plain(2, 3), finish="STOP"), {"usageMetadata": plain(2, 9)})

    flowed, held, report = run(STREAM_DIALECT, request_, [stream])

    assert (flowed, held) == (b"", stream)
    assert report.usage == Usage(input_uncached=2, output=9)


@FORMS
def test_a_stream_is_finished_when_every_choice_is(request_: Request) -> None:
    two = streamed(request_.query, candidateCount=2)
    first = [chunk(plain(2, 3)), chunk(plain(2, 5), finish="STOP")]

    _, _, half = run(STREAM_DIALECT, two, [wire(two, *first)])
    _, _, whole = run(STREAM_DIALECT, two, [wire(two, *first, chunk(plain(2, 9), finish="STOP", index=1))])

    assert (half.usage, half.problem, half.finished) == (None, "stream_unfinished", False)
    assert whole.usage == Usage(input_uncached=2, output=9)


@FORMS
def test_a_prompt_that_was_blocked_ends_an_answer_and_is_billed_by_its_usage(request_: Request) -> None:
    document = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 8, "totalTokenCount": 8},
    }

    _, _, report = run(STREAM_DIALECT, request_, [wire(request_, document)])

    assert report.usage == Usage(input_uncached=8)


@FORMS
@pytest.mark.parametrize(
    "chunks,problem",
    [
        ([], "stream_unfinished"),
        (THREE[:2], "stream_unfinished"),
        ([chunk(plain(2, 3)), chunk(finish="STOP")], "usage_missing"),
        ([THREE[0], {"error": {"code": 503}}], "error_in_stream"),
        ([*THREE, {"error": {"code": 503}}], "error_in_stream"),
        ([THREE[0], 5, THREE[2]], "frame_unreadable"),
    ],
)
def test_a_stream_that_is_not_whole_is_a_floor_and_no_bill(request_: Request, chunks: Any, problem: str) -> None:
    _, _, report = run(STREAM_DIALECT, request_, [wire(request_, *chunks)])

    assert (report.usage, report.problem) == (None, problem)


@FORMS
@given(data=st.data())
def test_a_stream_reads_the_same_however_it_is_cut_into_pieces(request_: Request, data: st.DataObject) -> None:
    stream = wire(request_, *THREE)
    whole = run(STREAM_DIALECT, request_, [stream])

    pieces = split(stream, data.draw(st.lists(st.integers(0, 10_000), max_size=20)))

    assert run(STREAM_DIALECT, request_, pieces) == whole
    assert run(STREAM_DIALECT, request_, [bytes([byte]) for byte in stream]) == whole


@FORMS
def test_a_stream_that_is_cut_anywhere_before_its_last_chunk_is_not_settled(request_: Request) -> None:
    stream = wire(request_, *THREE)
    end = stream.index(b"three")

    for length in range(end):
        flowed, _, report = run(STREAM_DIALECT, request_, [stream[:length]])
        assert report.usage is None
        assert not report.finished
        assert b"three" not in flowed


def test_an_array_that_was_never_closed_is_not_settled() -> None:
    """What is missing may have been a greater usage."""
    stream = wire(ARRAY, *THREE)

    for length in range(stream.rindex(b"]")):
        assert run(STREAM_DIALECT, ARRAY, [stream[:length]])[2].usage is None
    for length in range(stream.rindex(b"]") + 1, len(stream) + 1):
        assert run(STREAM_DIALECT, ARRAY, [stream[:length]])[2].usage == Usage(input_uncached=2, output=12)


@given(data=st.data())
def test_an_array_that_breaks_off_is_closed_with_the_error_as_its_last_element(data: st.DataObject) -> None:
    stream = wire(ARRAY, *data.draw(st.sampled_from([THREE, THREE[:2], THREE[:1], ()])))
    cut = stream[: data.draw(st.integers(0, len(stream)))]
    meter = STREAM_DIALECT.meter(ARRAY)
    sent = meter.feed(cut)
    last = meter.end()
    if meter.report().finished:
        assert sent + last == cut
        return

    *chunks, error = json.loads(sent + last + meter.interrupted(b'{"error":{"code":502}}'))

    assert error == {"error": {"code": 502}}
    assert chunks == list(THREE[: len(chunks)])


def test_an_array_whose_end_is_held_back_breaks_off_with_what_was_held() -> None:
    """The connection broke after the last chunk: nobody took what ``end`` returned."""
    stream = wire(ARRAY, chunk(finish="STOP"))
    meter = STREAM_DIALECT.meter(ARRAY)
    assert meter.feed(stream) == b""
    meter.end()

    assert json.loads(meter.interrupted(b'{"error":{}}')) == [chunk(finish="STOP"), {"error": {}}]


def test_an_error_within_an_array_passes_and_the_array_is_closed() -> None:
    stream = wire(ARRAY, THREE[0], {"error": {"code": 503}})

    flowed, held, _ = run(STREAM_DIALECT, ARRAY, [stream])

    assert flowed + held == stream


def test_events_that_break_off_are_followed_by_the_error_as_an_event() -> None:
    meter = STREAM_DIALECT.meter(EVENTS)
    sent = meter.feed(events(THREE[0]) + b'data: {"cand') + meter.end()

    assert (sent + meter.interrupted(b"{}")).split(b"\n\n")[-2] == b"data: {}"


@pytest.mark.parametrize("stream", [b"{}", b"<html>", b'["a"]', b"[{} {}]", b"[[{}]]", b",", b"]"])
def test_what_is_no_array_of_objects_passes_unread_and_is_not_settled(stream: bytes) -> None:
    flowed, _, report = run(STREAM_DIALECT, ARRAY, [stream])

    assert stream.startswith(flowed)
    assert report.usage is None
    assert not report.finished


@pytest.mark.parametrize("chunks", list(permutations(THREE[:2])))
def test_the_order_of_reports_does_not_matter(chunks: Any) -> None:
    _, _, report = run(STREAM_DIALECT, EVENTS, [wire(EVENTS, *chunks, THREE[2])])

    assert report.usage == Usage(input_uncached=2, output=12)


counts: st.SearchStrategy[Any] = st.integers(0, 10**6) | st.sampled_from([None, -1, "5", 1.5, 2**53, True, [], 0])
usages = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount", "totalTokenCount"), counts) | {
        name: st.lists(
            st.fixed_dictionaries({"modality": st.sampled_from(["TEXT", "AUDIO", "IMAGE", "VIDEO"]), "tokenCount": counts}),
            max_size=3,
        )
        for name in ("promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails", "toolUsePromptTokensDetails")
    },
)  # fmt: skip


@given(usage=usages)
def test_the_buckets_are_never_less_than_the_counts_they_come_from(usage: dict[str, Any]) -> None:
    report = answer(usage)
    if report.usage is None:
        return
    counted = sum(
        usage.get(name) or 0
        for name in ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
    )

    assert report.usage.total == max(counted, usage.get("totalTokenCount") or 0)
    assert report.usage.input_total == (usage["promptTokenCount"] or 0) + (usage.get("toolUsePromptTokenCount") or 0)


@FORMS
@given(first=usages | json_values, second=usages)
def test_a_further_report_never_lowers_a_bucket_s_count(request_: Request, first: Any, second: dict[str, Any]) -> None:
    _, _, one = run(STREAM_DIALECT, request_, [wire(request_, chunk(second, finish="STOP"))])
    _, _, both = run(STREAM_DIALECT, request_, [wire(request_, chunk(first), chunk(second, finish="STOP"))])
    seen, merged = one.usage or one.partial, both.usage or both.partial

    assert merged is None or seen is None or merged.total >= seen.total or both.usage is None
    assert all(0 <= getattr(merged, bucket) <= COUNT_MAX for bucket in BUCKETS if merged is not None)
