"""Callers that go away or stall, and a gateway that is stopped: the provider is read to its end, or its money is held."""

import asyncio
import json
import socket
from typing import Any

import pytest

from tests.gateway.stand import Stand, chat, message, raw_socket

ROOMY = "$: {limits: {usd: {day: 1}}}"

both = pytest.mark.parametrize("dialect", ["openai", "anthropic"])


def begun(stand: Stand, dialect: str, key: str, **fields: Any) -> socket.socket:
    """Send a call over a connection of one's own, and read nothing yet."""
    path, body = (
        ("/v1/chat/completions", chat(**fields)) if dialect == "openai" else ("/v1/messages", message(**fields))
    )
    content = json.dumps(body).encode()
    connection = raw_socket(stand.url)
    head = f"POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {key}\r\ncontent-length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


def settled_at_true_usage(stand: Stand) -> None:
    one = stand.ended()
    assert one.state == "settled"
    assert one.actual is not None
    assert one.actual.usd == stand.book.billed_picodollars > 0
    assert stand.hits == 1
    stand.audited()


@both
def test_a_caller_who_goes_in_the_middle_of_a_stream_does_not_end_the_reading(stand: Stand, dialect: str) -> None:
    stand.behave("slow", delay_seconds=0.01, between_seconds=0.05)
    with begun(stand, dialect, stand.open(ROOMY), stream=True) as connection:
        assert b"200 OK" in connection.recv(4096)
    settled_at_true_usage(stand)


@both
@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_who_goes_before_the_first_byte_does_not_end_the_reading(
    stand: Stand, dialect: str, stream: bool
) -> None:
    stand.behave("slow", delay_seconds=0.5)
    with begun(stand, dialect, stand.open(ROOMY), stream=stream):
        stand.until(lambda: stand.hits == 1)
    settled_at_true_usage(stand)


@both
def test_a_caller_who_breaks_the_connection_does_not_end_the_reading(stand: Stand, dialect: str) -> None:
    stand.behave("slow", delay_seconds=0.01, between_seconds=0.05)
    with begun(stand, dialect, stand.open(ROOMY), stream=True) as connection:
        connection.recv(4096)
        # A reset, and not the polite end of a connection.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    settled_at_true_usage(stand)


def test_a_caller_who_goes_before_the_request_is_whole_reserves_nothing(stand: Stand) -> None:
    key = stand.open(ROOMY)
    with raw_socket(stand.url) as connection:
        head = f"POST /v1/messages HTTP/1.1\r\nhost: gateway\r\nx-api-key: {key}\r\ncontent-length: 1000\r\n\r\n"
        connection.sendall(head.encode() + b'{"model": "claude"')
        stand.until(lambda: len(stand.gateway.arrivals) == 1)
    assert stand.chat(key).status_code == 200
    assert stand.hits == 1
    assert stand.reservation().dialect == "openai"
    # A caller's own end is no fault of ours, and nobody is woken for it.
    assert "reason of ours" not in stand.log.getvalue()


def test_a_caller_who_takes_nothing_does_not_hold_up_the_settlement(stand: Stand) -> None:
    # More frames than a caller's buffers hold would need minutes here; that the writer waits for room at most so long
    # is shown on the relay itself.
    with begun(stand, "openai", stand.open(ROOMY), stream=True):
        settled_at_true_usage(stand)


@both
@pytest.mark.parametrize("behaviour", ["hang", "hang_mid_stream"])
def test_calls_in_flight_when_the_gateway_is_stopped_become_unknown_and_their_money_stays(
    stand: Stand, dialect: str, behaviour: str
) -> None:
    stand.behave(behaviour, after_frames=3)
    with begun(stand, dialect, stand.open(ROOMY), stream=True):
        stand.until(lambda: stand.hits == 1)
        stand.until(lambda: bool(stand.reservations()))
        stand.run(stand.wired.gateway.aclose(grace_seconds=0.3))
        one = stand.ended()
    assert one.state == "unknown"
    assert stand.state().reserved == stand.state().unknown == one.asked.usd
    stand.audited()


def test_a_call_that_ends_within_the_grace_of_a_stopping_gateway_is_settled(stand: Stand) -> None:
    key = stand.open(ROOMY)
    stand.behave("slow", delay_seconds=0.5)

    async def stopped() -> None:
        call = asyncio.create_task(asyncio.to_thread(stand.chat, key))
        await asyncio.to_thread(stand.until, lambda: stand.hits == 1)
        closing = asyncio.run_coroutine_threadsafe(stand.wired.gateway.aclose(grace_seconds=10), stand.loop)
        await asyncio.wrap_future(closing)
        assert (await call).status_code == 200

    asyncio.run(stopped())
    settled_at_true_usage(stand)
