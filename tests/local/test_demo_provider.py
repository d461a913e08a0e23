"""The demo provider, seen by the official clients and by a client that reads the wire."""

import asyncio
import json
import signal
import socket
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import anthropic
import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.money import usd
from spendgate.local.demo_book import BEHAVIOURS, RECORDS_MAX, Behaviour, Call, DemoBook, behaviour_from
from spendgate.local.demo_provider import create_app
from spendgate.local.demo_work import work_of
from spendgate.local.serving import served
from tests.demo_process import DemoProvider, demo_provider, start

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
ANY_KEY = "sk-demo"

CHAT_TOOL: Any = {
    "type": "function",
    "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
MESSAGES_TOOL: Any = {
    "name": "look_up",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@pytest.fixture(scope="module")
def process() -> Iterator[DemoProvider]:
    with demo_provider() as running:
        yield running


@pytest.fixture
def provider(process: DemoProvider) -> DemoProvider:
    process.reset()
    return process


@pytest.fixture
def chat(provider: DemoProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=ANY_KEY, max_retries=0) as client:
        yield client


@pytest.fixture
def claude(provider: DemoProvider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=provider.url, api_key=ANY_KEY, max_retries=0) as client:
        yield client


# What the official clients see


def test_openai_gets_as_many_words_as_it_is_billed_for(chat: openai.OpenAI, provider: DemoProvider) -> None:
    answer = chat.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello [[output:7]]"}])

    assert answer.usage is not None
    assert answer.usage.completion_tokens == 7
    assert len((answer.choices[0].message.content or "").split()) == 7
    assert answer.choices[0].finish_reason == "stop"
    # 18 bytes are 5 tokens, and a message is 4.
    assert answer.usage.prompt_tokens == 9
    assert provider.book()["billed_usd"] == "0.0000925"


def test_openai_streams_the_same_text_and_usage_in_one_more_chunk(chat: openai.OpenAI) -> None:
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    whole = chat.chat.completions.create(**asked)

    with chat.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)

    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_openai_gets_no_usage_in_a_stream_that_did_not_ask(provider: DemoProvider) -> None:
    events = _post(provider, CHAT, _asking(stream=True)).text

    assert "usage" not in events
    assert events.endswith("data: [DONE]\n\n")


def test_openai_gets_a_tool_call_and_then_its_result_is_read(chat: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "Use the tool"}]
    first = chat.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL]).choices[0]
    calls: Any = first.message.tool_calls
    messages += [
        {"role": "assistant", "tool_calls": [calls[0].model_dump()]},
        {"role": "tool", "tool_call_id": calls[0].id, "content": "rain"},
    ]

    second = chat.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL]).choices[0]

    assert (first.finish_reason, calls[0].function.name) == ("tool_calls", "look_up")
    assert json.loads(calls[0].function.arguments) == {"city": "demo"}
    assert (second.finish_reason, second.message.tool_calls) == ("stop", None)


def test_openai_gets_a_tool_call_in_pieces_that_make_the_whole(chat: openai.OpenAI) -> None:
    with chat.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": "Use the tool"}], tools=[CHAT_TOOL]
    ) as stream:
        final = stream.get_final_completion()

    calls: Any = final.choices[0].message.tool_calls
    assert json.loads(calls[0].function.arguments) == {"city": "demo"}


def test_openai_is_billed_for_each_choice(chat: openai.OpenAI) -> None:
    answer = chat.chat.completions.create(
        model="m", n=3, max_completion_tokens=5, messages=[{"role": "user", "content": "Hello"}]
    )

    assert [choice.finish_reason for choice in answer.choices] == ["length"] * 3
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 15


def test_openai_async_streams(provider: DemoProvider) -> None:
    async def text() -> str:
        async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key=ANY_KEY, max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "[[output:3]]"}], stream=True
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert asyncio.run(text()) == "The demo provider"


def test_anthropic_gets_as_many_words_as_it_is_billed_for(claude: anthropic.Anthropic, provider: DemoProvider) -> None:
    answer = claude.messages.create(
        model="m", max_tokens=3, system="Be brief", messages=[{"role": "user", "content": "Hello"}]
    )

    # Two messages of 4 each, and 13 bytes.
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (12, 3)
    assert answer.content[0].to_dict() == {"type": "text", "text": "The demo provider"}
    assert answer.stop_reason == "max_tokens"
    assert provider.book()["billed_usd"] == "0.00006"


