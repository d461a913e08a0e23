"""Every parser that reads what strangers send, each as a function of bytes that raises where a promise does not hold.

A parser may refuse, with its own error; anything else that it raises is a fault. What it takes must mean the same when it
is read again, and a reader of streams must say the same however the stream is cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from struct import pack
from types import MappingProxyType
from typing import Any, Final
from zlib import crc32

from starlette.requests import Request as HttpRequest

from spendgate import configuration_reader
from spendgate.admin_http import refusal
from spendgate.admission import parse_idempotency_key
from spendgate.asgi import secret_of
from spendgate.configuration_scalars import base_url
from spendgate.core.budget import is_within, parent, parse_path, prefixes, run_path
from spendgate.core.key import hash_secret, is_minted, is_well_formed
from spendgate.core.money import PICODOLLARS_PER_USD, rate_per_million, usd, usd_text
from spendgate.dialects import eventstream, gemini_array, sse
from spendgate.dialects.dialect import Dialect
from spendgate.dialects.json_strict import compact, parse_answer, parse_object
from spendgate.dialects.registry import DIALECTS
from spendgate.errors import ConfigurationInvalid, Refused
from spendgate.http_head import check_head, headers_of, request_id_of
from tests.recorded.vectors import Vector, vectors

# Small, so that a fuzzer reaches what happens beyond it.
FRAME_BYTES_MAX: Final = 96
PIECES_MAX: Final = 400
REQUESTED: Final = tuple(DIALECTS[name] for name in sorted(DIALECTS))
# A recorded request of each dialect and kind of provider, since both decide how an answer is read.
ANSWERED: Final = tuple({(one.dialect.name, one.provider.kind): one for one in vectors()}.values())
_KEY_DIALECT: Final = DIALECTS["gemini"]
_HEAD_LINES_MAX: Final = 120


@dataclass(frozen=True, slots=True)
class Target:
    """One parser. ``dictionary`` are the words of its language."""

    check: Callable[[bytes], None]
    dictionary: tuple[str, ...] = ()


def _json(data: bytes) -> None:
    parse_answer(data)
    try:
        body = parse_object(data)
    except Refused as refused:
        _tellable(refused)
        return
    assert parse_object(compact(body)) == body
    assert json.loads(data) == body


def _sse(data: bytes) -> None:
    _cut_alike(data, lambda: sse.SseReader(frame_bytes_max=FRAME_BYTES_MAX))


def _array(data: bytes) -> None:
    _cut_alike(data, lambda: gemini_array.ArrayReader(frame_bytes_max=FRAME_BYTES_MAX))


def _event_stream(data: bytes) -> None:
    _frames_alike(data)


def _event_messages(data: bytes) -> None:
    """Headers and payloads whose lengths and checksums are right, as an endpoint that lies would send them."""
    stream = b""
    for message in data.split(b"\xff\xfe")[:8]:
        size = min(message[0], len(message) - 1) if message else 0
        stream += _sealed(message[1 : 1 + size], message[1 + size :])
    _frames_alike(stream)
    for vector in ANSWERED:
        if vector.dialect.family == "bedrock":
            _answered_alike(vector, stream)


def _configuration(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for loopback_http in (True, False):
        try:
            configuration_reader.parse(text, loopback_http=loopback_http)
        except ConfigurationInvalid as invalid:
            _, document = refusal(invalid)
            json.dumps(document).encode()


def _key(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    if is_well_formed(text):
        assert text.isascii()
        assert text.isprintable()
        assert len(hash_secret(text)) == 64
    else:
        # A minted key is looked up in another table, by what every key begins with.
        assert not is_minted(text) or not is_well_formed(text)


def _path(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for parse in (parse_path, lambda one: run_path("acme", one)):
        try:
            path = parse(text)
        except ValueError as error:
            str(error).encode()
            continue
        above = prefixes(path)
        assert above[-1] == path
        assert parent(path) == (above[-2] if len(above) > 1 else None)
        assert all(is_within(path, one) for one in above)
        # "#" parts the halves of a table's key, "/" the names of a path: neither is in a name.
        assert path.isascii()
        assert "#" not in path


def _money(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for parse, scale in ((usd, PICODOLLARS_PER_USD), (rate_per_million, 10**6)):
        try:
            amount = parse(text)
        except ValueError as error:
            str(error).encode("utf-8", "backslashreplace")
            continue
        assert Fraction(text) * scale == amount
        assert usd(usd_text(amount)) == amount


def _address(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for private_network in (True, False):
        try:
            taken = base_url(text, loopback_http=False, private_network=private_network)
        except ValueError as error:
            str(error).encode()
            continue
        assert taken.startswith("https://" if not private_network else ("https://", "http://"))
        assert base_url(taken, loopback_http=False, private_network=private_network) == taken


def _head(data: bytes) -> None:
    lines = data.split(b"\n")[:_HEAD_LINES_MAX]
    path, _, query = lines[0].partition(b"?")
    headers = [(name.lower(), value.strip(b" ")) for name, _, value in (line.partition(b":") for line in lines[1:])]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path.decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
    }
    request_id = request_id_of(scope, trusted=True, randomness=bytes)
    assert request_id.isascii()
    assert request_id.isprintable()
    try:
        check_head(scope)
        found = headers_of(scope)
        assert all(value.isascii() for value in found.values())
        request = HttpRequest(scope)
        secret_of(request)
        secret_of(request, _KEY_DIALECT)
        parse_idempotency_key(found.get("idempotency-key"))
    except Refused as refused:
        _tellable(refused)


def _request(data: bytes) -> None:
    """The first byte chooses a dialect, the rest is the body."""
    dialect = _dialect(data)
    try:
        body = parse_object(data[1:])
    except Refused:
        return
    for read in (dialect.read, *(free.read for free in dialect.free)):
        try:
            request = read(body, {}, "", {"model": "m"})
        except Refused as refused:
            _tellable(refused)
            json.dumps(dialect.refusal(refused, "r")).encode()
            continue
        if read is dialect.read:
            # What leaves is read as what was bounded.
            out = dialect.outgoing(request, "m", 7)
            again = dialect.read(parse_object(out), {}, "", {"model": "m"})
            assert again.facts.stream == request.facts.stream
            assert dialect.upstream_path(request, "m")


def _answer(data: bytes) -> None:
    """The first byte chooses a request that was made, the rest is its answer, whole and as a stream."""
    vector = ANSWERED[data[0] % len(ANSWERED) if data else 0]
    vector.dialect.report(data[1:], vector.request)
    _answered_alike(vector, data[1:])


def _answered_alike(vector: Vector, answer: bytes) -> None:
    seen = set()
    for size in _sizes(answer):
        meter = vector.dialect.meter(vector.request)
        passed = b"".join(meter.feed(piece) for piece in _pieces(answer, size))
        passed += meter.end()
        seen.add((passed, repr(meter.report())))
    assert len(seen) == 1, seen


def _cut_alike(data: bytes, reader: Callable[[], Any]) -> None:
    seen = set()
    for size in _sizes(data):
        one = reader()
        frames = [frame for piece in _pieces(data, size) for frame in one.feed(piece)] + list(one.end())
        assert b"".join(frame.raw for frame in frames) == data
        seen.add(tuple((frame.raw, frame.data, frame.ended) for frame in frames if frame.readable))
    assert len(seen) == 1, seen


def _frames_alike(data: bytes) -> None:
    seen = set()
    for size in _sizes(data):
        reader = eventstream.FrameReader(frame_bytes_max=4096)
        frames = [frame for piece in _pieces(data, size) for frame in reader.feed(piece)]
        whole = b"".join(frame.raw for frame in frames)
        assert data.startswith(whole)
        assert reader.is_cut == (whole != data)
        told = ((frame.raw, frame.payload, frame.kind, frame.is_error) for frame in frames if frame.readable)
        seen.add(tuple(told))
    assert len(seen) == 1, seen


def _sealed(headers: bytes, payload: bytes) -> bytes:
    lengths = pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + pack("!I", crc32(lengths)) + headers + payload
    return message + pack("!I", crc32(message))


def _tellable(refused: Refused) -> None:
    """A refusal is told in JSON and logged: its words are text that UTF-8 can carry."""
    f"{refused}{refused.facts}".encode()


def _dialect(data: bytes) -> Dialect:
    return REQUESTED[data[0] % len(REQUESTED) if data else 0]


def _sizes(data: bytes) -> tuple[int, ...]:
    """Return the sizes of the pieces in which a stream comes: whole, in many pieces, and byte by byte where it is short."""
    return len(data) or 1, 1 + len(data) // 40, 1 + len(data) // PIECES_MAX


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "json": Target(
            _json, ("{", "}", "[", "]", ":", ",", '"', "\\u", "\\ud800", "1e999", "NaN", "-0", "true", "null")
        ),
        "sse": Target(_sse, ("data:", "event:", "\r\n", "\n\n", "\r", ": ")),
        "array": Target(_array, ("[{", "},{", "}]", '"', "\\")),
        "event-stream": Target(_event_stream),
        "event-messages": Target(_event_messages, (":event-type", ":message-type", "exception", "metadata", "usage")),
        "configuration": Target(
            _configuration,
            (
                "version: 1",
                "providers:",
                "prices:",
                "routes:",
                "budgets:",
                "keys:",
                "limits:",
                "- {",
                "!!",
                "&a",
                "*a",
                "? ",
            ),
        ),
        "key": Target(_key, ("sg-", "sg-run.")),
        "path": Target(_path, ("/", "run:", "acme")),
        "money": Target(_money, (".", "0.", "e", "-", "_")),
        "address": Target(_address, ("https://", "http://", "[::1]", "%2e", "@", "127.0.0.1", "xn--", ":443")),
        "head": Target(_head, ("authorization: Bearer sg-", "x-amzn-request-context:", "%2F", "?key=", "..", "\n")),
        "request": Target(
            _request, ("model", "messages", "role", "content", "tools", "max_tokens", "stream", "type", "text")
        ),
        "answer": Target(_answer, ("usage", "data: ", "event: ", "[DONE]", "\n\n", "type", "message_delta", "null")),
    }
)
