"""Google's client and plain HTTP against the running gateway, in Gemini's dialect."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx
import pytest
from google import genai
from google.genai import errors, types

from spendgate.core.money import usd_text
from tests.gateway.stand import NO_TLS, PROVIDER_KEY, Stand, events, facts

ROOMY: Final = "$: {limits: {usd: {day: 1}}}"
TIGHT: Final = '$: {limits: {usd: {day: "0.0002"}}}'
HELLO: Final = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
CAPPED: Final = types.GenerateContentConfig(max_output_tokens=20)
PATH: Final = "/v1beta/models/gemini"
WHOLE: Final = f"{PATH}:generateContent"
STREAM: Final = f"{PATH}:streamGenerateContent"


def client(stand: Stand, key: str) -> genai.Client:
    options = types.HttpOptions(
        base_url=stand.url,
        client_args={"trust_env": False, "verify": NO_TLS},
        async_client_args={"trust_env": False, "verify": NO_TLS},
    )
    return genai.Client(api_key=key, vertexai=False, http_options=options)


def post(stand: Stand, path: str, key: str | None, body: Any = None, **options: Any) -> httpx.Response:
    """Send a request with the key where Google's client puts it."""
    headers = {"x-goog-api-key": key} if key else {}
    capped = HELLO | {"generationConfig": {"maxOutputTokens": 20}}
    return stand.post(path, capped if body is None else body, None, headers=headers, **options)


def settled_as_billed(stand: Stand) -> None:
    """The ledger has exactly what the provider billed, and every counter is the sum of its reservations."""
    stand.until(lambda: all(one.state != "in_flight" for one in stand.reservations()))
    assert {one.state for one in stand.reservations()} == {"settled"}
    assert sum(one.actual.usd for one in stand.reservations() if one.actual) == stand.book.billed_picodollars
    stand.audited()


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


def test_google_s_client_gets_its_answer_and_the_ledger_the_provider_s_bill(stand: Stand) -> None:
    config = types.GenerateContentConfig(
        system_instruction="Be brief.", max_output_tokens=20, temperature=0, stop_sequences=["END"], seed=7
    )
    with client(stand, stand.open(ROOMY)) as google:
        answer = google.models.generate_content(model="gemini", contents="Hello", config=config)
    assert (answer.text or "").startswith("The demo provider")
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.candidates_token_count == 20
    assert stand.calls[0].output_cap == 20
    assert stand.reservation().dialect == "gemini"
    (arrival,) = stand.provider.arrivals
    assert arrival.path == "/v1beta/models/demo:generateContent"
    assert arrival.headers["x-goog-api-key"] == PROVIDER_KEY
    settled_as_billed(stand)


def test_google_s_client_streams(stand: Stand) -> None:
    with client(stand, stand.open(ROOMY)) as google:
        chunks = list(google.models.generate_content_stream(model="gemini", contents="Hello", config=CAPPED))
    assert "".join(chunk.text or "" for chunk in chunks).startswith("The demo provider")
    candidates = chunks[-1].candidates
    assert candidates is not None
    assert candidates[0].finish_reason == types.FinishReason.STOP
    assert stand.reservation().dialect == "gemini-stream"
    settled_as_billed(stand)


def test_the_async_client_answers_streams_and_counts(stand: Stand) -> None:
    key = stand.open(ROOMY)

    async def all_three() -> tuple[Any, list[Any], Any]:
        google = client(stand, key).aio
        whole = await google.models.generate_content(model="gemini", contents="Hello", config=CAPPED)
        stream = await google.models.generate_content_stream(model="gemini", contents="Hello", config=CAPPED)
        chunks = [chunk async for chunk in stream]
        counted = await google.models.count_tokens(model="gemini", contents="Hello")
        await google.aclose()
        return whole, chunks, counted

    whole, chunks, counted = asyncio.run(all_three())
    assert whole.text == "".join(chunk.text for chunk in chunks)
    assert counted.total_tokens == whole.usage_metadata.prompt_token_count
    assert (stand.book.hits, stand.book.free_hits) == (2, 1)
    settled_as_billed(stand)