def test_anthropic_streams_a_placeholder_first_and_the_cumulative_usage_last(claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(model="m", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]) as stream:
        events = list(stream)
        final = stream.get_final_message()

    start = next(event for event in events if event.type == "message_start")
    assert start.message.usage.output_tokens == 1
    assert (final.usage.input_tokens, final.usage.output_tokens) == (6, 12)
    assert final.stop_reason == "end_turn"


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_gets_a_tool_use_with_its_input(claude: anthropic.Anthropic, *, stream: bool) -> None:
    asked: Any = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Use the tool"}],
        "tools": [MESSAGES_TOOL],
    }
    if stream:
        with claude.messages.stream(**asked) as events:
            answer: Any = events.get_final_message()
    else:
        answer = claude.messages.create(**asked)

    assert answer.stop_reason == "tool_use"
    assert (answer.content[0].name, answer.content[0].input) == ("look_up", {"city": "demo"})


def test_anthropic_reads_a_tool_result(claude: anthropic.Anthropic) -> None:
    messages: Any = [
        {"role": "user", "content": "Use the tool"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look_up", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "tool says rain"}]},
    ]

    answer = claude.messages.create(model="m", max_tokens=100, messages=messages, tools=[MESSAGES_TOOL])

    assert answer.stop_reason == "end_turn"


def test_anthropic_counts_tokens_for_nothing(claude: anthropic.Anthropic, provider: DemoProvider) -> None:
    counted = claude.messages.count_tokens(model="m", messages=[{"role": "user", "content": "Hello"}])

    book = provider.book()
    assert counted.input_tokens == 6
    assert (book["hits"], book["free_hits"], book["billed_picodollars"]) == (0, 1, 0)


def test_anthropic_async_streams(provider: DemoProvider) -> None:
    async def text() -> str:
        async with (
            anthropic.AsyncAnthropic(base_url=provider.url, api_key=ANY_KEY, max_retries=0) as client,
            client.messages.stream(model="m", max_tokens=3, messages=[{"role": "user", "content": "Hello"}]) as stream,
        ):
            return "".join([piece async for piece in stream.text_stream])

    assert asyncio.run(text()) == "The demo provider"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (529, openai.InternalServerError),
    ],
)
def test_openai_gets_a_refusal_as_its_typed_error_and_no_bill(
    chat: openai.OpenAI, provider: DemoProvider, status: int, error: type[openai.APIStatusError]
) -> None:
    provider.behave("refuse", status=status, retry_after="3", code="told_to")

    with pytest.raises(error) as refusal:
        chat.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])

    assert refusal.value.code == "told_to"
    assert refusal.value.response.headers["retry-after"] == "3"
    assert (provider.book()["hits"], provider.book()["billed_picodollars"]) == (1, 0)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
def test_anthropic_gets_a_failure_after_the_work_and_the_bill(
    claude: anthropic.Anthropic, provider: DemoProvider, status: int
) -> None:
    provider.behave("error_after_work", status=status)

    with pytest.raises(anthropic.APIStatusError) as failure:
        claude.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "Hello"}])

    assert failure.value.status_code == status
    assert provider.book()["billed_picodollars"] == _price(6, 1)


def test_openai_gets_an_error_within_a_stream(chat: openai.OpenAI, provider: DemoProvider) -> None:
    provider.behave("error_in_stream", after_frames=3)

    with chat.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
    ) as stream:
        received = [next(stream).choices[0].delta.content for _ in range(3)]
        with pytest.raises(openai.APIError, match="broke off"):
            next(stream)

    assert received == ["", "The", " demo"]


def test_anthropic_gets_an_error_within_a_stream(claude: anthropic.Anthropic, provider: DemoProvider) -> None:
    provider.behave("error_in_stream")

    with (
        claude.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hello"}]) as stream,
        pytest.raises(anthropic.APIStatusError, match="overloaded_error"),
    ):
        stream.get_final_message()


# What the wire shows


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_reset_bills_and_breaks_the_connection_before_any_answer(provider: DemoProvider, path: str) -> None:
    provider.behave("reset")

    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        _post(provider, path, _asking())

    assert provider.book()["billed_picodollars"] == _price(6, 12)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_cut_stream_has_its_first_frames_and_no_end(provider: DemoProvider, path: str) -> None:
    provider.behave("cut", after_frames=2)

    received, broken = _read_until_broken(provider, path, _asking(stream=True))

    assert broken
    assert received.count(b"\n\n") == 2
    assert provider.book()["billed_picodollars"] == _price(6, 12)


def test_a_clean_cut_ends_the_body_without_the_protocols_end(provider: DemoProvider) -> None:
    provider.behave("cut", after_frames=2, clean=True)

    received, broken = _read_until_broken(provider, CHAT, _asking(stream=True))

    assert not broken
    assert b"[DONE]" not in received


