"""An ASGI answer with the manners of a bad network: it can stop half-way, break, or come byte by byte."""

import asyncio
import gzip
import zlib
from collections.abc import Mapping
from typing import Final

from starlette.types import Receive, Send

_GZIP: Final = 16 + zlib.MAX_WBITS
_DRAIN_SECONDS_MAX: Final = 5.0


class Wire:
    """One answer on its way out."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._headers: dict[str, str] = {}
        self._compressor: zlib._Compress | None = None
        # No ASGI message breaks a connection; uvicorn's own cycle, whose method `receive` is, has the transport.
        self._transport = getattr(getattr(receive, "__self__", None), "transport", None)

    def add(self, headers: Mapping[str, str]) -> None:
        """Add headers to the answer that has not begun."""
        self._headers |= headers

    async def gone_within(self, seconds: float) -> bool:
        """Wait; return at once, and True, if the caller goes meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True

    async def whole(self, status: int, body: bytes, headers: Mapping[str, str], *, gzipped: bool = False) -> None:
        """Send a whole answer."""
        if gzipped:
            body = gzip.compress(body, mtime=0)
            headers = {**headers, "content-encoding": "gzip"}
        await self._begin(status, {**headers, "content-length": str(len(body))})
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, status: int, headers: Mapping[str, str], *, gzipped: bool = False) -> None:
        """Begin an answer that comes in parts."""
        if gzipped:
            self._compressor = zlib.compressobj(wbits=_GZIP)
            headers = {**headers, "content-encoding": "gzip"}
        await self._begin(status, headers)

    async def more(self, data: bytes, *, byte_by_byte: bool = False) -> None:
        """Send a part of the answer."""
        if self._compressor is not None:
            data = self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        parts = [data[at : at + 1] for at in range(len(data))] if byte_by_byte else [data]
        for part in parts:
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(0)

    async def end(self) -> None:
        """End an answer that came in parts."""
        rest = self._compressor.flush() if self._compressor is not None else b""
        await self._send({"type": "http.response.body", "body": rest})

    async def abort(self) -> None:
        """Break the connection."""
        if self._transport is None:
            raise ConnectionResetError("the demo provider breaks the connection")
        # Let what was sent reach the socket: aborting drops what is still in the buffer.
        deadline = asyncio.get_running_loop().time() + _DRAIN_SECONDS_MAX
        while (  # noqa: ASYNC110 - a transport has no event for its buffer
            self._transport.get_write_buffer_size() and asyncio.get_running_loop().time() < deadline
        ):
            await asyncio.sleep(0.005)
        self._transport.abort()
        await self.gone_within(_DRAIN_SECONDS_MAX)

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        pairs = [(name.encode(), value.encode()) for name, value in {**self._headers, **headers}.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
