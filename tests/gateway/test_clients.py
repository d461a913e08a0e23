"""The official clients, unchanged but for a base URL and a key: what works, and how a refusal reaches the caller."""

import asyncio
from typing import Any

import anthropic
import openai
import pytest

from spendgate.core.money import usd_text
from tests.gateway.stand import NO_TLS, Stand

ROOMY = "$: {limits: {usd: {day: 1}}}"
# The bound of "Hello" with 20 output tokens is 0.0002325 USD by the stand's prices.
TIGHT = '$: {limits: {usd: {day: "0.0002"}}}'

WEATHER: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: Any = {"type": "function", "function": {"name": "weather", "parameters": WEATHER}}
TOOL: Any = {"name": "weather", "input_schema": WEATHER}
HELLO: Any = [{"role": "user", "content": "Hello"}]


def settled_as_billed(stand: Stand) -> None:
    """Hold the ledger to the provider's own bill, call by call."""
    stand.audited()
    found = [one.actual.usd for one in stand.reservations() if one.actual is not None]
    assert sum(found) == stand.book.billed_picodollars > 0
    assert {one.state for one in stand.reservations()} == {"settled"}


# --- OpenAI


def test_the_openai_client_gets_its_answer_and_the_ledger_the_provider_s_bill(stand: Stand) -> None:
    with stand.openai(stand.open(ROOMY)) as client:
        answer = client.chat.completions.create(model="gpt", messages=HELLO, max_completion_tokens=20)
    assert answer.choices[0].message.content is not None
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12
    assert stand.hits == 1
    settled_as_billed(stand)


def test_the_async_openai_client_streams_with_the_usage_only_if_it_asked_for_it(stand: Stand) -> None:
    key = stand.open(ROOMY)

    async def chunks(**options: Any) -> list[Any]:
        http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
        async with openai.AsyncOpenAI(base_url=f"{stand.url}/v1", api_key=key, http_client=http) as client:
            stream = await client.chat.completions.create(
                model="gpt", messages=HELLO, max_completion_tokens=20, stream=True, **options
            )
            return [chunk async for chunk in stream]

    silent = asyncio.run(chunks())
    told = asyncio.run(chunks(stream_options={"include_usage": True}))
    assert all(chunk.usage is None and chunk.choices for chunk in silent)
    assert told[-1].usage is not None
    assert told[-1].choices == []
    assert "".join(chunk.choices[0].delta.content or "" for chunk in silent).startswith("The demo provider")
    assert all("stream_options" in call.field_names for call in stand.calls)
    settled_as_billed(stand)


def test_the_openai_client_s_stream_helper_reads_a_whole_stream(stand: Stand) -> None:
    with (
        stand.openai(stand.open(ROOMY)) as client,
        client.chat.completions.stream(model="gpt", messages=HELLO, max_completion_tokens=20) as stream,
    ):
        final = stream.get_final_completion()
    assert final.choices[0].finish_reason == "stop"
    settled_as_billed(stand)


