"""What the provider sees of the gateway: its connections and its headers, and nothing of the caller's."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.gateway.stand import Stand, chat

ROOMY = "$: {limits: {usd: {day: 1}}}"

both = pytest.mark.parametrize("dialect", ["openai", "anthropic"])


def test_a_connection_is_used_again_within_its_time(stand: Stand) -> None:
    key = stand.open(ROOMY)
    assert [stand.chat(key).status_code for _ in range(3)] == [200] * 3
    assert stand.message(key).status_code == 200
    assert stand.provider.connections == 1


def test_a_connection_is_not_used_again_after_a_pause_of_the_wall_clock(stand: Stand) -> None:
    # A frozen function's monotonic clock stands still, and its sockets may be dead when it thaws.
    key = stand.open(ROOMY)
    for _ in range(3):
        assert stand.chat(key).status_code == 200
        stand.clock.turn(seconds=stand.settings.idle_seconds_max + 1)
    assert stand.provider.connections == 3
    assert stand.hits == 3


def test_a_stream_that_is_being_read_is_not_broken_by_a_new_call_after_a_pause(stand: Stand) -> None:
    key = stand.open(ROOMY)
    stand.behave("slow", delay_seconds=0.01, between_seconds=0.05)

    async def both_calls() -> tuple[int, str]:
        streamed = asyncio.create_task(asyncio.to_thread(stand.chat, key, stream=True))
        await asyncio.to_thread(stand.until, lambda: stand.hits == 1)
        stand.clock.turn(seconds=stand.settings.idle_seconds_max + 1)
        other = await asyncio.to_thread(stand.chat, key)
        return other.status_code, (await streamed).text

    status, text = asyncio.run(both_calls())
    assert status == 200
    assert text.rstrip().endswith("[DONE]")
    assert {one.state for one in stand.reservations()} == {"settled"}
    stand.audited()


def test_an_idle_connection_beside_a_busy_one_is_not_used_again_after_a_pause(stand: Stand) -> None:
    key = stand.open(ROOMY)
    # Two connections, of which one goes idle while the other is still being read.
    stand.behave("slow", delay_seconds=1.5)
    stand.behave("slow", delay_seconds=0.3)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(stand.chat, key)
        stand.until(lambda: stand.hits == 1)
        assert threads.submit(stand.chat, key).result().status_code == 200
        stand.clock.turn(seconds=stand.settings.idle_seconds_max + 1)
        assert stand.chat(key).status_code == 200
        assert slow.result().status_code == 200
    assert stand.provider.connections == 3


@both
def test_the_provider_sees_its_own_key_and_none_of_the_caller_s_headers(stand: Stand, dialect: str) -> None:
    key = stand.open(ROOMY)
    headers = {
        "cookie": "session=1",
        "x-forwarded-for": "10.0.0.1",
        "accept-encoding": "br, gzip, zstd",
        "openai-organization": "org-of-the-caller",
        "user-agent": "an-agent/1.0",
        "x-stainless-retry-count": "0",
        "api-key": key,
        "x-spendgate-request-id": "r1",
        "idempotency-key": "r1",
    }
    assert stand.call(dialect, key, headers=headers).status_code == 200
    (call,) = stand.calls
    assert call.key_matches is True
    assert call.accept_encoding == "identity"
    allowed = {"host", "accept", "accept-encoding", "content-type", "content-length", "user-agent", "connection"}
    own = {"openai": {"authorization"}, "anthropic": {"x-api-key", "anthropic-version"}}[dialect]
    assert set(call.header_names) <= allowed | own
    (arrival,) = stand.provider.arrivals
    assert key not in str(arrival.headers)
    assert "an-agent" not in str(arrival.headers)


def test_what_the_anthropic_protocol_needs_goes_along(stand: Stand) -> None:
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "prompt-caching-2024-07-31"}
    assert stand.message(stand.open(ROOMY), headers=headers).status_code == 200
    (arrival,) = stand.provider.arrivals
    assert arrival.headers["anthropic-version"] == "2023-06-01"
    assert arrival.headers["anthropic-beta"] == "prompt-caching-2024-07-31"


def test_the_caller_sees_no_header_of_the_provider_but_those_that_its_sdk_reads(stand: Stand) -> None:
    response = stand.chat(stand.open(ROOMY))
    names = {name for name in response.headers if not name.startswith("x-spendgate-")}
    assert names == {"date", "server", "content-type", "content-length", "x-request-id"}


def test_the_body_that_leaves_is_the_one_that_was_read_and_bounded(stand: Stand) -> None:
    key = stand.open(ROOMY)
    text = (
        '{"model" : "gpt",  "messages": [{"role":"user","content":"H\\u0065llo \\ud83d\\ude00"}], "max_tokens": 5.0e0}'
    )
    refused = stand.post("/v1/chat/completions", text.encode(), key)
    assert refused.status_code == 400
    body = chat("Hello \U0001f600")
    assert stand.post("/v1/chat/completions", body, key).status_code == 200
    sent = b"".join(stand.provider.bodies)
    assert b'"model":"demo"' in sent
    assert "\U0001f600".encode() in sent or b"\\ud83d\\ude00" in sent