@pytest.mark.parametrize("automatic", [True, False])
def test_a_function_call_and_its_result_go_through(stand: Stand, automatic: bool) -> None:
    declared = types.Tool(
        function_declarations=[
            types.FunctionDeclaration(
                name="weather", parameters_json_schema={"type": "object", "properties": {"city": {"type": "string"}}}
            )
        ]
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="Use the tool.")])]
    with client(stand, stand.open(ROOMY)) as google:
        config = types.GenerateContentConfig(tools=[weather if automatic else declared], max_output_tokens=200)
        answer = google.models.generate_content(model="gemini", contents=contents, config=config)
        if not automatic:
            assert answer.function_calls is not None
            assert answer.function_calls[0].args == {"city": "demo"}
            assert answer.candidates is not None
            result = types.Part.from_function_response(name="weather", response={"result": "sunny"})
            contents += [answer.candidates[0].content, types.Content(role="user", parts=[result])]
            answer = google.models.generate_content(model="gemini", contents=contents, config=config)
    assert answer.text
    assert [one.asked.tool_calls for one in stand.reservations()] == [0, 1]
    settled_as_billed(stand)


def test_a_schema_choices_and_thinking_go_through_and_every_choice_is_reserved(stand: Stand) -> None:
    config = types.GenerateContentConfig(
        candidate_count=2,
        max_output_tokens=30,
        response_mime_type="application/json",
        response_schema={"type": "OBJECT", "properties": {"city": {"type": "STRING"}}},
        thinking_config=types.ThinkingConfig(thinking_budget=0),
        safety_settings=[types.SafetySetting(category="HARM_CATEGORY_HARASSMENT", threshold="BLOCK_NONE")],  # type: ignore[arg-type]
    )
    with client(stand, stand.open(ROOMY)) as google:
        answer = google.models.generate_content(model="gemini", contents="Hello", config=config)
    assert len(answer.candidates or []) == 2
    assert stand.reservation().output_tokens_max == 60
    settled_as_billed(stand)


def test_a_refusal_reaches_the_caller_once_as_a_client_error_with_every_fact(stand: Stand) -> None:
    with client(stand, stand.open(TIGHT)) as google, pytest.raises(errors.ClientError) as caught:
        google.models.generate_content(model="gemini", contents="Hello", config=CAPPED)
    assert (caught.value.code, caught.value.status) == (402, "RESOURCE_EXHAUSTED")
    assert len(stand.gateway.arrivals) == 1
    assert stand.hits == 0
    (details,) = caught.value.details["error"]["details"]
    assert details["code"] == "request_too_expensive"
    assert details["limit"] == {"measure": "usd", "window": "day", "maximum": "0.0002"}
    assert details["fits"]["max_output_tokens"] > 0


def test_the_cap_that_is_told_to_fit_does_fit(stand: Stand) -> None:
    key = stand.open(TIGHT)
    refused = post(stand, WHOLE, key)
    fits = facts(refused)["fits"]["max_output_tokens"]

    assert post(stand, WHOLE, key, HELLO | {"generationConfig": {"maxOutputTokens": fits}}).status_code == 200


def test_a_feature_that_has_no_bound_is_refused_to_the_client_by_its_name(stand: Stand) -> None:
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    with client(stand, stand.open(ROOMY)) as google, pytest.raises(errors.ClientError, match="googleSearch"):
        google.models.generate_content(model="gemini", contents="Hello", config=config)
    assert stand.hits == 0
    assert stand.reservations() == ()


def test_an_absent_cap_is_stamped_and_told(stand: Stand) -> None:
    answer = post(stand, WHOLE, stand.open("$: {limits: {usd: {day: 1}}, default_output_tokens: 50}"), HELLO)

    assert answer.headers["x-spendgate-output-cap"] == "50"
    assert stand.calls[0].output_cap == 50
    settled_as_billed(stand)


def test_a_stream_without_events_is_one_json_array_and_settled_like_one(stand: Stand) -> None:
    key = stand.open(ROOMY)
    array = post(stand, STREAM, key)
    streamed = post(stand, f"{STREAM}?alt=sse", key)

    assert array.headers["content-type"].startswith("application/json")
    chunks = [json.loads(event.removeprefix("data: ")) for event in streamed.text.split("\r\n\r\n") if event]
    assert [one["candidates"] for one in array.json()] == [one["candidates"] for one in chunks]
    assert array.json()[-1]["candidates"][0]["finishReason"] == "STOP"
    settled_as_billed(stand)


@pytest.mark.parametrize("path", [STREAM, f"{STREAM}?alt=sse"])
def test_a_stream_that_comes_byte_by_byte_settles_as_billed(stand: Stand, path: str) -> None:
    stand.behave("byte_by_byte")

    assert post(stand, path, stand.open(ROOMY)).status_code == 200
    settled_as_billed(stand)


