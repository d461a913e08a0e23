"""Asking another function: what it returns, streamed or not, and every way in which it does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from spendgate.errors import AlertUndelivered, LedgerUnavailable
from spendgate.store.invoke import ask_gateway, send_test_alerts

ANSWER = {"report": None, "said": "nothing"}
WHOLE = json.dumps(ANSWER).encode()
STREAMED = b'{"statusCode":200,"headers":{"content-type":"application/json"},"cookies":[]}' + b"\0" * 8 + WHOLE


@contextmanager
def a_lambda(
    monkeypatch: pytest.MonkeyPatch, payload: bytes, *, status: int = 200, error: str | None = None
) -> Iterator[list[tuple[str, Any]]]:
    """Play the service that invokes functions; yield what it was asked."""
    seen: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(status)
            self.send_header("content-length", str(len(payload)))
            if error is not None:
                self.send_header("X-Amz-Function-Error", error)
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("payload", [WHOLE, STREAMED], ids=["whole", "streamed"])
def test_the_gateway_is_asked_about_a_reservation_by_its_alias(monkeypatch: pytest.MonkeyPatch, payload: bytes) -> None:
    alias = "arn:aws:lambda:us-east-1:000000000000:function:gateway:live"
    with a_lambda(monkeypatch, payload) as seen:
        assert ask_gateway(alias, "an-id", region="us-east-1") == ANSWER

    ((path, event),) = seen
    assert "gateway%3Alive" in path
    # No part of it looks like a request: the adapter would make one of it.
    assert event == {"reservation": "an-id"}


@pytest.mark.parametrize(
    "payload, status, error, said",
    [
        (b"{}", 500, None, "does not answer: ServiceException|does not answer: ClientError"),
        (b"{}", 429, None, "does not answer"),
        (b'{"errorMessage": "sk-CANARY"}', 200, "Unhandled", "failed; its log says why"),
        (b"<html>", 200, None, "no JSON"),
        (b"null", 200, None, "answered nothing"),
        (b"", 200, None, "no JSON"),
    ],
)
def test_a_function_that_does_not_answer_is_told_in_a_few_words(
    monkeypatch: pytest.MonkeyPatch, payload: bytes, status: int, error: str | None, said: str
) -> None:
    with a_lambda(monkeypatch, payload, status=status, error=error) as seen:
        with pytest.raises(LedgerUnavailable, match=said) as gateway:
            ask_gateway("gateway", "an-id", region="us-east-1")
        with pytest.raises(AlertUndelivered, match=said):
            send_test_alerts("alerts", region="us-east-1")

    # Each is asked once: nobody knows what it has done by then.
    assert len(seen) == 2
    assert "CANARY" not in str(gateway.value)
