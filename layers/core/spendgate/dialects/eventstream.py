"""Amazon's binary event stream, read while it passes: every byte that comes in belongs to exactly one frame.

botocore reads a frame (application/vnd.amazon.eventstream: a prelude with its checksum, headers, payload, checksum); it
cannot write one, which is what an error of the gateway's own in a stream that has begun needs.
"""

import struct
from binascii import crc32
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from botocore.eventstream import EventStreamBuffer, EventStreamMessage, ParserError

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
FRAME_BYTES_MAX: Final = 25 * 1024 * 1024
_PRELUDE: Final = struct.Struct("!III")
_CRC_BYTES: Final = 4
_STRING: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message as it came (``raw``), and what it says. One that is not ``readable`` has nothing but its bytes."""

    raw: bytes
    headers: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes = b""
    readable: bool = True

    @property
    def kind(self) -> str:
        """The name of the event, or of the exception."""
        named = self.headers.get(":event-type") or self.headers.get(":exception-type")
        return str(named or self.headers.get(":error-code") or "")

    @property
    def is_error(self) -> bool:
        """Whether it says that the answer broke off."""
        return self.headers.get(":message-type") in ("exception", "error")


class FrameReader:
    """Cuts a byte stream into frames. What cannot be read passes on from there, in pieces and for good."""

    def __init__(self, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._lost = False

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes; return the frames that are complete now."""
        self._buffer += data
        frames = []
        while not self._lost and (length := self._length()) is not None:
            frames.append(self._frame(length))
        if self._lost and self._buffer:
            frames.append(Frame(raw=self._take(len(self._buffer)), readable=False))
        return frames

    @property
    def is_cut(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return bool(self._buffer)

    def _length(self) -> int | None:
        """Return how long the next frame is, once all of it is here."""
        if len(self._buffer) < _PRELUDE.size:
            return None
        total, headers, checksum = _PRELUDE.unpack_from(self._buffer)
        smallest = _PRELUDE.size + headers + _CRC_BYTES
        sound = checksum == crc32(self._buffer[: _PRELUDE.size - _CRC_BYTES])
        if not sound or not smallest <= total <= self._frame_bytes_max:
            # Where the next frame begins is anybody's guess.
            self._lost = True
            return None
        return int(total) if len(self._buffer) >= total else None

    def _frame(self, length: int) -> Frame:
        raw = self._take(length)
        message = _decoded(raw)
        if message is None:
            return Frame(raw=raw, readable=False)
        # botocore's stubs have the headers as a number.
        headers = cast("Mapping[str, Any]", message.headers)
        return Frame(raw=raw, headers=headers, payload=message.payload)

    def _take(self, end: int) -> bytes:
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        return raw


def encoded(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one message whose headers are strings."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack("!II", _PRELUDE.size + len(block) + len(payload) + _CRC_BYTES, len(block))
    message = lengths + struct.pack("!I", crc32(lengths)) + block + payload
    return message + struct.pack("!I", crc32(message))


def event(kind: str, payload: bytes) -> bytes:
    """Return an event of the stream."""
    return encoded({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, payload)


def exception(kind: str, payload: bytes) -> bytes:
    """Return an exception, which botocore raises as an EventStreamError."""
    return encoded(
        {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}, payload
    )


def _header(name: str, value: str) -> bytes:
    spelled, said = name.encode(), value.encode()
    return struct.pack("!B", len(spelled)) + spelled + struct.pack("!BH", _STRING, len(said)) + said


def _decoded(raw: bytes) -> EventStreamMessage | None:
    buffer = EventStreamBuffer()
    buffer.add_data(raw)
    try:
        return buffer.next()
    except (ValueError, KeyError, struct.error, StopIteration, ParserError):
        return None