@pytest.mark.parametrize("behaviour,clean", [("cut", False), ("cut", True)])
def test_an_array_that_breaks_off_ends_with_the_error_and_the_money_stays_reserved(
    stand: Stand, behaviour: str, clean: bool
) -> None:
    stand.behave(behaviour, after_frames=3, clean=clean)
    answer = post(stand, STREAM, stand.open(ROOMY))

    *chunks, error = answer.json()
    assert len(chunks) == 3
    (told,) = error["error"]["details"]
    assert (told["code"], told["state"]) == ("outcome_unknown", "unknown")
    one = stand.ended()
    assert (one.state, one.id) == ("unknown", told["reservation"])
    stand.audited()


@pytest.mark.parametrize("behaviour", ["error_in_stream", "cut"])
def test_a_stream_that_breaks_raises_in_google_s_client(stand: Stand, behaviour: str) -> None:
    stand.behave(behaviour, after_frames=3)
    with client(stand, stand.open(ROOMY)) as google, pytest.raises(errors.APIError):
        list(google.models.generate_content_stream(model="gemini", contents="Hello", config=CAPPED))
    assert stand.ended().state == "unknown"
    stand.audited()


def test_an_error_within_an_array_passes_as_its_last_element(stand: Stand) -> None:
    stand.behave("error_in_stream", after_frames=2, status=503)
    answer = post(stand, STREAM, stand.open(ROOMY))

    assert answer.json()[-1]["error"]["code"] == 503
    assert stand.ended().state == "unknown"


@pytest.mark.parametrize("path", [WHOLE, STREAM, f"{STREAM}?alt=sse"])
@pytest.mark.parametrize("behaviour", ["no_usage", "garbage"])
def test_an_answer_that_does_not_say_what_it_used_keeps_its_money(stand: Stand, path: str, behaviour: str) -> None:
    stand.behave(behaviour)
    post(stand, path, stand.open(ROOMY))

    assert stand.ended().state == "unknown"
    stand.audited()


@pytest.mark.parametrize("status,state", [(400, "released"), (429, "released"), (500, "unknown"), (503, "unknown")])
def test_what_google_does_not_bill_is_released_and_all_else_is_not(stand: Stand, status: int, state: str) -> None:
    stand.behave("refuse", status=status)
    post(stand, WHOLE, stand.open(ROOMY))

    assert stand.ended().state == state


def test_one_idempotency_key_for_two_models_is_a_conflict_though_the_bodies_are_the_same(stand: Stand) -> None:
    key = stand.open(ROOMY, routes="  gemini-too: [{provider: gemini-host, model: demo}]\n")
    once = {"x-goog-api-key": key, "idempotency-key": "k1"}
    other = WHOLE.replace("gemini:", "gemini-too:")

    answers = [stand.post(path, HELLO, None, headers=once) for path in (WHOLE, WHOLE, other)]

    assert [answer.status_code for answer in answers] == [200, 409, 409]
    assert [facts(answer)["code"] for answer in answers[1:]] == ["duplicate_request", "request_conflict"]
    assert stand.hits == 1


def test_counting_tokens_is_free_and_reserves_nothing(stand: Stand) -> None:
    with client(stand, stand.open(TIGHT)) as google:
        counted = google.models.count_tokens(model="gemini", contents="Hello" * 1000)
    assert (counted.total_tokens or 0) > 1000
    assert stand.reservations() == ()
    assert (stand.book.hits, stand.book.free_hits) == (0, 1)


def test_the_client_lists_the_routes_that_its_key_may_ask_for(stand: Stand) -> None:
    (key,) = stand.open_all(ROOMY, "$-some: {budget: $, models: [gemini]}").values()
    with client(stand, key) as google:
        assert [model.name for model in google.models.list()] == ["models/gemini"]


@pytest.mark.parametrize("path", [WHOLE, STREAM, f"{PATH}:countTokens"])
def test_the_key_in_the_query_opens_and_is_neither_sent_on_nor_logged_nor_stored(stand: Stand, path: str) -> None:
    key = stand.open(ROOMY)
    queried = f"{path}?key={key}" + ("&alt=sse" if path == STREAM else "")

    assert post(stand, queried, None).status_code == 200
    seen = repr([(one.path, one.headers) for one in stand.provider.arrivals]) + repr(stand.provider.bodies)
    assert key not in seen + stand.log.getvalue() + stand.tables()


