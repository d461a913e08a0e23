"""Bedrock's Converse: what of a request costs, and what is refused by name."""

import json
from typing import Any

import pytest

from spendgate.core.kind import KINDS, caps_reasoning, kind_of
from spendgate.core.request import RequestFacts
from spendgate.core.route import Provider
from spendgate.dialects import bedrock
from spendgate.dialects.dialect import Request
from spendgate.errors import (
    BudgetBusy,
    CostBoundUnknown,
    InternalFault,
    LedgerUnavailable,
    OutcomeUnknown,
    OverBudget,
    Refused,
    RequestInvalid,
)
from spendgate.providers.signing import region_of

MODEL = {"model": "amazon.nova-lite-v1:0"}


def asked(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks) or [{"text": "Hello"}]}], **fields}


def read(*blocks: dict[str, Any], **fields: Any) -> Request:
    return bedrock.DIALECT.read(asked(*blocks, **fields), {}, "", MODEL)


def facts(*blocks: dict[str, Any], **fields: Any) -> RequestFacts:
    return read(*blocks, **fields).facts


def test_text_is_counted_in_bytes_and_json_apart() -> None:
    found = facts({"text": "abc"}, {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}})
    assert (found.text_bytes, found.json_bytes, found.parts) == (3 + 3, len('{"a":1}'), 3)


def test_tools_their_choice_and_their_results_are_counted() -> None:
    tool = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
    result = {"toolResult": {"toolUseId": "t", "content": [{"json": {"a": 1}}, {"text": "x"}], "status": "success"}}
    found = facts(result, toolConfig={"tools": [tool, {"cachePoint": {"type": "default"}}], "toolChoice": {"any": {}}})
    assert (found.tools, found.tool_results, found.text_bytes, found.cache_write) == (1, 1, 2, "short")


def test_the_dearest_lifetime_of_a_cache_point_counts() -> None:
    points = [{"cachePoint": {"type": "default", "ttl": "1h"}}, {"cachePoint": {"type": "default", "ttl": "5m"}}]
    assert facts({"text": "x"}, *points).cache_write == "long"
    assert facts({"text": "x"}, system=[{"text": "y"}, points[1]]).cache_write == "short"


def test_media_count_wherever_they_stand() -> None:
    image = {"image": {"format": "png", "source": {"bytes": "aGk="}}}
    page = {"document": {"name": "d", "format": "pdf", "source": {"bytes": "aGk="}}}
    found = facts(image, page, {"toolResult": {"toolUseId": "t", "content": [image]}})
    assert {(one.kind, one.count) for one in found.media} == {("image", 2), ("document", 1)}


def test_thinking_that_is_not_shown_is_counted_as_such() -> None:
    shown = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}}
    hidden = {"reasoningContent": {"redactedContent": "aGk="}}
    assert facts(shown).media == ()
    assert [one.kind for one in facts(hidden).media] == ["reasoning"]


def test_the_cap_is_stamped_where_there_is_none_and_kept_where_it_is_lower() -> None:
    assert json.loads(bedrock.outgoing(read(), "m", 50))["inferenceConfig"] == {"maxTokens": 50}
    capped = read(inferenceConfig={"maxTokens": 7, "temperature": 0})
    assert json.loads(bedrock.outgoing(capped, "m", 50))["inferenceConfig"] == {"maxTokens": 7, "temperature": 0}
    assert json.loads(bedrock.outgoing(read(), "m", None))["inferenceConfig"] == {}


