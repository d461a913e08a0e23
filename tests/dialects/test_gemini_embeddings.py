"""Gemini's embeddings: what is read, what is sent, and what an answer says of its usage."""

import base64
import json
from typing import Any

import pytest

from spendgate.core.media import Media
from spendgate.core.usage import Usage
from spendgate.dialects.dialect import Request
from spendgate.dialects.gemini_embeddings import BATCH_DIALECT, DIALECT
from spendgate.dialects.registry import ENTRIES
from spendgate.errors import CostBoundUnknown, RequestInvalid
from tests.dialects.builders import parsed

PATH = {"model": "house-model"}
TEXT: dict[str, Any] = {"parts": [{"text": "hello"}]}
PNG = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"\x89PNG" + bytes(30)).decode()}}
WAV = {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}
VECTOR = {"values": [0.5, 1]}


def one(**changes: Any) -> Request:
    return DIALECT.read(parsed({"content": TEXT} | changes), {}, "", PATH)


def several(*requests: dict[str, Any], **changes: Any) -> Request:
    return BATCH_DIALECT.read(parsed({"requests": list(requests)} | changes), {}, "", PATH)


def test_the_facts_of_one_content() -> None:
    facts = one(title="é", taskType="RETRIEVAL_DOCUMENT", outputDimensionality=64).facts

    assert (facts.dialect, facts.model, facts.inputs) == ("gemini-embeddings", "house-model", 1)
    assert (facts.text_bytes, facts.parts, facts.output_cap, facts.has_output) == (len("hello") + 2, 2, 0, False)


def test_the_facts_of_several_contents_add_up() -> None:
    facts = several({"content": TEXT, "title": "t"}, {"content": {"parts": [{"text": "ab"}, PNG]}}).facts

    assert (facts.dialect, facts.inputs, facts.text_bytes) == ("gemini-batch-embeddings", 2, 5 + 1 + 2 + 9)
    assert facts.media == (Media(kind="image", field="requests[1].content.parts[1].inlineData"),)


def test_what_leaves_names_the_candidate_s_model_in_every_request() -> None:
    body = several({"content": TEXT, "model": "models/house-model"}, {"content": TEXT, "task_type": "X"})

    assert json.loads(BATCH_DIALECT.outgoing(body, "embed-x", None)) == {
        "requests": [
            {"content": TEXT, "model": "models/embed-x"},
            {"content": TEXT, "taskType": "X", "model": "models/embed-x"},
        ]
    }
    assert json.loads(DIALECT.outgoing(one(), "embed-x", 9)) == {"content": TEXT, "model": "models/embed-x"}


def test_each_is_served_by_its_own_path() -> None:
    assert DIALECT.upstream_path(one(), "m") == "/v1beta/models/m:embedContent"
    assert BATCH_DIALECT.upstream_path(one(), "m") == "/v1beta/models/m:batchEmbedContents"
    assert "/v1beta/models/{model}:batchEmbedContents" in ENTRIES[BATCH_DIALECT.name].paths