@pytest.mark.parametrize("path", [WHOLE, STREAM, "/v1beta/models"])
def test_two_different_keys_are_refused_wherever_they_stand(stand: Stand, path: str) -> None:
    keys = list(stand.open_all(ROOMY, "$-one: {budget: $}\n$-two: {budget: $}").values())
    queried = f"{path}?key={keys[1]}"

    answer = stand.get(queried, keys[0]) if path == "/v1beta/models" else post(stand, queried, keys[0])

    assert answer.status_code == 401
    assert facts(answer)["code"] == "key_invalid"
    assert not any(key in answer.text for key in keys)


def test_a_key_in_the_query_of_another_dialect_is_no_key(stand: Stand) -> None:
    key = stand.open(ROOMY)

    assert stand.post(f"/v1/chat/completions?key={key}", {}, None).status_code == 401


def test_an_action_that_is_not_served_is_a_404_in_google_s_shape(stand: Stand) -> None:
    answer = post(stand, f"{PATH}:batchGenerateContent?key=sg-secret", stand.open(ROOMY))

    assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND")
    assert "sg-secret" not in answer.text
    assert stand.hits == 0


def test_a_route_of_another_dialect_is_not_found(stand: Stand) -> None:
    answer = post(stand, "/v1beta/models/gpt:generateContent", stand.open(ROOMY))

    assert answer.status_code == 404
    assert "speaks the openai dialect" in answer.json()["error"]["message"]


def test_a_whole_stream_reaches_the_caller_before_it_is_settled_but_for_its_last_chunk(stand: Stand) -> None:
    stand.behave("hang_mid_stream", after_frames=3, max_seconds=3)
    answer = post(stand, f"{STREAM}?alt=sse", stand.open(ROOMY))

    assert len([event for event in events(answer) if "candidates" in event]) >= 1
    assert stand.ended().state == "unknown"


def test_what_a_call_cost_is_told_in_its_headers(stand: Stand) -> None:
    answer = post(stand, WHOLE, stand.open(ROOMY))

    assert answer.headers["x-spendgate-cost-usd"] == usd_text(stand.book.billed_picodollars)
    assert answer.headers["x-spendgate-model"] == "demo"


PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(100_000)


def test_google_s_client_sends_an_image_that_is_held_by_table_and_not_by_its_bytes(stand: Stand) -> None:
    parts: list[Any] = [types.Part.from_bytes(data=PNG, mime_type="image/png"), "What is this?"]
    with client(stand, stand.open(ROOMY)) as google:
        answer = google.models.generate_content(model="seeing", contents=parts, config=CAPPED)
        counted = google.models.count_tokens(model="seeing", contents=parts)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_token_count == counted.total_tokens
    assert 300 < stand.reservation().input_tokens_max < 400
    assert (stand.book.hits, stand.book.free_hits) == (1, 1)
    settled_as_billed(stand)


def test_an_image_within_a_function_s_result_goes_through(stand: Stand) -> None:
    image = types.FunctionResponsePart.from_bytes(data=PNG, mime_type="image/png")
    result = types.Part.from_function_response(name="look", response={"seen": True}, parts=[image])
    call = types.Part.from_function_call(name="look", args={})
    contents: list[Any] = [
        types.Content(role="user", parts=[types.Part(text="Look.")]),
        types.Content(role="model", parts=[call]),
        types.Content(role="user", parts=[result]),
    ]
    with client(stand, stand.open(ROOMY)) as google:
        google.models.generate_content(model="seeing", contents=contents, config=CAPPED)
    assert stand.reservation().input_tokens_max > 300
    settled_as_billed(stand)


