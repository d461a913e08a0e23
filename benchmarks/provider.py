"""A provider in a process of its own that answers at once, with as little of the machine as Python can: ``python -m benchmarks.provider PORT``.

Any POST is a chat completion, whole or (where the body says ``"stream": true``) in ``CHUNKS`` events.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

CHUNKS: Final = 20
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"
_HEAD: Final = {"id": "chatcmpl-0123456789abcdef", "created": 1_700_000_000, "model": "conformance-model"}
_USAGE: Final = {"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250}


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(_HEAD_END)) >= 0:
            whole = end + len(_HEAD_END) + _length(self._buffer[:end].lower())
            if len(self._buffer) < whole:
                return
            body, self._buffer = self._buffer[end:whole], self._buffer[whole:]
            self._answer(b'"stream":true' in body.replace(b" ", b""))

    def _answer(self, streamed: bool) -> None:  # noqa: FBT001 - the one question
        assert self._transport is not None
        if not streamed:
            self._transport.write(WHOLE)
            return
        # Each in a write of its own, as a provider's events come.
        for piece in STREAM:
            self._transport.write(piece)


def _length(head: bytes) -> int:
    at = head.find(_LENGTH)
    if at < 0:
        # A body in chunks is none of these benchmarks' clients'.
        return 0
    return int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])


def _whole() -> bytes:
    message = {"role": "assistant", "content": "Three of the open tickets do. " * 6}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _stream() -> list[bytes]:
    head: dict[str, Any] = {**_HEAD, "object": "chat.completion.chunk"}
    frames = [
        {**head, "choices": [{"index": 0, "delta": {"content": f"word-{number} "}, "finish_reason": None}]}
        for number in range(CHUNKS - 2)
    ]
    frames.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    frames.append({**head, "choices": [], "usage": _USAGE})
    events = [*(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames), b"data: [DONE]\n\n"]
    start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return [start, *(b"%x\r\n%b\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]


WHOLE: Final = _whole()
STREAM: Final = _stream()


async def main(port: int) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