def test_a_cut_answer_that_is_no_stream_stops_in_its_middle(provider: DemoProvider) -> None:
    provider.behave("cut")

    received, broken = _read_until_broken(provider, CHAT, _asking())

    assert broken
    with pytest.raises(json.JSONDecodeError):
        json.loads(received)


def test_a_hung_call_is_billed_and_open_until_the_caller_goes(provider: DemoProvider) -> None:
    provider.behave("hang")

    with pytest.raises(httpx.ReadTimeout):
        _post(provider, CHAT, _asking(), timeout=0.3)

    _wait_until_none_is_open(provider)
    assert provider.book()["billed_picodollars"] == _price(6, 12)


@pytest.mark.parametrize("behaviour", ["hang", "hang_mid_stream"])
def test_a_hang_is_bounded(provider: DemoProvider, behaviour: str) -> None:
    provider.behave(behaviour, max_seconds=0.05)

    _, broken = _read_until_broken(provider, CHAT, _asking(stream=True))

    assert broken
    assert provider.book()["open"] == 0


def test_a_hang_in_mid_stream_comes_after_its_frames(provider: DemoProvider) -> None:
    provider.behave("hang_mid_stream", after_frames=3)

    received, broken = _read_until_broken(provider, CHAT, _asking(stream=True), timeout=0.3)

    assert broken
    assert received.count(b"\n\n") == 3


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("stream", [False, True])
def test_no_usage_is_said_but_the_bill_is_made(provider: DemoProvider, path: str, *, stream: bool) -> None:
    provider.behave("no_usage")

    answer = _post(provider, path, _asking(stream=stream, stream_options={"include_usage": True}))

    assert '"usage":{' not in answer.text
    assert provider.book()["billed_picodollars"] == _price(6, 12)


