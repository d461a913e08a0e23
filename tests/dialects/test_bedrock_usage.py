"""What an answer of Converse used: vectors by hand, in the shapes of botocore's service model, and hostile values."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.kind import KINDS
from spendgate.core.request import RequestFacts
from spendgate.core.usage import Usage
from spendgate.dialects import bedrock, bedrock_messages, bedrock_usage
from spendgate.dialects.dialect import Request
from spendgate.dialects.eventstream import event, exception

FACTS = RequestFacts(dialect="bedrock-converse", model="m", text_bytes=0)
PLAIN = Request(facts=FACTS, body={})
LONG = Request(facts=RequestFacts(dialect="bedrock-converse", model="m", text_bytes=0, cache_write="long"), body={})
USAGE: dict[str, Any] = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
HOSTILE = st.one_of(
    st.integers(max_value=-1), st.floats(allow_nan=True), st.text(max_size=3), st.booleans(), st.just([]), st.just({})
)
# By hand: (usage as reported, our buckets). inputTokens is what was neither read from nor written to the cache.
VECTORS = [
    (USAGE, Usage(input_uncached=10, output=5)),
    (
        USAGE | {"totalTokens": 1315, "cacheReadInputTokens": 1000, "cacheWriteInputTokens": 300},
        Usage(input_uncached=10, cache_read=1000, cache_write=300, output=5),
    ),
    (
        USAGE
        | {
            "cacheWriteInputTokens": 300,
            "cacheDetails": [{"ttl": "5m", "inputTokens": 100}, {"ttl": "1h", "inputTokens": 200}],
        },
        Usage(input_uncached=10, cache_write=100, cache_write_long=200, output=5),
    ),
    # A total that holds more than its parts is output, the dearest.
    (USAGE | {"totalTokens": 40}, Usage(input_uncached=10, output=30)),
    (
        USAGE | {"cacheDetails": [{"ttl": "9d", "inputTokens": 7}]},
        Usage(input_uncached=10, cache_write_long=7, output=5),
    ),
]


def answer(usage: Any, **fields: Any) -> bytes:
    return json.dumps({"output": {}, "stopReason": "end_turn", "usage": usage, **fields}).encode()


def stream(usage: Any, **fields: Any) -> bytes:
    return b"".join(
        (
            event("messageStart", b'{"role":"assistant"}'),
            event("contentBlockDelta", b'{"delta":{"text":"Hi"},"contentBlockIndex":0}'),
            event("messageStop", b'{"stopReason":"end_turn"}'),
            event("metadata", json.dumps({"usage": usage, **fields}).encode()),
        )
    )


@pytest.mark.parametrize(("usage", "buckets"), VECTORS)
def test_whole_and_streamed_give_the_buckets_counted_by_hand(usage: dict[str, Any], buckets: Usage) -> None:
    meter = bedrock.DIALECT.meter(PLAIN)
    meter.feed(stream(usage))
    assert bedrock_usage.report(answer(usage), PLAIN).usage == buckets
    assert meter.report().usage == buckets
    assert meter.report().finished


def test_a_write_without_a_lifetime_has_the_dearest_that_was_asked_for() -> None:
    usage = bedrock_usage.report(answer(USAGE | {"cacheWriteInputTokens": 9}), LONG).usage
    assert usage is not None
    assert (usage.cache_write, usage.cache_write_long) == (0, 9)


def test_the_event_with_the_usage_is_held_back_and_all_else_flows() -> None:
    meter = bedrock.DIALECT.meter(PLAIN)
    whole = stream(USAGE)
    flowed = meter.feed(whole)
    assert flowed == whole[: len(flowed)]
    assert b"messageStop" in flowed
    assert b"metadata" not in flowed
    assert flowed + meter.end() == whole


@given(cut=st.integers(min_value=0, max_value=600), tail=st.binary(max_size=30))
def test_byte_by_byte_is_the_same_as_all_at_once(cut: int, tail: bytes) -> None:
    data = stream(USAGE)[:cut] + tail
    fast, slow = bedrock.DIALECT.meter(PLAIN), bedrock.DIALECT.meter(PLAIN)
    at_once = fast.feed(data)
    in_bytes = b"".join(slow.feed(data[at : at + 1]) for at in range(len(data)))
    assert at_once + fast.end() == in_bytes + slow.end()
    assert fast.report() == slow.report()


@given(name=st.sampled_from([*USAGE, "cacheReadInputTokens", "cacheWriteInputTokens"]), value=HOSTILE)
def test_a_hostile_count_is_no_bill(name: str, value: Any) -> None:
    """What is no count settles in nothing; the reservation keeps its money."""
    found = bedrock_usage.report(answer(USAGE | {name: value}), PLAIN)
    if found.usage is not None:
        assert isinstance(value, float)
        assert value == int(value) >= 0
    else:
        assert found.problem in ("usage_unusable", "answer_unreadable")


@pytest.mark.parametrize("details", ["x", [1], [{"ttl": "5m"}], [{"ttl": ["5m"], "inputTokens": -1}]])
def test_hostile_details_of_the_cache_are_no_bill(details: Any) -> None:
    assert bedrock_usage.report(answer(USAGE | {"cacheDetails": details}), PLAIN).usage is None


@pytest.mark.parametrize(
    ("body", "problem"),
    [(b"{", "answer_unreadable"), (b"[]", "answer_unreadable"), (answer(None), "usage_missing"),
     (answer(USAGE, trace={"guardrail": {"inputAssessment": {}}}), "usage_guardrail"),
     (answer({"inputTokens": 1}), "usage_unusable")],
)  # fmt: skip
def test_an_answer_without_a_bill_says_why(body: bytes, problem: str) -> None:
    found = bedrock_usage.report(body, PLAIN)
    assert (found.usage, found.problem) == (None, problem)


def test_tier_latency_and_the_model_behind_a_router_are_told() -> None:
    found = bedrock_usage.report(
        answer(
            USAGE,
            serviceTier={"type": "flex"},
            performanceConfig={"latency": "optimized"},
            trace={"promptRouter": {"invokedModelId": "x"}},
        ),
        PLAIN,
    )
    assert (found.service_tier, found.speed, found.model) == ("flex", "optimized", "x")


@pytest.mark.parametrize(
    ("tail", "problem"),
    [
        (b"", "stream_unfinished"),
        (exception("throttlingException", b"{}"), "error_in_stream"),
        (event("metadata", b"no json"), "frame_unreadable"),
        (b"no frame at all", "frame_unreadable"),
    ],
)
def test_a_stream_without_its_end_says_why(tail: bytes, problem: str) -> None:
    meter = bedrock.DIALECT.meter(PLAIN)
    meter.feed(event("messageStart", b"{}") + tail)
    meter.end()
    assert (meter.report().usage, meter.report().problem) == (None, problem)


# -- Claude, by InvokeModel

CLAUDE = Request(
    facts=RequestFacts(dialect="anthropic", model="m", text_bytes=0, stream=True),
    body={"model": "m", "messages": [], "max_tokens": 9, "stream": True, "service_tier": "auto"},
    headers=(("anthropic-version", "2023-06-01"), ("anthropic-beta", "a,b")),
    query="beta=true",
    kind=KINDS["bedrock-anthropic"],
)


def chunk(document: Any) -> bytes:
    return event("chunk", json.dumps({"bytes": b64encode(json.dumps(document).encode()).decode()}).encode())


EVENTS = [
    {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 4, "output_tokens": 1}}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 6}},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 4}},
]


def test_claude_s_request_is_that_of_invoke_model() -> None:
    dialect = bedrock_messages.DIALECT
    assert dialect.upstream_path(CLAUDE, "a:0") == "/model/a%3A0/invoke-with-response-stream"
    sent = json.loads(dialect.outgoing(CLAUDE, "a:0", 9))
    assert sent == {
        "messages": [],
        "max_tokens": 9,
        "anthropic_beta": ["a", "b"],
        "anthropic_version": "bedrock-2023-05-31",
    }
    assert dict(dialect.headers(CLAUDE)) == {"accept": "application/vnd.amazon.eventstream"}
    assert dialect.query(CLAUDE) == ""


def test_claude_s_chunks_become_the_events_that_the_caller_reads() -> None:
    meter = bedrock_messages.DIALECT.meter(CLAUDE)
    data = b"".join(chunk(one) for one in EVENTS)
    flowed = b"".join(meter.feed(data[at : at + 1]) for at in range(len(data)))
    assert flowed.startswith(b"event: message_start\ndata: {")
    assert b"message_stop" not in flowed
    assert meter.end().startswith(b"event: message_stop\n")
    assert meter.report().usage == Usage(input_uncached=4, output=6)


@pytest.mark.parametrize(
    "frame",
    [event("chunk", b"{}"), event("chunk", b'{"bytes":"*"}'), event("chunk", b'{"bytes":"aGk="}'), b"no frame at all"],
)
def test_a_chunk_that_cannot_be_read_leaves_no_bill(frame: bytes) -> None:
    meter = bedrock_messages.DIALECT.meter(CLAUDE)
    meter.feed(b"".join(chunk(one) for one in EVENTS[:2]) + frame)
    meter.end()
    assert meter.report().usage is None


def test_an_exception_becomes_an_error_of_the_stream_and_other_frames_nothing() -> None:
    meter = bedrock_messages.DIALECT.meter(CLAUDE)
    assert meter.feed(event("initial-response", b"{}")) == b""
    assert b"throttlingException" in meter.feed(exception("throttlingException", b"{}"))
    assert meter.report().problem == "error_in_stream"
    assert meter.interrupted(b"x") == b"x"