@pytest.mark.parametrize(
    "part,field",
    [
        # Nobody has said what an image costs at this model, nor what sound does, which a file may be.
        ({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoAAAAN"}}, "contents[0].parts[0].inlineData"),
        ({"fileData": {"fileUri": "https://youtu.be/x"}}, "contents[0].parts[0].fileData"),
    ],
)
def test_a_medium_without_a_bound_is_refused_before_anything_is_sent(
    stand: Stand, part: dict[str, Any], field: str
) -> None:
    answer = post(stand, WHOLE, stand.open(ROOMY), {"contents": [{"parts": [part]}]})

    assert answer.status_code == 402
    assert (facts(answer)["code"], facts(answer)["field"]) == ("cost_bound_unknown", field)
    assert (stand.hits, stand.reservations()) == (0, ())


def test_a_document_is_held_at_the_whole_context(stand: Stand) -> None:
    pdf = types.Part.from_bytes(data=b"%PDF-1.7", mime_type="application/pdf")
    with client(stand, stand.open(ROOMY)) as google:
        google.models.generate_content(model="gemini", contents=[pdf], config=CAPPED)
    assert stand.reservation().input_tokens_max == 128_000
    settled_as_billed(stand)


@pytest.mark.parametrize("contents", ["Hello", ["one", "two"]])
def test_google_s_client_embeds_and_the_ledger_has_the_provider_s_bill(stand: Stand, contents: Any) -> None:
    config = types.EmbedContentConfig(task_type="RETRIEVAL_QUERY", output_dimensionality=4)
    with client(stand, stand.open(ROOMY)) as google:
        answer = google.models.embed_content(model="embed", contents=contents, config=config)
    assert len(answer.embeddings or []) == (1 if isinstance(contents, str) else 2)
    (arrival,) = stand.provider.arrivals
    assert arrival.path == "/v1beta/models/embed:batchEmbedContents"
    assert stand.hits == 1
    settled_as_billed(stand)


def test_one_embedding_settles_as_billed_too(stand: Stand) -> None:
    answer = post(stand, "/v1beta/models/embed:embedContent", stand.open(ROOMY), {"content": HELLO["contents"][0]})

    assert answer.json()["embedding"]["values"]
    assert stand.reservation().dialect == "gemini-embeddings"
    settled_as_billed(stand)


def test_an_embedding_that_does_not_say_what_it_used_is_charged_in_full_and_told(stand: Stand) -> None:
    """B53: models that report no usage are neither free nor left open for days."""
    stand.behave("no_usage")
    with client(stand, stand.open(ROOMY)) as google:
        assert google.models.embed_content(model="embed", contents="Hello").embeddings
    ended = stand.ended()
    assert (ended.state, ended.actual) == ("charged", ended.asked)
    assert ended.asked.usd >= stand.book.billed_picodollars
    stand.audited()


@pytest.mark.parametrize("usage", [{"promptTokenCount": -5}, {"promptTokenCount": "5"}, []])
def test_an_embedding_with_hostile_usage_keeps_its_money_and_the_caller_its_answer(stand: Stand, usage: Any) -> None:
    stand.behave("usage", usage=usage)
    answer = post(stand, "/v1beta/models/embed:embedContent", stand.open(ROOMY), {"content": HELLO["contents"][0]})

    assert answer.status_code == 200
    assert stand.ended().state == "unknown"
    stand.audited()


SEARCHING: Final = types.GenerateContentConfig(
    tools=[types.Tool(google_search=types.GoogleSearch())], max_output_tokens=20
)


def test_an_allowed_search_is_held_for_every_turn_and_settled_with_its_fees(stand: Stand) -> None:
    with client(stand, stand.open("$: {limits: {usd: {day: 5}}, allow: {web_search: 2}}")) as google:
        whole = google.models.generate_content(model="seeing", contents="Hello", config=SEARCHING)
        chunks = list(google.models.generate_content_stream(model="seeing", contents="Hello", config=SEARCHING))
    for answer in (whole, chunks[-1]):
        assert answer.candidates is not None
        assert answer.candidates[0].grounding_metadata is not None
    for one in stand.reservations():
        assert one.asked.usd == 3 * 128_000 * 2_500_000 + 20 * 10_000_000 + 2 * 14_000_000_000
        assert one.usage is not None
        assert one.usage.fees == (("web_search", 2),)
    assert stand.hits == 2
    settled_as_billed(stand)


def test_more_searches_than_were_allowed_are_booked_as_they_are(stand: Stand) -> None:
    """The model decides how often it searches: what it used beyond the allowance is told, and never cut."""
    with client(stand, stand.open("$: {limits: {usd: {day: 5}}, allow: {web_search: 1}}")) as google:
        google.models.generate_content(model="seeing", contents="Hello", config=SEARCHING)
    (one,) = stand.reservations()
    assert one.usage is not None
    assert one.usage.fees == (("web_search", 2),)
    settled_as_billed(stand)


def test_a_stored_context_is_held_at_the_whole_context_where_it_is_allowed(stand: Stand) -> None:
    body = HELLO | {"cachedContent": "cachedContents/1"}
    refused = post(stand, "/v1beta/models/seeing:generateContent", stand.open(ROOMY), body)

    assert (refused.status_code, facts(refused)["field"]) == (402, "cachedContent")
    assert "server_state" in facts(refused)["next_action"]
    assert stand.hits == 0
