"""OpenAI's client against Responses, embeddings and completions: what works, what is refused, what it costs."""

import asyncio
import json
from typing import Any

import openai
import pytest

from spendgate.core.money import usd_text
from tests.gateway.stand import NO_TLS, Stand, facts
from tests.gateway.test_clients import ROOMY, TIGHT, WEATHER, settled_as_billed

FUNCTION: Any = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}
ENDS: dict[str, dict[str, Any]] = {
    "/v1/responses": {"model": "gpt", "input": "Hello", "max_output_tokens": 20},
    "/v1/embeddings": {"model": "gpt", "input": "Hello"},
    "/v1/completions": {"model": "gpt", "prompt": "Hello", "max_tokens": 20},
}
STREAMED = [path for path in ENDS if path != "/v1/embeddings"]


# --- Responses


def test_a_response_gets_to_the_client_and_the_provider_s_bill_to_the_ledger(stand: Stand) -> None:
    with stand.openai(stand.open(ROOMY)) as client:
        answer = client.responses.create(model="gpt", input="Hello", instructions="Be kind.", max_output_tokens=30)
    assert answer.output_text.startswith("The demo provider")
    assert answer.usage is not None
    assert answer.usage.output_tokens == 24
    assert stand.reservation().response_id == answer.id
    settled_as_billed(stand)


def test_an_absent_cap_is_stamped_and_a_response_that_it_cuts_is_billed_too(stand: Stand) -> None:
    """B39: an incomplete response is settled like any other."""
    key = stand.open("$: {limits: {usd: {day: 1}}, default_output_tokens: 7}")
    with stand.openai(key) as client:
        answer = client.responses.create(model="gpt", input="Hello")
    assert answer.status == "incomplete"
    assert stand.calls[0].field_names == ("input", "max_output_tokens", "model")
    assert stand.calls[0].output_cap == 7
    settled_as_billed(stand)


def test_the_async_client_streams_a_response_event_by_event(stand: Stand) -> None:
    key = stand.open(ROOMY)

    async def events() -> list[Any]:
        http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
        async with openai.AsyncOpenAI(base_url=f"{stand.url}/v1", api_key=key, http_client=http) as client:
            stream = await client.responses.create(model="gpt", input="Hello", max_output_tokens=20, stream=True)
            return [event async for event in stream]

    found = asyncio.run(events())

    assert [found[0].type, found[-1].type] == ["response.created", "response.completed"]
    assert "".join(event.delta for event in found if event.type == "response.output_text.delta").startswith("The demo")
    assert found[-1].response.usage.output_tokens == 12
    settled_as_billed(stand)


def test_a_function_call_and_its_result_go_round_in_a_stream(stand: Stand) -> None:
    given: list[Any] = [{"role": "user", "content": "Use the tool."}]
    with stand.openai(stand.open(ROOMY)) as client:
        with client.responses.stream(model="gpt", input=given, tools=[FUNCTION], max_output_tokens=200) as stream:
            first = stream.get_final_response()
        call: Any = first.output[0]
        given += [
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
        ]
        last = client.responses.create(model="gpt", input=given, tools=[FUNCTION], max_output_tokens=200)
    assert last.output_text
    assert [one.asked.tool_calls for one in stand.reservations()] == [0, 1]
    settled_as_billed(stand)


def test_what_a_response_parsed_by_the_client_holds_is_counted_as_structured(stand: Stand) -> None:
    text: Any = {"format": {"type": "json_schema", "name": "answer", "schema": WEATHER, "strict": True}}
    with stand.openai(stand.open(ROOMY)) as client:
        client.responses.create(model="gpt", input="Hello", text=text, max_output_tokens=20, store=False)
    settled_as_billed(stand)


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"background": True}, "background"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
    ],
)
def test_what_cannot_be_bounded_is_refused_before_it_leaves(stand: Stand, changes: Any, field: str) -> None:
    with stand.openai(stand.open(ROOMY)) as client, pytest.raises(openai.APIStatusError) as caught:
        client.responses.create(**{"model": "gpt", "input": "Hello"} | changes)
    error: Any = caught.value.body
    assert (caught.value.status_code, error["code"], error["param"]) == (402, "cost_bound_unknown", field)
    assert stand.hits == 0


@pytest.mark.parametrize("behaviour", ["error_in_stream", "cut", "no_usage"])
def test_a_response_that_breaks_or_says_no_usage_keeps_its_money(stand: Stand, behaviour: str) -> None:
    stand.behave(behaviour, after_frames=4)
    with stand.openai(stand.open(ROOMY), max_retries=0) as client:
        stream = client.responses.create(model="gpt", input="Hello", max_output_tokens=20, stream=True)
        events: list[Any] = []
        try:
            events += stream
        except openai.APIError as error:
            broken: Any = error.body
            assert behaviour == "cut"
            assert broken["code"] == "outcome_unknown"
    assert behaviour != "error_in_stream" or events[-1].type == "error"
    one = stand.ended()
    assert one.state == "unknown"
    # The first event named the response: the key to ask for it later.
    assert one.response_id == "resp_demo_1"
    stand.audited()