@pytest.mark.parametrize("stream", [False, True])
def test_a_function_call_and_its_result_go_through_the_openai_client(stand: Stand, stream: bool) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You know the weather."},
        {"role": "user", "content": "Use the tool."},
    ]
    with stand.openai(stand.open(ROOMY)) as client:
        if stream:
            with client.chat.completions.stream(
                model="gpt", messages=messages, tools=[FUNCTION], max_completion_tokens=200
            ) as events:
                message = events.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(
                model="gpt", messages=messages, tools=[FUNCTION], max_completion_tokens=200
            )
            message = answer.choices[0].message  # type: ignore[assignment]
        assert message.tool_calls is not None
        call = message.tool_calls[0]
        messages += [
            message.model_dump(exclude_none=True, exclude={"parsed": True}),
            {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
        ]
        for one in messages[2].get("tool_calls", []):
            one["function"].pop("parsed_arguments", None)
        final = client.chat.completions.create(
            model="gpt", messages=messages, tools=[FUNCTION], max_completion_tokens=200
        )
    assert final.choices[0].message.content
    assert [one.asked.tool_calls for one in stand.reservations()] == [0, 1]
    settled_as_billed(stand)


def test_choices_stops_and_a_response_format_go_through_and_every_choice_is_reserved(stand: Stand) -> None:
    schema: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": WEATHER, "strict": True}}
    with stand.openai(stand.open(ROOMY)) as client:
        answer = client.chat.completions.create(
            model="gpt", messages=HELLO, n=2, stop=["END"], response_format=schema, max_tokens=30, seed=7, temperature=0
        )
    assert len(answer.choices) == 2
    assert stand.reservation().output_tokens_max == 60
    assert {"n", "stop", "response_format", "max_tokens"} <= set(stand.calls[0].field_names)
    settled_as_billed(stand)


def test_with_streaming_response_works_and_shows_the_reservation_s_headers(stand: Stand) -> None:
    with (
        stand.openai(stand.open(ROOMY)) as client,
        client.chat.completions.with_streaming_response.create(
            model="gpt", messages=HELLO, max_completion_tokens=20
        ) as response,
    ):
        reservation = response.headers["x-spendgate-reservation"]
        answer = response.parse()
    assert answer.choices
    assert reservation == stand.reservation().id


def test_with_raw_response_shows_what_the_call_cost(stand: Stand) -> None:
    with stand.openai(stand.open(ROOMY)) as client:
        raw = client.chat.completions.with_raw_response.create(model="gpt", messages=HELLO, max_completion_tokens=20)
    assert raw.headers["x-spendgate-cost-usd"] == usd_text(stand.book.billed_picodollars)
    assert raw.headers["x-spendgate-reserved-usd"] == "0.0002325"


def test_both_clients_list_the_routes_that_a_key_may_ask_for(stand: Stand) -> None:
    keys = stand.open_all(ROOMY, "$-all: {budget: $}\n$-some: {budget: $, models: [gpt, claude]}")
    everything, some = keys.values()
    with stand.openai(some) as client, stand.anthropic(some) as other, stand.openai(everything) as third:
        assert [model.id for model in client.models.list()] == ["claude", "gpt"]
        assert [model.id for model in other.models.list()] == ["claude", "gpt"]
        assert len([model.id for model in third.models.list()]) > 2


# --- Anthropic


def test_the_anthropic_client_gets_its_answer_and_the_ledger_the_provider_s_bill(stand: Stand) -> None:
    with stand.anthropic(stand.open(ROOMY)) as client:
        answer = client.messages.create(
            model="claude",
            system="Be brief.",
            messages=HELLO,
            max_tokens=20,
            stop_sequences=["END"],
            metadata={"user_id": "u1"},
        )
    assert answer.content[0].type == "text"
    assert answer.usage.output_tokens == 20
    settled_as_billed(stand)


def test_the_async_anthropic_client_streams_every_event_of_its_protocol(stand: Stand) -> None:
    key = stand.open(ROOMY)

    async def kinds() -> list[str]:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
        async with anthropic.AsyncAnthropic(base_url=stand.url, api_key=key, http_client=http) as client:
            stream = await client.messages.create(model="claude", messages=HELLO, max_tokens=20, stream=True)
            return [event.type async for event in stream]

    found = asyncio.run(kinds())
    assert found[0] == "message_start"
    assert found[-2:] == ["message_delta", "message_stop"]
    settled_as_billed(stand)


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_use_and_its_result_go_through_the_anthropic_client(stand: Stand, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "Use the tool."}]
    with stand.anthropic(stand.open(ROOMY)) as client:
        if stream:
            with client.messages.stream(model="claude", messages=messages, tools=[TOOL], max_tokens=200) as events:
                answer: Any = events.get_final_message()
        else:
            answer = client.messages.create(model="claude", messages=messages, tools=[TOOL], max_tokens=200)
        (use,) = answer.content
        assert use.name == "weather"
        block = {"type": "tool_use", "id": use.id, "name": use.name, "input": use.input}
        result = {"type": "tool_result", "tool_use_id": use.id, "content": [{"type": "text", "text": "sunny"}]}
        messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
        final = client.messages.create(model="claude", messages=messages, tools=[TOOL], max_tokens=200)
    assert final.content[0].type == "text"
    assert [one.asked.tool_calls for one in stand.reservations()] == [0, 1]
    settled_as_billed(stand)


