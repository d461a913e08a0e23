"""Server-sent events, read while they pass: every byte that comes in belongs to exactly one frame."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One event as it came (``raw``, its blank line included) and what it says.

    ``data`` is None where the event has none (a comment, a blank line). A frame that is not ``readable`` was larger
    than the limit: it comes in pieces, with nothing but its bytes. ``ended`` is False for a last frame whose blank
    line never came.
    """

    raw: bytes
    event: str = ""
    data: bytes | None = None
    readable: bool = True
    ended: bool = True


class SseReader:
    """Cuts a byte stream into frames. The frames are the same however the stream is split."""

    def __init__(self, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._searched = 0
        self._line_start = 0
        # Of a frame that is passed on in pieces: its line goes on from an earlier piece.
        self._line_open = False
        self._oversize = False

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes; return the frames that are complete now."""
        self._buffer += data
        return list(self._frames(final=False))

    def end(self) -> list[Frame]:
        """Return what is left when the stream is over."""
        frames = list(self._frames(final=True))
        if self._buffer:
            frames.append(self._cut(len(self._buffer), ended=False))
        return frames

    def _frames(self, *, final: bool) -> Iterator[Frame]:
        while match := _LINE_END.search(self._buffer, self._searched):
            if match.end() == len(self._buffer) and match[0] == b"\r" and not final:
                # The other half of a \r\n may follow, and must not become a frame of its own.
                self._searched = match.start()
                break
            blank = match.start() == self._line_start and not self._line_open
            self._line_start = self._searched = match.end()
            self._line_open = False
            if blank:
                yield self._cut(match.end(), ended=True)
        else:
            self._searched = len(self._buffer)
        if self._searched > self._frame_bytes_max or (self._oversize and self._searched):
            yield self._piece()

    def _piece(self) -> Frame:
        """Let go of the part that was searched, so that memory stays bounded."""
        self._oversize = True
        self._line_open = self._line_open or self._line_start < self._searched
        raw = self._take(self._searched)
        return Frame(raw=raw, readable=False, ended=False)

    def _cut(self, end: int, *, ended: bool) -> Frame:
        raw = self._take(end)
        readable = not self._oversize and len(raw) <= self._frame_bytes_max
        self._oversize = self._line_open = False
        if not readable:
            return Frame(raw=raw, readable=False, ended=ended)
        event, data = _fields(raw)
        return Frame(raw=raw, event=event, data=data, ended=ended)

    def _take(self, end: int) -> bytes:
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        self._searched = self._line_start = 0
        return raw


def _fields(raw: bytes) -> tuple[str, bytes | None]:
    """Return the event's name and its data lines, joined; data is None where there is no data line."""
    event = ""
    data: list[bytes] = []
    for line in _LINE_END.split(raw.removeprefix(_BOM)):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace")
    return event, b"\n".join(data) if data else None
