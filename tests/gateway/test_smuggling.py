"""Requests that two readers could understand differently, sent over a raw socket: a clean 4xx, and nothing leaves."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.gateway.stand import Stand, chat, message, raw_socket

CHAT = json.dumps(chat()).encode()
POST = "POST /v1/chat/completions HTTP/1.1"
KEY = "authorization: Bearer KEY"
JSON = "content-type: application/json"


def answered(stand: Stand, sent: bytes) -> tuple[int, bytes]:
    """Send bytes, and return the status and body of the first answer; the connection is closed for writing then."""
    with raw_socket(stand.url) as connection:
        connection.sendall(sent)
        answer = b""
        while True:
            head, found, body = answer.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if found and length is not None and len(body) >= int(length.group(1)):
                return int(head.split(b" ", 2)[1]), body[: int(length.group(1))]
            piece = connection.recv(65536)
            if not piece:
                assert found, answer
                return int(head.split(b" ", 2)[1]), body
            answer += piece


def request(first: str, *headers: str, body: bytes = CHAT, length: bool = True) -> bytes:
    own = [f"content-length: {len(body)}"] if length else []
    head = "\r\n".join([first, "host: gateway", *headers, *own])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def refused(stand: Stand, sent: bytes, *, statuses: tuple[int, ...] = (400,)) -> dict[str, Any]:
    """Return what is told of a refusal that is in the usual shape, or nothing for the server's own."""
    status, body = answered(stand, sent)
    assert status in statuses, (status, body)
    assert stand.hits == 0
    assert stand.reservations() == ()
    logged = stand.log.getvalue()
    assert "Traceback" not in logged
    assert "fault" not in logged
    if not body.startswith(b"{"):
        # What is no HTTP is told by the server (h11), before there is a request.
        assert body in (b"Invalid HTTP request received.", b"")
        return {}
    told: dict[str, Any] = json.loads(body)
    return told


@pytest.fixture
def key(stand: Stand) -> str:
    stand.log.seek(0)
    stand.log.truncate()
    return stand.open("$: {limits: {usd: {day: 1}}}")


def test_the_plain_request_of_these_tests_is_answered(stand: Stand, key: str) -> None:
    status, _ = answered(stand, request(POST, KEY.replace("KEY", key), JSON))

    assert (status, stand.hits) == (200, 1)


HEADS = {
    "two keys in one header": [KEY, KEY],
    "a key and another in one header": [KEY, "authorization: Bearer sg-other"],
    "two keys in two headers": [KEY, "x-api-key: sg-another-key"],
    "two content types": [KEY, JSON, "content-type: text/plain"],
    "two content encodings": [KEY, "content-encoding: identity", "content-encoding: gzip"],
    "two hosts": [KEY, "host: elsewhere"],
    "two runs": [KEY, "x-spendgate-run: a", "x-spendgate-run: b"],
    "two idempotency keys": [KEY, "idempotency-key: a", "Idempotency-Key: b"],
    "two idempotency keys, of two names": [KEY, "x-spendgate-request-id: a", "X-Spendgate-Request-Id: a"],
    "two lengths": [KEY, "content-length: 3"],
    "a length that is none": [KEY, "content-length: +3"],
    "a length below nothing": [KEY, "content-length: -1"],
    "a length and pieces": [KEY, "transfer-encoding: chunked"],
    "a length and pieces, in capitals": [KEY, "Transfer-Encoding: Chunked"],
    "pieces of another kind": [KEY, "transfer-encoding: gzip, chunked"],
    "pieces of an unknown kind": [KEY, "transfer-encoding: xchunked"],
    "a line that is folded over the end of a name": [KEY, "transfer-encoding : chunked"],
    "a name with a space": [KEY, "x y: z"],
    "a name with a NUL": [KEY, "x\0y: z"],
    "a value with a NUL": [KEY, "anthropic-beta: a\0b"],
    "a value with a bare CR": [KEY, "anthropic-beta: a\rb: c"],
    "a value beyond ASCII": [KEY, "anthropic-beta: caf\xe9"],
    "a key beyond ASCII": ["authorization: Bearer sg-\xff\xfe"],
    "too many headers": [KEY, *(f"x-{number}: y" for number in range(200))],
    "a header that is too long": [KEY, f"x-long: {'y' * 70_000}"],
    "too many bytes of headers": [KEY, *(f"x-{number}: {'y' * 2000}" for number in range(50))],
}


@pytest.mark.parametrize("headers", HEADS.values(), ids=HEADS)
def test_a_head_that_can_be_read_in_two_ways_is_refused(stand: Stand, key: str, headers: list[str]) -> None:
    sent = request(POST, *(header.replace("KEY", key) for header in headers))

    refused(stand, sent, statuses=(400, 401, 431, 501))