# --- embeddings


@pytest.mark.parametrize("given,count", [("Hello", 1), (["Hello", "há"], 2), ([1, 2, 3], 1), ([[1, 2], [3]], 2)])
def test_embeddings_of_texts_and_of_token_ids_cost_their_input_alone(stand: Stand, given: Any, count: int) -> None:
    """B53: an answer without a count of output is whole."""
    with stand.openai(stand.open(ROOMY)) as client:
        answer = client.embeddings.create(model="gpt", input=given)
    assert [one.embedding for one in answer.data] == [[0.5, -0.25, 0.125, 1.0]] * count
    assert stand.reservation().output_tokens_max == 0
    assert "max_tokens" not in stand.calls[0].field_names
    settled_as_billed(stand)


def test_embeddings_as_numbers_come_as_they_are(stand: Stand) -> None:
    with stand.openai(stand.open(ROOMY)) as client:
        answer = client.embeddings.create(model="gpt", input="Hello", encoding_format="float", user="u")
    assert answer.data[0].embedding == [0.5, -0.25, 0.125, 1.0]
    settled_as_billed(stand)


# --- completions


def test_a_completion_is_capped_at_sixteen_tokens_a_choice_unless_told_otherwise(stand: Stand) -> None:
    with stand.openai(stand.open(ROOMY)) as client:
        answer = client.completions.create(model="gpt", prompt=["Hello [[output:99]]", "há [[output:99]]"], n=2)
    assert len(answer.choices) == 4
    assert stand.reservation().output_tokens_max == 4 * 16
    assert stand.calls[0].output_cap == 16
    settled_as_billed(stand)


@pytest.mark.parametrize("asked", [False, True])
def test_a_completion_streams_with_the_usage_only_if_it_was_asked_for(stand: Stand, asked: bool) -> None:
    options: Any = {"stream_options": {"include_usage": True}} if asked else {}
    with stand.openai(stand.open(ROOMY)) as client:
        stream = client.completions.create(model="gpt", prompt="Hello", max_tokens=20, stream=True, **options)
        chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices).startswith("The demo provider")
    assert (chunks[-1].usage is not None) == asked
    settled_as_billed(stand)


# --- all of them


@pytest.mark.parametrize("path", sorted(ENDS))
def test_a_call_that_does_not_fit_is_refused_in_the_client_s_shape_and_never_sent(stand: Stand, path: str) -> None:
    key = stand.open(TIGHT)

    refused = stand.post(path, ENDS[path] | _large(path), key)

    assert refused.status_code == 402
    assert refused.headers["x-should-retry"] == "false"
    assert facts(refused)["code"] == "request_too_expensive"
    assert stand.hits == 0


def _large(path: str) -> dict[str, Any]:
    return {"input" if path != "/v1/completions" else "prompt": "x" * 200}


@pytest.mark.parametrize("path", sorted(ENDS))
@pytest.mark.parametrize(
    "behaviour,state", [("refuse", "released"), ("error_after_work", "unknown"), ("garbage", "unknown")]
)
def test_every_outcome_ends_as_its_status_proves(stand: Stand, path: str, behaviour: str, state: str) -> None:
    stand.behave(behaviour)

    stand.post(path, ENDS[path], stand.open(ROOMY))

    assert stand.ended().state == state
    stand.audited()


@pytest.mark.parametrize("path", sorted(ENDS))
@pytest.mark.parametrize("usage", ["{}", "null", '"x"', "[]", '{"total_tokens":-1}', '{"total_tokens":1e400}'])
def test_hostile_usage_holds_the_money_and_never_the_answer(stand: Stand, path: str, usage: str) -> None:
    stand.behave("usage", usage_text=usage)

    answer = stand.post(path, ENDS[path], stand.open(ROOMY))

    assert answer.status_code == 200
    assert stand.ended().state == "unknown"
    stand.audited()


@pytest.mark.parametrize("path", STREAMED)
def test_a_stream_in_single_bytes_is_settled_like_any_other(stand: Stand, path: str) -> None:
    stand.behave("byte_by_byte")

    answer = stand.post(path, ENDS[path] | {"stream": True}, stand.open(ROOMY))

    assert answer.status_code == 200
    settled_as_billed(stand)


@pytest.mark.parametrize("path", sorted(ENDS))
def test_the_headers_tell_what_was_reserved_and_what_it_cost(stand: Stand, path: str) -> None:
    answer = stand.post(path, ENDS[path], stand.open(ROOMY))

    one = stand.reservation()
    assert one.actual is not None
    assert answer.headers["x-spendgate-reserved-usd"] == usd_text(one.asked.usd)
    assert answer.headers["x-spendgate-cost-usd"] == usd_text(one.actual.usd)
    assert json.loads(answer.content)["model"] == "demo"