@pytest.mark.parametrize(
    "body,field",
    [
        ({"requests": []}, "requests"),
        ({"requests": [{"content": TEXT, "model": "models/other"}]}, "requests[0].model"),
        ({"requests": [{"content": TEXT}], "model": "other"}, "model"),
        ({"requests": [{}]}, "requests[0].content"),
        ({}, "requests"),
    ],
)
def test_what_cannot_be_read_is_invalid(body: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        BATCH_DIALECT.read(parsed(body), {}, "", PATH)

    assert refused.value.facts.field == field


def test_a_query_is_invalid() -> None:
    with pytest.raises(RequestInvalid, match="query"):
        DIALECT.read(parsed({"content": TEXT}), {}, "alt=sse", PATH)


@pytest.mark.parametrize(
    "part",
    [
        {"fileData": {"fileUri": "u"}},
        {"inlineData": {"mimeType": "application/pdf", "data": ""}},
        {"inlineData": {"mimeType": "video/mp4", "data": ""}},
        {"text": "", "thoughtSignature": "a"},
    ],
)
def test_media_without_a_rate_of_their_own_are_refused_by_name(part: dict[str, Any]) -> None:
    with pytest.raises(CostBoundUnknown, match=r"content\.parts\[0\]"):
        one(content={"parts": [part]})


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(CostBoundUnknown, match="embedContentConfig"):
        one(embedContentConfig={})


# Recorded shapes: pydantic-ai#6781 and bifrost#7295, gemini-embedding-2, July and September 2026.
@pytest.mark.parametrize(
    "usage,expected",
    [
        (
            {"promptTokenCount": 5, "promptTokenDetails": [{"modality": "TEXT", "tokenCount": 5}]},
            Usage(input_uncached=5),
        ),
        (
            {"promptTokenCount": 258, "promptTokenDetails": [{"modality": "IMAGE", "tokenCount": 258}]},
            Usage(image_input=258),
        ),
        (
            {"promptTokenCount": 9, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 4}]},
            Usage(input_uncached=5, audio_input=4),
        ),
        ({"promptTokenCount": 5, "totalTokenCount": 7}, Usage(input_uncached=7)),
    ],
)
def test_the_counts_of_an_answer(usage: dict[str, Any], expected: Usage) -> None:
    report = DIALECT.report(json.dumps({"embedding": VECTOR, "usageMetadata": usage}).encode(), one())

    assert (report.usage, report.problem, report.finished, report.in_full) == (expected, None, True, False)


@pytest.mark.parametrize("usage", [{}, {"usageMetadata": {}}, {"usageMetadata": None}])
def test_an_answer_that_says_nothing_of_its_usage_is_charged_in_full(usage: dict[str, Any]) -> None:
    report = BATCH_DIALECT.report(json.dumps({"embeddings": [VECTOR]} | usage).encode(), one())

    assert (report.usage, report.problem, report.finished, report.in_full) == (None, "usage_missing", True, True)


@pytest.mark.parametrize("part,missing", [(PNG, "AUDIO"), (WAV, "IMAGE")])
def test_a_count_that_may_hold_media_unnamed_is_charged_in_full(part: dict[str, Any], missing: str) -> None:
    request = one(content={"parts": [part]})
    usage = {"promptTokenCount": 9, "promptTokenDetails": [{"modality": missing, "tokenCount": 4}]}
    report = DIALECT.report(json.dumps({"embedding": VECTOR, "usageMetadata": usage}).encode(), request)

    assert (report.usage, report.problem, report.in_full) == (None, "usage_without_modalities", True)


@pytest.mark.parametrize(
    "usage",
    [
        7,
        [1],
        {"promptTokenCount": -1},
        {"promptTokenCount": "5"},
        {"totalTokenCount": True, "promptTokenCount": 5},
        {"promptTokenDetails": []},
        {"promptTokenCount": 5, "promptTokenDetails": [{"modality": "IMAGE", "tokenCount": -2}]},
        {"promptTokenCount": 5, "promptTokenDetails": 5},
    ],
)
def test_counts_that_cannot_be_trusted_are_no_bill(usage: Any) -> None:
    report = DIALECT.report(json.dumps({"embedding": VECTOR, "usageMetadata": usage}).encode(), one())

    assert (report.usage, report.problem, report.in_full) == (None, "usage_unusable", False)


@pytest.mark.parametrize(
    "body,problem",
    [
        (b"[", "answer_unreadable"),
        (b"{}", "answer_unreadable"),
        (b'{"embedding": {}}', "answer_unreadable"),
        (b'{"error": {"code": 500}}', "error_in_answer"),
    ],
)
def test_an_answer_that_is_none_is_not_finished(body: bytes, problem: str) -> None:
    report = DIALECT.report(body)

    assert (report.usage, report.problem, report.finished, report.in_full) == (None, problem, False, False)


def test_a_stream_has_no_end_that_is_known() -> None:
    meter = DIALECT.meter(one())
    meter.feed(b'[{"embedding": {"values": [1]}}]')
    meter.end()

    assert not meter.report().finished
