"""A provider that answers at once, whole or streamed, in this process: a transport of httpx, and the pool that has it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import cache
from typing import Any, Final

import httpx

from spendgate.core.address import Network
from spendgate.providers.attempt import Pool
from spendgate.wiring import utc_now

EGRESS: Final = "provider"


class StubProvider(httpx.AsyncBaseTransport):
    """Answers at once, whole or in ``chunks`` pieces, and tells the trace that a request came."""

    def __init__(self, trace: list[str]) -> None:
        self._trace = trace
        self.chunks = 50

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._trace.append(EGRESS)
        if b'"stream":true' in await request.aread():
            return httpx.Response(
                200, headers={"content-type": "text/event-stream"}, stream=_Pieces(_stream(self.chunks))
            )
        return httpx.Response(200, headers={"content-type": "application/json"}, stream=_Pieces([_whole()]))


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class StubPool(Pool):
    """The pool of the gateway, whose client has the stub for a network."""

    def __init__(self, stub: StubProvider) -> None:
        super().__init__(clock=utc_now, connect_seconds=5, idle_seconds=60)
        self._stub = stub

    def _new(self, _: Network) -> httpx.AsyncBaseTransport:
        return self._stub


_HEAD: Final = {"id": "chatcmpl-0123456789abcdef", "created": 1_700_000_000, "model": "stub-model"}
_USAGE: Final = {"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250}


@cache
def _whole() -> bytes:
    message = {"role": "assistant", "content": "Three of the open tickets do. " * 6}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}).encode()


@cache
def _stream(chunks: int) -> list[bytes]:
    head = {**_HEAD, "object": "chat.completion.chunk"}
    deltas = [{"content": f"word-{number} "} for number in range(chunks - 1)]
    frames: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None} for delta in deltas
    ]
    frames.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None})
    frames.append({**head, "choices": [], "usage": _USAGE})
    return [b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames] + [b"data: [DONE]\n\n"]
