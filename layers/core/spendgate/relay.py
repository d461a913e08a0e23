"""Hands the pieces of a streamed answer from the task that reads the provider to the one that serves the caller.

The caller may be slow or gone; the provider is read to its end all the same, since only its end says what it cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

PIECES_MAX: Final = 256
# A caller that takes nothing for so long is taken for gone, or its answer would never be settled.
STALLED_SECONDS: Final = 30.0


class Relay:
    """A bounded queue with one writer and one reader, each of which may stop early."""

    def __init__(self, *, stalled_seconds: float = STALLED_SECONDS) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(PIECES_MAX)
        self._stalled_seconds = stalled_seconds
        self._left = False

    async def send(self, piece: bytes) -> None:
        """Give a piece to the reader; without one it is dropped."""
        if piece:
            await self._put(piece)

    async def close(self) -> None:
        """Say that there are no more pieces."""
        await self._put(None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces until the writer closes."""
        while (piece := await self._queue.get()) is not None:
            yield piece

    def leave(self) -> None:
        """Say that nobody reads any more."""
        self._left = True
        while not self._queue.empty():
            # Frees the writer, should it wait for room.
            self._queue.get_nowait()

    async def _put(self, piece: bytes | None) -> None:
        if self._left:
            return
        if not self._queue.full():
            self._queue.put_nowait(piece)
            return
        try:
            await asyncio.wait_for(self._queue.put(piece), self._stalled_seconds)
        except TimeoutError:
            self.leave()
            # A reader that wakes after all finds the end, not silence.
            self._queue.put_nowait(None)
