"""A JSON array of objects, read while it passes: Gemini's stream where nobody asked for server-sent events."""

import re
from typing import Final

from spendgate.dialects.sse import FRAME_BYTES_MAX, Frame

_BLANK: Final = re.compile(rb"[ \t\r\n]*")
# Outside a string only these matter to where an object ends; inside one, what ends it or escapes the next byte.
_PLAIN: Final = re.compile(rb'["{}]')
_QUOTED: Final = re.compile(rb'["\\]')


class ArrayReader:
    """Cuts a JSON array into frames: every byte that comes in belongs to one, however the stream is split.

    A frame is one object with the bracket, comma and blanks before it; once the array is closed, the rest is a last
    one without data. What is no array of objects, or has an object above the limit, passes unread from there on.
    """

    def __init__(self, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._at = 0
        self._expected = b"["
        # Where the object begins in the buffer, and how deep it is nested here; None between objects.
        self._start: int | None = None
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._lost = False

    @property
    def closed(self) -> bool:
        """Whether the bracket that closes the array was seen."""
        return not self._expected

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes; return the frames that are complete now."""
        self._buffer += data
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        if self._lost or len(self._buffer) > self._frame_bytes_max:
            self._lost = True
            frames.append(Frame(raw=self._take(len(self._buffer)), readable=False, ended=False))
        return frames

    def end(self) -> list[Frame]:
        """Return what is left when the stream is over: the array's end, or an object that never ended."""
        if not self._buffer:
            return []
        data = None if self._start is None else bytes(self._buffer[self._start :])
        return [Frame(raw=self._take(len(self._buffer)), data=data, ended=self.closed)]

    def _next(self) -> Frame | None:
        """Return the next object, or None while there is none that is complete."""
        while self._at < len(self._buffer) and not self._lost and not self.closed:
            if self._start is None:
                self._between()
            elif self._escaped:
                self._at += 1
                self._escaped = False
            elif self._quoted:
                self._in_string()
            elif (end := self._in_object()) is None:
                continue
            elif end > self._frame_bytes_max:
                self._lost = True
            else:
                data = bytes(self._buffer[self._start : end])
                return Frame(raw=self._take(end), data=data)
        return None

    def _between(self) -> None:
        found = _BLANK.match(self._buffer, self._at)
        self._at = found.end() if found else self._at
        byte = bytes(self._buffer[self._at : self._at + 1])
        if not byte:
            return
        if byte not in self._expected:
            self._lost = True
        elif byte == b"{":
            self._start, self._depth = self._at, 0
        else:
            self._at += 1
            self._expected = {b"[": b"{]", b",": b"{", b"]": b""}[byte]

    def _in_string(self) -> None:
        match = _QUOTED.search(self._buffer, self._at)
        self._at = match.end() if match else len(self._buffer)
        self._quoted = match is None or match[0] != b'"'
        self._escaped = match is not None and match[0] == b"\\"

    def _in_object(self) -> int | None:
        """Go on to the next byte that matters; return where the object ends, if there."""
        match = _PLAIN.search(self._buffer, self._at)
        self._at = match.end() if match else len(self._buffer)
        if match is None:
            return None
        if match[0] == b'"':
            self._quoted = True
        else:
            self._depth += 1 if match[0] == b"{" else -1
        return self._at if self._depth == 0 and match[0] == b"}" else None

    def _take(self, end: int) -> bytes:
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        self._at, self._start = 0, None
        if not self.closed:
            self._expected = b",]"
        return raw