@pytest.mark.parametrize("text", ["null", '"10"', "-5", '{"prompt_tokens":NaN}', '{"completion_tokens":1e400}', "{}"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_any_text_stands_where_the_usage_would(provider: DemoProvider, path: str, text: str) -> None:
    provider.behave("usage", usage_text=text)

    whole = _post(provider, path, _asking()).text
    stream = _post(provider, path, _asking(stream=True, stream_options={"include_usage": True})).text

    assert f'"usage":{text}' in whole
    assert f'"usage":{text}' in stream


def test_single_fields_of_the_usage_can_be_told(provider: DemoProvider) -> None:
    provider.behave("ok", usage_fields={"prompt_tokens_details": {"cached_tokens": 3}}, billed_picodollars=77)

    usage = _post(provider, CHAT, _asking()).json()["usage"]

    assert (usage["prompt_tokens"], usage["prompt_tokens_details"]) == (6, {"cached_tokens": 3})
    assert provider.book()["billed_picodollars"] == 77


def test_an_overbill_is_used_reported_and_billed(provider: DemoProvider) -> None:
    provider.behave("overbill", factor=3)

    usage = _post(provider, MESSAGES, _asking(max_tokens=10)).json()["usage"]

    assert usage["output_tokens"] == 30
    assert provider.book()["billed_picodollars"] == _price(6, 30)


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_that_is_followed_is_a_second_hit(provider: DemoProvider, status: int) -> None:
    provider.behave("redirect", status=status)

    stayed = _post(provider, CHAT, _asking())
    hits = provider.book()["hits"]
    followed = _post(provider, CHAT, _asking(), follow_redirects=True)

    assert (stayed.status_code, hits) == (status, 1)
    assert (followed.status_code, provider.book()["hits"]) == (200, 3)
    assert provider.book()["billed_picodollars"] > 0


def test_garbage_is_billed(provider: DemoProvider) -> None:
    provider.behave("garbage", content_type="text/html")

    answer = _post(provider, CHAT, _asking())

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html")
    with pytest.raises(json.JSONDecodeError):
        answer.json()
    assert provider.book()["billed_picodollars"] == _price(6, 12)


@pytest.mark.parametrize("stream", [False, True])
def test_gzip_comes_though_identity_was_asked(provider: DemoProvider, *, stream: bool) -> None:
    plain = _post(provider, MESSAGES, _asking(stream=stream), headers={"accept-encoding": "identity"})
    provider.behave("gzip")
    squeezed = _post(provider, MESSAGES, _asking(stream=stream), headers={"accept-encoding": "identity"})

    assert squeezed.headers["content-encoding"] == "gzip"
    # httpx undoes it; all but the number of the call is the same.
    assert squeezed.text.replace("demo_2", "demo_1") == plain.text


def test_echo_gives_the_key_away(provider: DemoProvider) -> None:
    provider.behave("echo")

    answer = _post(provider, CHAT, _asking(), headers={"authorization": "Bearer sk-provider"})

    assert answer.headers["x-demo-received-key"] == "sk-provider"
    assert "sk-provider" in answer.json()["choices"][0]["message"]["content"]
    assert "sk-provider" not in json.dumps(provider.book())


def test_another_model_may_answer(provider: DemoProvider) -> None:
    provider.behave("model_echo", model="dearer")

    assert _post(provider, CHAT, _asking()).json()["model"] == "dearer"


@pytest.mark.parametrize("stream", [False, True])
def test_byte_by_byte_is_the_same_answer(provider: DemoProvider, *, stream: bool) -> None:
    whole = _post(provider, MESSAGES, _asking(stream=stream)).content
    provider.behave("byte_by_byte")

    slow = _post(provider, MESSAGES, _asking(stream=stream)).content

    assert slow.replace(b"demo_2", b"demo_1") == whole


def test_slow_still_answers(provider: DemoProvider) -> None:
    provider.behave("slow", delay_seconds=0.05, between_seconds=0.01)

    assert _post(provider, CHAT, _asking(stream=True)).text.endswith("[DONE]\n\n")


# The book and what it is told


def test_the_next_calls_go_as_told_in_order_and_then_well_again(provider: DemoProvider) -> None:
    provider.behave("refuse", calls=1, status=429)
    provider.behave("error_after_work", calls=2, status=503)

    statuses = [_post(provider, CHAT, _asking()).status_code for _ in range(4)]

    assert statuses == [429, 503, 503, 200]
    assert provider.book()["behaviours"] == {"refuse": 1, "error_after_work": 2, "ok": 1}


def test_a_word_in_the_prompt_tells_one_call_how_to_go(provider: DemoProvider) -> None:
    told = {"model": "m", "messages": [{"role": "user", "content": "[[behaviour:refuse]]"}]}

    assert [_post(provider, CHAT, body).status_code for body in (told, _asking())] == [429, 200]


def test_deleting_forgets_hits_bills_and_behaviours(provider: DemoProvider) -> None:
    provider.behave("refuse")
    _post(provider, CHAT, _asking())

    provider.reset()

    book = provider.book()
    assert (book["hits"], book["billed_usd"], book["requests"], book["open"]) == (0, "0", [], 0)
    assert _post(provider, CHAT, _asking()).status_code == 200


def test_the_record_of_a_call_has_names_and_numbers_and_no_text(provider: DemoProvider) -> None:
    body = _asking(max_tokens=9, stream=True) | {"messages": [{"role": "user", "content": "a private sentence"}]}

    _post(provider, CHAT, body, headers={"cookie": "a=b", "accept-encoding": "identity"})

    book = provider.book()
    (call,) = book["requests"]
    assert "cookie" in call["header_names"]
    assert (call["accept_encoding"], call["output_cap"], call["stream"]) == ("identity", 9, True)
    assert call["field_names"] == ["max_tokens", "messages", "model", "stream"]
    assert "private" not in json.dumps(book)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"model": 1}', b'{"model": "m", "messages": []}', b'{"model":"m","messages":[{}],"n":0}']
)
def test_what_it_cannot_read_is_refused_and_not_billed(provider: DemoProvider, body: bytes) -> None:
    answer = provider.client.post(CHAT, content=body)

    assert answer.status_code == 400
    assert (provider.book()["hits"], provider.book()["billed_picodollars"]) == (1, 0)


@pytest.mark.parametrize("document", [[], {"behaviour": "dance"}, {"calls": 0}, {"speed": 1}])
def test_what_it_is_told_wrongly_is_answered_with_what_is_allowed(provider: DemoProvider, document: Any) -> None:
    answer = provider.client.post("/_demo", json=document)

    assert answer.status_code == 400
    assert answer.json()["error"]


def test_another_key_than_the_expected_is_refused_in_both_headers() -> None:
    with demo_provider(expected_key="sk-right") as strict:
        statuses = [
            _post(strict, CHAT, _asking(), headers={"authorization": "Bearer sk-right"}).status_code,
            _post(strict, CHAT, _asking(), headers={"authorization": "Bearer sk-wrong"}).status_code,
            _post(strict, MESSAGES, _asking(), headers={"x-api-key": "sk-right"}).status_code,
            _post(strict, MESSAGES, _asking()).status_code,
        ]
        book = strict.book()

    assert statuses == [200, 401, 200, 401]
    assert [call["key_matches"] for call in book["requests"]] == [True, False, True, False]
    assert book["billed_picodollars"] == 2 * _price(6, 12)


