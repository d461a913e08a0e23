"""boto3's own client against the running gateway, and Anthropic's, whose provider is Bedrock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from tests.gateway.stand import PROVIDER_KEY, Stand

ROOMY: Final = "$: {limits: {usd: {day: 1}}}"
TIGHT: Final = '$: {limits: {usd: {day: "0.0002"}}}'
MODEL: Final = "us.anthropic.claude-demo-v1:0"
SERVED: Final = "anthropic.claude-demo"
PROFILE: Final = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x"
OPEN: Final[list[Any]] = []
TOOL: Final = {
    "toolSpec": {
        "name": "weather",
        "description": "Tells the weather.",
        "inputSchema": {"json": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
}


class Boto:
    """boto3's client with a key where its users put it, and how often it tried."""

    def __init__(self, stand: Stand) -> None:
        # As it is by default: five attempts at what botocore takes for passing.
        self.client: Any = boto3.client("bedrock-runtime", region_name="us-east-1", config=Config(read_timeout=20))
        OPEN.append(self.client)
        self.attempts = 0
        self.client.meta.events.register("before-send.bedrock-runtime", self._count)
        self._stand = stand

    def _count(self, **_: Any) -> None:
        self.attempts += 1

    def converse(self, text: str = "Hello", model: str = MODEL, **fields: Any) -> Any:
        return self.client.converse(modelId=model, **_asked(text), **fields)

    def stream(self, text: str = "Hello", model: str = MODEL, **fields: Any) -> list[dict[str, Any]]:
        stream = self.client.converse_stream(modelId=model, **_asked(text), **fields)["stream"]
        with closing(stream):
            return list(stream)


def _asked(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"text": text}]}], "inferenceConfig": {"maxTokens": 20}}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, stand: Stand) -> Iterator[pytest.MonkeyPatch]:
    before = len(OPEN)
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", stand.url)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "an-example-of-a-secret")
    yield monkeypatch
    while len(OPEN) > before:
        OPEN.pop().close()


def boto(stand: Stand, environment: pytest.MonkeyPatch, budgets: str = ROOMY) -> Boto:
    environment.setenv("AWS_BEARER_TOKEN_BEDROCK", stand.open(budgets))
    return Boto(stand)


def settled_as_billed(stand: Stand) -> None:
    """The ledger has exactly what the provider billed, and every counter is the sum of its reservations."""
    stand.until(lambda: all(one.state != "in_flight" for one in stand.reservations()))
    assert {one.state for one in stand.reservations()} == {"settled"}
    assert sum(one.actual.usd for one in stand.reservations() if one.actual) == stand.book.billed_picodollars > 0
    stand.audited()