def test_cache_control_and_thinking_go_through_and_a_long_cache_write_is_reserved_at_its_own_rate(
    stand: Stand,
) -> None:
    key = stand.open(ROOMY)
    system: Any = [{"type": "text", "text": "Long rules.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    with stand.anthropic(key) as client:
        client.messages.create(model="claude", system=system, messages=HELLO, thinking=thinking, max_tokens=2000)
        client.messages.create(model="claude", system="Long rules.", messages=HELLO, max_tokens=2000)
    cached, plain = stand.reservations()
    # An input token may be written for an hour: 5 USD a million, and not 2.50.
    assert cached.asked.usd - 2000 * 10_000_000 == cached.input_tokens_max * 5_000_000
    assert plain.asked.usd - 2000 * 10_000_000 == plain.input_tokens_max * 2_500_000
    assert {"thinking", "system"} <= set(stand.calls[0].field_names)
    settled_as_billed(stand)


def test_the_beta_face_of_the_anthropic_client_goes_through_with_its_query_and_header(stand: Stand) -> None:
    with stand.anthropic(stand.open(ROOMY)) as client:
        answer = client.beta.messages.create(
            model="claude", messages=HELLO, max_tokens=20, betas=["prompt-caching-2024-07-31"]
        )
    assert answer.content[0].type == "text"
    (arrival,) = stand.provider.arrivals
    assert arrival.headers["anthropic-beta"] == "prompt-caching-2024-07-31"
    settled_as_billed(stand)


def test_counting_tokens_is_free_and_reserves_nothing(stand: Stand) -> None:
    with stand.anthropic(stand.open(TIGHT)) as client:
        counted = client.messages.count_tokens(model="claude", messages=[{"role": "user", "content": "Hello" * 1000}])
    assert counted.input_tokens > 1000
    assert stand.reservations() == ()
    assert (stand.book.hits, stand.book.free_hits) == (0, 1)


def test_counting_tokens_looks_at_the_key_as_it_stands_now(stand: Stand) -> None:
    keys = stand.open_all(ROOMY, "$-one: {budget: $}")
    (name, key) = next(iter(keys.items()))
    with stand.anthropic(key) as client:
        client.messages.count_tokens(model="claude", messages=HELLO)
        stand.admin.keys.revoke(name, by="a test")
        with pytest.raises(anthropic.AuthenticationError, match="revoked"):
            client.messages.count_tokens(model="claude", messages=HELLO)
    assert stand.book.free_hits == 1


# --- refusals


def test_over_budget_reaches_the_openai_caller_once_as_a_402_with_every_fact(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.0003"}}}')
    with stand.openai(key) as client:
        client.chat.completions.create(model="gpt", messages=HELLO, max_completion_tokens=20)
        stand.gateway.forget()
        with pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(model="gpt", messages=HELLO, max_completion_tokens=20)
    error: Any = caught.value.body
    assert caught.value.status_code == 402
    assert len(stand.gateway.arrivals) == 1
    assert stand.hits == 1
    assert error["code"] == "over_budget"
    assert error["budget"] == stand.root
    assert error["limit"] == {"measure": "usd", "window": "day", "maximum": "0.0003"}
    assert (error["settled"], error["reserved"], error["unknown"]) == ("0.000135", "0", "0")
    assert error["asked"] == "0.0002325"
    assert error["resets_at"].endswith("T00:00:00Z")
    assert error["fits"]["max_output_tokens"] == 13
    assert "13 tokens" in error["next_action"]
    assert error["retryable"] is False


def test_over_budget_reaches_the_anthropic_caller_once_as_payment_required(stand: Stand) -> None:
    key = stand.open(TIGHT)
    with stand.anthropic(key) as client, pytest.raises(anthropic.PaymentRequiredError) as caught:
        client.messages.create(model="claude", messages=HELLO, max_tokens=20)
    error: Any = caught.value.body
    assert len(stand.gateway.arrivals) == 1
    assert stand.hits == 0
    assert error["error"]["type"] == "billing_error"
    details = error["error"]["details"]
    assert details["error_code"] == details["code"] == "request_too_expensive"
    assert details["limit"] == {"measure": "usd", "window": "day", "maximum": "0.0002"}
    assert details["fits"] == {"max_output_tokens": 16}


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_budget_busy_is_tried_again_by_the_client_itself_and_then_passes(stand: Stand, dialect: str) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.0004"}}}')
    stand.behave("slow", delay_seconds=1.0)

    async def both() -> None:
        first = asyncio.to_thread(stand.call, dialect, key)
        second = asyncio.to_thread(again)
        await asyncio.gather(first, second)

    def again() -> None:
        stand.until(lambda: stand.hits == 1)
        if dialect == "openai":
            with stand.openai(key, max_retries=1) as client:
                client.chat.completions.create(model="gpt", messages=HELLO, max_completion_tokens=20)
        else:
            with stand.anthropic(key, max_retries=1) as other:
                other.messages.create(model="claude", messages=HELLO, max_tokens=20)

    asyncio.run(both())
    assert sorted(stand.gateway.statuses) == [200, 200, 429]
    assert stand.hits == 2
    settled_as_billed(stand)


def test_budget_busy_that_stays_is_a_rate_limit_error_that_says_when_to_come_back(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.0004"}}}')
    stand.behave("slow", delay_seconds=1.0)

    def busy() -> openai.RateLimitError:
        stand.until(lambda: stand.hits == 1)
        with stand.openai(key, max_retries=0) as client, pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="gpt", messages=HELLO, max_completion_tokens=20)
        return caught.value

    async def both() -> openai.RateLimitError:
        _, refused = await asyncio.gather(asyncio.to_thread(stand.chat, key), asyncio.to_thread(busy))
        return refused

    refused = asyncio.run(both())
    error: Any = refused.body
    assert error["code"] == "budget_busy"
    assert error["retryable"] is True
    assert error["reserved"] == "0.0002325"
    assert refused.response.headers["retry-after"] == "2"
    assert refused.response.headers["x-should-retry"] == "true"


def test_a_key_that_nobody_knows_is_an_authentication_error_in_both_clients(stand: Stand) -> None:
    unknown = "sg-nobody-knows-this-key-at-all-0000"
    with stand.openai(unknown) as client, pytest.raises(openai.AuthenticationError, match="no such key"):
        client.chat.completions.create(model="gpt", messages=HELLO)
    with stand.anthropic(unknown) as other, pytest.raises(anthropic.AuthenticationError, match="no such key"):
        other.messages.create(model="claude", messages=HELLO, max_tokens=20)
    assert len(stand.gateway.arrivals) == 2
    assert stand.hits == 0


def test_a_field_that_may_cost_something_unknown_is_refused_to_the_clients_by_its_name(stand: Stand) -> None:
    key = stand.open(ROOMY)
    with stand.openai(key) as client, pytest.raises(openai.APIStatusError, match="web_search_options") as caught:
        client.chat.completions.create(model="gpt", messages=HELLO, web_search_options={})
    assert caught.value.status_code == 402
    assert stand.hits == 0
    assert stand.reservations() == ()


@pytest.mark.parametrize("behaviour", ["error_in_stream", "cut"])
def test_a_stream_that_breaks_raises_in_the_openai_client_with_the_reservation_s_name(
    stand: Stand, behaviour: str
) -> None:
    stand.behave(behaviour, after_frames=3)
    with stand.openai(stand.open(ROOMY)) as client:
        stream = client.chat.completions.create(model="gpt", messages=HELLO, max_completion_tokens=20, stream=True)
        with pytest.raises(openai.APIError) as caught:
            for _ in stream:
                pass
    one = stand.ended()
    assert one.state == "unknown"
    if behaviour == "cut":
        error: Any = caught.value.body
        assert error["code"] == "outcome_unknown"
        assert error["reservation"] == one.id
    stand.audited()


@pytest.mark.parametrize("behaviour", ["error_in_stream", "cut"])
def test_a_stream_that_breaks_raises_in_the_anthropic_client_with_the_reservation_s_name(
    stand: Stand, behaviour: str
) -> None:
    stand.behave(behaviour, after_frames=4)
    with stand.anthropic(stand.open(ROOMY)) as client:
        stream = client.messages.create(model="claude", messages=HELLO, max_tokens=20, stream=True)
        with pytest.raises(anthropic.APIStatusError) as caught:
            for _ in stream:
                pass
    one = stand.ended()
    assert one.state == "unknown"
    if behaviour == "cut":
        error: Any = caught.value.body
        assert error["error"]["details"]["error_code"] == "outcome_unknown"
        assert error["error"]["details"]["reservation"] == one.id
    stand.audited()