def test_tier_latency_and_schema_are_told() -> None:
    schema = {"type": "json_schema", "structure": {"jsonSchema": {"schema": '{"type":"object"}'}}}
    found = facts(
        serviceTier={"type": "flex"},
        performanceConfig={"latency": "optimized"},
        outputConfig={"textFormat": schema},
        additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 1024}},
        inferenceConfig={"stopSequences": ["END"]},
    )
    assert (found.service_tier, found.speed, found.structured) == ("flex", "optimized", True)
    assert facts().service_tier == "default"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"guardrailConfig": {}}, "guardrailConfig"),
        ({"promptVariables": {}}, "promptVariables"),
        ({"somethingNew": 1}, "somethingNew"),
        ({"additionalModelRequestFields": {"n": 2}}, "additionalModelRequestFields.n"),
        ({"serviceTier": {"type": "reserved"}}, "serviceTier.type"),
        ({"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}, "toolConfig.tools[0].systemTool"),
        (
            {
                "outputConfig": {
                    "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": '"$ref"'}}}
                }
            },
            "outputConfig.textFormat.structure.jsonSchema.schema",
        ),
    ],
)
def test_a_field_without_a_bound_is_refused_by_name(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(CostBoundUnknown) as caught:
        read(**fields)
    assert caught.value.facts.field == field


@pytest.mark.parametrize(
    "block",
    [
        {"video": {}},
        {"audio": {}},
        {"guardContent": {}},
        {"citationsContent": {}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {}, "type": "server_tool_use"}},
    ],
)
def test_a_block_without_a_bound_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(CostBoundUnknown, match=r"messages\[0\]\.content\[0\]"):
        read(block)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        asked({}),
        asked({"text": "a", "image": {"format": "png", "source": {"bytes": ""}}}),
        asked(inferenceConfig={"maxTokens": 0}),
        asked(inferenceConfig={"maxTokens": True}),
    ],
)
def test_what_cannot_be_read_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RequestInvalid):
        bedrock.DIALECT.read(body, {}, "", MODEL)


def test_a_query_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="query"):
        bedrock.DIALECT.read(asked(), {}, "a=b", MODEL)


@pytest.mark.parametrize("held", ["prompt/ABC", "prompt-router/x", "default-prompt-router/anthropic.claude:1"])
def test_what_the_server_holds_under_an_arn_is_refused(held: str) -> None:
    with pytest.raises(CostBoundUnknown, match="modelId"):
        bedrock.STREAM_DIALECT.read(asked(), {}, "", {"model": f"arn:aws:bedrock:us-east-1:1:{held}"})


def test_a_model_is_escaped_in_the_path_as_botocore_does_it() -> None:
    arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x"
    path = bedrock.STREAM_DIALECT.upstream_path(read(), arn)
    assert path == ("/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx/converse-stream")
    assert bedrock.DIALECT.upstream_path(read(), "a.b-v1:0") == "/model/a.b-v1%3A0/converse"


@pytest.mark.parametrize(
    ("refused", "status", "code"),
    [
        (OverBudget("no"), 400, "ServiceQuotaExceededException"),
        (OutcomeUnknown("?", status=504), 424, "ModelErrorException"),
        (InternalFault("!"), 424, "ModelErrorException"),
        (BudgetBusy("soon"), 429, "ThrottlingException"),
        (LedgerUnavailable("later"), 503, "ServiceUnavailableException"),
    ],
)
def test_botocore_repeats_only_what_may_pass(refused: Refused, status: int, code: str) -> None:
    assert bedrock.DIALECT.status(refused) == status
    assert dict(bedrock.DIALECT.refusal_headers(refused))["x-amzn-errortype"] == code
    assert bedrock.DIALECT.refusal(refused, "01ABC")["__type"] == code


def test_a_cap_holds_the_reasoning_of_models_that_are_known_to_keep_it_inside() -> None:
    host = Provider(name="b", dialect="bedrock", base_url="https://bedrock-runtime.us-east-1.amazonaws.com")
    assert kind_of(host) is KINDS["bedrock"]
    assert caps_reasoning(host, "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert not caps_reasoning(host, "openai.gpt-oss-120b-1:0")


def test_claude_at_bedrock_is_known_by_its_host() -> None:
    host = Provider(name="b", dialect="anthropic", base_url="https://bedrock-runtime.eu-west-1.amazonaws.com")
    assert kind_of(host) is KINDS["bedrock-anthropic"]


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://bedrock-runtime.eu-central-1.amazonaws.com/model/x/converse", "eu-central-1"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com", "us-east-1"),
        ("http://127.0.0.1:8000", None),
    ],
)
def test_the_region_is_that_of_the_host(url: str, region: str | None) -> None:
    assert region_of(url) == region