def code_of(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def test_boto3_gets_its_answer_and_the_ledger_the_provider_s_bill(
    stand: Stand, environment: pytest.MonkeyPatch
) -> None:
    answer = boto(stand, environment).converse(system=[{"text": "Be brief."}])
    assert answer["output"]["message"]["content"][0]["text"].startswith("The demo provider")
    assert answer["usage"]["outputTokens"] == 20
    (arrival,) = stand.provider.arrivals
    assert arrival.path == f"/model/{SERVED}/converse"
    assert arrival.headers["authorization"] == f"Bearer {PROVIDER_KEY}"
    assert arrival.headers["accept"] == "application/json"
    settled_as_billed(stand)


def test_boto3_streams_and_the_usage_comes_last(stand: Stand, environment: pytest.MonkeyPatch) -> None:
    events = boto(stand, environment).stream()
    text = "".join(event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event)
    assert text.startswith("The demo provider")
    assert events[-1]["metadata"]["usage"]["outputTokens"] == 12
    assert stand.reservation().dialect == "bedrock-converse-stream"
    settled_as_billed(stand)


def test_a_stream_may_come_byte_by_byte(stand: Stand, environment: pytest.MonkeyPatch) -> None:
    client = boto(stand, environment)
    stand.behave("byte_by_byte")
    assert "metadata" in client.stream()[-1]
    settled_as_billed(stand)


def test_boto3_calls_a_tool_and_brings_its_result_back(stand: Stand, environment: pytest.MonkeyPatch) -> None:
    client = boto(stand, environment)
    tools: dict[str, Any] = {"toolConfig": {"tools": [TOOL]}}
    asked = client.converse("Use the tool.", **tools)["output"]["message"]
    result = {"toolUseId": asked["content"][0]["toolUse"]["toolUseId"], "content": [{"json": {"sky": "blue"}}]}
    messages = [*_asked("Use the tool.")["messages"], asked, {"role": "user", "content": [{"toolResult": result}]}]
    client.client.converse(modelId=MODEL, messages=messages, inferenceConfig={"maxTokens": 20}, **tools)
    assert [one.asked.tool_calls for one in stand.reservations()] == [0, 1]
    settled_as_billed(stand)


def test_an_arn_that_a_route_maps_is_a_model(stand: Stand, environment: pytest.MonkeyPatch) -> None:
    boto(stand, environment).converse(model=PROFILE)
    assert stand.provider.arrivals[0].path == f"/model/{SERVED}/converse"
    settled_as_billed(stand)


def test_an_absent_cap_is_stamped(stand: Stand, environment: pytest.MonkeyPatch) -> None:
    client = boto(stand, environment)
    client.client.converse(modelId=MODEL, messages=_asked("Hello")["messages"])
    assert stand.calls[0].output_cap == 4096


@pytest.mark.parametrize("how", ["converse", "stream"])
def test_a_refusal_reaches_boto3_once(stand: Stand, environment: pytest.MonkeyPatch, how: str) -> None:
    client = boto(stand, environment, TIGHT)
    with pytest.raises(ClientError, match="request_too_expensive") as caught:
        getattr(client, how)()
    assert code_of(caught.value) == "ServiceQuotaExceededException"
    assert caught.value.response["ResponseMetadata"]["HTTPHeaders"]["x-spendgate-code"] == "request_too_expensive"
    assert (client.attempts, stand.hits) == (1, 0)


@pytest.mark.parametrize(
    ("model", "fields", "code", "says"),
    [
        ("arn:aws:bedrock:us-east-1:111122223333:prompt/ABCDEFGHIJ:1", {}, "ServiceQuotaExceededException", "modelId"),
        ("nobody", {}, "ResourceNotFoundException", "nobody"),
        (
            MODEL,
            {"guardrailConfig": {"guardrailIdentifier": "abc", "guardrailVersion": "1"}},
            "ServiceQuotaExceededException",
            "guardrailConfig",
        ),
        (MODEL, {"performanceConfig": {"latency": "optimized"}}, "ServiceQuotaExceededException", "optimized"),
        (MODEL, {"serviceTier": {"type": "reserved"}}, "ServiceQuotaExceededException", "reserved"),
        (MODEL, {"additionalModelRequestFields": {"n": 8}}, "ServiceQuotaExceededException", "Fields.n"),
    ],
)
def test_what_has_no_bound_is_refused_by_name(
    stand: Stand, environment: pytest.MonkeyPatch, model: str, fields: dict[str, Any], code: str, says: str
) -> None:
    client = boto(stand, environment)
    with pytest.raises(ClientError, match=says) as caught:
        client.converse(model=model, **fields)
    assert code_of(caught.value) == code
    assert (client.attempts, stand.hits) == (1, 0)


def test_a_wrong_key_is_told_once(stand: Stand, environment: pytest.MonkeyPatch) -> None:
    client = boto(stand, environment)
    environment.setenv("AWS_BEARER_TOKEN_BEDROCK", "sg-wrong-key")
    client = Boto(stand)
    with pytest.raises(ClientError) as caught:
        client.converse()
    assert code_of(caught.value) == "AccessDeniedException"
    assert client.attempts == 1


@pytest.mark.parametrize("behaviour", ["error_after_work", "reset"])
def test_an_unknown_outcome_is_never_repeated_and_its_money_is_held(
    stand: Stand, environment: pytest.MonkeyPatch, behaviour: str
) -> None:
    client = boto(stand, environment)
    stand.behave(behaviour)
    with pytest.raises(ClientError, match="outcome_unknown") as caught:
        client.converse()
    assert code_of(caught.value) == "ModelErrorException"
    assert (client.attempts, stand.hits, stand.ended().state) == (1, 1, "unknown")
    stand.audited()


@pytest.mark.parametrize("options", [{"clean": True}, {"clean": False}])
def test_a_cut_stream_ends_with_an_exception_that_boto3_raises(
    stand: Stand, environment: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    client = boto(stand, environment)
    stand.behave("cut", after_frames=3, **options)
    with pytest.raises(EventStreamError, match="outcome_unknown"):
        client.stream()
    assert stand.ended().state == "unknown"
    stand.audited()


def test_an_exception_of_the_provider_in_a_stream_reaches_boto3(stand: Stand, environment: pytest.MonkeyPatch) -> None:
    client = boto(stand, environment)
    stand.behave("error_in_stream", after_frames=2)
    with pytest.raises(EventStreamError, match="broke off"):
        client.stream()
    assert stand.ended().state == "unknown"


def test_what_the_provider_refuses_is_released_and_told_as_it_was(
    stand: Stand, environment: pytest.MonkeyPatch
) -> None:
    client = boto(stand, environment)
    stand.behave("refuse", status=400)
    with pytest.raises(ClientError, match="refuses") as caught:
        client.converse()
    assert code_of(caught.value) == "ValidationException"
    assert (client.attempts, stand.ended().state) == (1, "released")


def test_without_a_secret_the_request_is_signed_by_the_gateway_s_role(
    stand: Stand, environment: pytest.MonkeyPatch
) -> None:
    client = boto(stand, environment)
    # The demo provider knows one key and no signatures: it refuses, and nothing is billed.
    with pytest.raises(ClientError, match="provider_refused_us") as caught:
        client.converse(model="signed")
    assert code_of(caught.value) == "ModelErrorException"
    (arrival,) = stand.provider.arrivals
    assert arrival.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/us-east-1/bedrock/aws4_request" in arrival.headers["authorization"]
    assert (client.attempts, stand.ended().state) == (1, "released")


def test_anthropic_s_client_is_answered_by_claude_at_bedrock(stand: Stand) -> None:
    with stand.anthropic(stand.open(ROOMY)) as claude:
        answer = claude.messages.create(
            model="claude-at-bedrock", max_tokens=20, messages=[{"role": "user", "content": "Hello"}]
        )
    assert answer.content[0].type == "text"
    assert stand.provider.arrivals[0].path == f"/model/{SERVED}/invoke"
    assert stand.calls[0].field_names == ("anthropic_version", "max_tokens", "messages")
    settled_as_billed(stand)


def test_anthropic_s_client_streams_from_claude_at_bedrock(stand: Stand) -> None:
    asked: Any = {"model": "claude-at-bedrock", "max_tokens": 20, "messages": [{"role": "user", "content": "Hello"}]}
    with stand.anthropic(stand.open(ROOMY)) as claude, claude.messages.stream(**asked) as stream:
        final = stream.get_final_message()
    assert final.usage.output_tokens == 12
    assert stand.provider.arrivals[0].path == f"/model/{SERVED}/invoke-with-response-stream"
    settled_as_billed(stand)


@pytest.mark.parametrize("behaviour", ["cut", "error_in_stream"])
def test_a_broken_stream_of_claude_at_bedrock_ends_with_an_error(stand: Stand, behaviour: str) -> None:
    key = stand.open(ROOMY)
    stand.behave(behaviour, after_frames=4)
    answer = stand.message(key, model="claude-at-bedrock", stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: error" in answer.text
    assert stand.ended().state == "unknown"


def test_claude_at_bedrock_counts_no_tokens(stand: Stand) -> None:
    key = stand.open(ROOMY)
    body = {"model": "claude-at-bedrock", "messages": [{"role": "user", "content": "Hello"}]}
    assert stand.post("/v1/messages/count_tokens", body, key).status_code == 404
    assert stand.hits == 0