def test_it_listens_on_loopback_only(provider: DemoProvider) -> None:
    port = httpx.URL(provider.url).port
    assert port is not None

    with socket.socket() as elsewhere:
        elsewhere.settimeout(2)
        assert elsewhere.connect_ex(("127.0.0.2", port)) != 0


def test_a_termination_ends_it_though_a_call_hangs() -> None:
    with start() as process:
        assert process.stdout is not None
        url = httpx.URL(json.loads(process.stdout.readline())["url"])
        with (
            httpx.Client(base_url=url, trust_env=False) as client,
            socket.create_connection(("127.0.0.1", url.port or 0)) as hung,
        ):
            running = DemoProvider(str(url), client)
            running.behave("hang")
            body = json.dumps(_asking()).encode()
            hung.sendall(
                b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (CHAT.encode(), len(body)) + body
            )
            while running.book()["open"] == 0:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=20)

    assert code == 0


def test_it_can_be_served_within_a_process_that_reads_its_book() -> None:
    async def hits() -> int:
        book = DemoBook()
        async with served(create_app(book=book)) as url, httpx.AsyncClient(trust_env=False) as client:
            await client.post(url + CHAT, json=_asking())
        return book.hits

    assert asyncio.run(hits()) == 1


def test_the_book_keeps_the_last_thousand_calls_and_counts_all() -> None:
    book = DemoBook()
    for number in range(RECORDS_MAX + 5):
        book.record(_call(number, billed=1))

    assert [book.calls[0].id, len(book.calls), book.billed_picodollars] == [5, RECORDS_MAX, RECORDS_MAX + 5]


def test_every_behaviour_can_be_told_by_name() -> None:
    assert [behaviour_from({"behaviour": name})[0].name for name in BEHAVIOURS] == list(BEHAVIOURS)


def test_no_hold_is_longer_than_ten_minutes() -> None:
    behaviour, _ = behaviour_from({"behaviour": "hang", "max_seconds": 1e9})

    assert behaviour == Behaviour(name="hang", max_seconds=600)


texts = st.text(max_size=200)


@given(prompts=st.lists(texts, min_size=1, max_size=5), system=st.none() | texts)
def test_input_tokens_never_exceed_the_bytes_and_five_for_each_message(prompts: list[str], system: str | None) -> None:
    document = {"model": "m", "system": system, "messages": [{"role": "user", "content": text} for text in prompts]}
    count = len(prompts) + (system is not None)

    work = work_of("anthropic", json.dumps(document).encode())

    sent = sum(len(text.encode(errors="surrogatepass")) for text in [*prompts, system or ""])
    assert work.input_tokens == 4 * count + -(-sent // 4)
    assert work.input_tokens <= sent + 5 * count


@given(cap=st.none() | st.integers(0, 10**6), wanted=st.integers(0, 10**6), choices=st.integers(1, 8))
def test_output_tokens_are_what_is_wanted_and_never_more_than_the_cap(
    cap: int | None, wanted: int, choices: int
) -> None:
    content = f"[[output:1]] [[output:{wanted}]]"
    document = {"model": "m", "n": choices, "max_tokens": cap, "messages": [{"role": "user", "content": content}]}

    work = work_of("openai", json.dumps(document).encode())

    assert work.output_tokens == choices * min(wanted, wanted if cap is None else cap)


def _asking(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hello"}], **fields}


def _post(provider: DemoProvider, path: str, body: Any, **options: Any) -> httpx.Response:
    return provider.client.post(path, json=body, **options)


def _read_until_broken(provider: DemoProvider, path: str, body: Any, timeout: float = 10) -> tuple[bytes, bool]:
    received = b""
    try:
        with provider.client.stream("POST", path, json=body, timeout=timeout) as answer:
            for data in answer.iter_bytes():
                received += data
    except httpx.TransportError:
        return received, True
    return received, False


def _wait_until_none_is_open(provider: DemoProvider) -> None:
    deadline = time.monotonic() + 10
    while provider.book()["open"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _price(input_tokens: int, output_tokens: int) -> int:
    each = Decimal("2.5") * input_tokens + Decimal(10) * output_tokens
    return usd(str(each / 1_000_000))


def _call(number: int, *, billed: int) -> Call:
    return Call(
        id=number,
        path=CHAT,
        behaviour="ok",
        key_matches=None,
        header_names=(),
        accept_encoding=None,
        billed_picodollars=billed,
    )