TARGETS = [
    "/v1//chat/completions", "//v1/chat/completions", "/v1/../v1/chat/completions", "/v1/./chat/completions",
    "/v1/chat/completions/..", "/v1%2Fchat/completions", "/v1/chat%2fcompletions", "/v1/chat/completions%00",
    "/v1/%2e%2e/v1/chat/completions", "/v1/chat/completions;x=1", "/v1/chat/completions%3Bx", "/v1\\chat\\completions",
    "/v1/chat/completions%5C", "/v1/chat/completions%20", "/v1/chat/%63ompletions", "/v1/chat/completions%0d%0aX:%20y",
    "/v1/chat/completions%25%30", "/v1/chat/completions/", "/V1/chat/completions", "/v1/chat/completions%ff",
    "/model/x%2F..%2f..%2fmodel/converse", "/model/%2e%2e/converse", "/v1beta/models/..:generateContent",
    f"/v1/chat/completions?{'x' * 5000}", f"/{'a' * 5000}", "/v1/chat/completions?a=1&a=2", "/v1/chat/completions?%00",
    "/v1/chat/completions?key=sg-a&key=sg-b", "http://elsewhere/v1/chat/completions", "*", "v1/chat/completions",
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/v1/chat/completions", ("error", "code")),
        ("/v1/messages", ("error", "details", "code")),
        ("/v1beta/models/gemini:generateContent", ("error", "details", 0, "code")),
        ("/model/m/converse", ("details", "code")),
    ],
)
@pytest.mark.parametrize(
    "header", ["authorization: Bearer", "x-goog-api-key:", "anthropic-version: 2023-06-01\r\nx-api-key:"]
)
def test_a_head_is_refused_in_the_shape_of_its_path_whatever_it_brings(
    stand: Stand, key: str, path: str, place: tuple[str | int, ...], header: str
) -> None:
    twice = ("idempotency-key: a", "idempotency-key: b")
    _, content = answered(stand, request(f"POST {path} HTTP/1.1", f"{header} {key}", *twice, body=CHAT))

    told: Any = json.loads(content)
    for step in place:
        told = told[step]
    assert told == "request_invalid"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[:60])
def test_a_path_or_query_that_can_be_read_in_two_ways_is_refused(stand: Stand, key: str, target: str) -> None:
    refused(stand, request(f"POST {target} HTTP/1.1", KEY.replace("KEY", key)), statuses=(400, 401, 404))


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "CONNECT", "post", "X"]
)
def test_a_call_is_made_by_post_only(stand: Stand, key: str, method: str) -> None:
    sent = request(f"{method} /v1/chat/completions HTTP/1.1", KEY.replace("KEY", key))

    refused(stand, sent.replace(b"host: gateway", b"host: gateway\r\nconnection: close"), statuses=(400, 404))


def test_a_key_in_the_header_and_another_in_the_query_are_refused(stand: Stand, key: str) -> None:
    body = json.dumps({"contents": [{"parts": [{"text": "Hello"}]}]}).encode()
    target = "POST /v1beta/models/gemini:generateContent?key=sg-another HTTP/1.1"

    told = refused(stand, request(target, f"x-goog-api-key: {key}", body=body), statuses=(401,))

    assert "two different keys" in told["error"]["message"]


def test_what_follows_a_refused_request_on_its_connection_is_no_request_of_its_own(stand: Stand, key: str) -> None:
    """The body of the first would be a call, were its length not believed."""
    hidden = request(POST, KEY.replace("KEY", key), JSON)
    body = b"0\r\n\r\n" + hidden
    first = request(POST, "transfer-encoding: chunked", body=body)

    with raw_socket(stand.url) as connection:
        connection.sendall(first)
        # The first answer before the end is said: a server that sees both at once may leave without a word.
        answer = connection.recv(65536)
        connection.shutdown(1)
        answer += b"".join(iter(lambda: connection.recv(65536), b""))

    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 200") == 0
    assert stand.hits == 0


def test_a_header_that_was_split_never_reaches_the_provider(stand: Stand, key: str) -> None:
    body = json.dumps(message()).encode()
    sent = request(
        "POST /v1/messages HTTP/1.1", f"x-api-key: {key}", "anthropic-version: 2023-06-01\n x-evil: 1", body=body
    )

    refused(stand, sent)


def test_the_platform_s_headers_are_nothing_where_no_adapter_is_trusted(stand: Stand, key: str) -> None:
    spoofed = [
        'x-amzn-lambda-context: {"deadline": 1}',
        'x-amzn-request-context: {"requestId": "CHOSEN"}',
        "x-amzn-trace-id: Root=CHOSEN",
    ]

    status, _ = answered(stand, request(POST, KEY.replace("KEY", key), JSON, *spoofed))

    assert (status, stand.hits) == (200, 1)
    assert "CHOSEN" not in stand.log.getvalue() + stand.tables()
    assert not any(name.startswith("x-amzn") for name in stand.provider.arrivals[0].headers)


def test_every_refusal_has_an_id_that_the_log_has_too(stand: Stand, key: str) -> None:
    told = refused(stand, request(POST, KEY.replace("KEY", key), "x-spendgate-run: a", "x-spendgate-run: b"))

    assert told["error"]["code"] == "request_invalid"
    lines = [json.loads(line) for line in stand.log.getvalue().splitlines()]
    (line,) = [line for line in lines if line["message"] == "refusal"]
    assert re.fullmatch("[0-9a-f]{32}", line["request_id"])
    assert (line["code"], line["error.type"]) == ("request_invalid", "request_invalid")
