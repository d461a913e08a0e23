"""Requests as no client of ours sends them: what HTTP allows and what it does not, byte by byte, for both surfaces."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# The server's own limit of a head (h11), and ours below it.
HEAD_BYTES_MAX: Final = 65_536
LONG: Final = 40_000


@dataclass(frozen=True, slots=True)
class Door:
    """One path that takes a body: where it is, whose header opens it, a body that it takes, and the most that it reads."""

    path: str
    key: str
    body: bytes
    bytes_max: int

    def sent(
        self,
        *headers: str,
        method: str = "POST",
        target: str | None = None,
        version: str = "HTTP/1.1",
        body: bytes | None = None,
        length: bool = True,
        last: bool = True,
    ) -> bytes:
        """Return a request; ``last`` asks the server to close the connection after its answer."""
        body = self.body if body is None else body
        own = [f"content-length: {len(body)}"] if length else []
        kind = (
            [] if any(one.lower().startswith("content-type") for one in headers) else ["content-type: application/json"]
        )
        close = ["connection: close"] if last else []
        lines = [f"{method} {target or self.path} {version}", "host: here", f"authorization: {self.key}"]
        return "\r\n".join([*lines, *kind, *own, *close, *headers]).encode("latin-1") + b"\r\n\r\n" + body

    def padded(self, size: int) -> bytes:
        """Return the body with blanks up to a size."""
        return self.body + b" " * (size - len(self.body))


def cases(door: Door) -> Iterator[tuple[str, bytes, set[int]]]:
    """Yield each request with its name and the statuses that its answers may have; 0 is a connection that is closed."""
    yield from _methods(door)
    yield from _sizes(door)
    yield from _bodies(door)
    yield from _chunks(door)
    yield from _heads(door)


def _methods(door: Door) -> Iterator[tuple[str, bytes, set[int]]]:
    for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "post", "X" * 300):
        yield f"method {method[:9]}", door.sent(method=method), {404}
        yield f"method {method[:9]} elsewhere", door.sent(method=method, target="/nowhere"), {404}
    yield "CONNECT", door.sent(method="CONNECT", target="there:443"), {400, 404}
    yield "OPTIONS of everything", door.sent(method="OPTIONS", target="*"), {400, 404}
    yield "an absolute target", door.sent(target=f"http://there{door.path}"), {200, 400, 404}
    yield "HTTP/1.0", door.sent(version="HTTP/1.0"), {200}
    yield "HTTP/0.9", b"GET /healthz\r\n\r\n", {0, 400}
    yield "HTTP/2 at once", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {0, 400, 404}
    yield "a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n", {0, 400}


def _sizes(door: Door) -> Iterator[tuple[str, bytes, set[int]]]:
    yield "a long path", door.sent(target="/" + "a" * LONG), {400, 404}
    yield "a long query", door.sent(target=f"{door.path}?a={'b' * LONG}"), {400}
    yield "a path of many parts", door.sent(target="/a" * 2000), {404}
    yield "a path of escapes", door.sent(target=door.path + "%2e%2e%00%ff%"), {404}
    yield "a long header", door.sent(f"x-long: {'a' * LONG}"), {400}
    yield "a longer header than the server reads", door.sent(f"x-long: {'a' * (2 * HEAD_BYTES_MAX)}"), {0, 400, 431}
    yield "a long name of a header", door.sent(f"{'a' * LONG}: x"), {400}
    yield "many headers", door.sent(*(f"x-{number}: a" for number in range(300))), {400}
    yield "a body at the limit", door.sent(body=door.padded(door.bytes_max)), {200}
    yield "a body above the limit", door.sent(body=door.padded(door.bytes_max + 1)), {400}
    large = door.sent("content-length: 99999999999999999", body=door.padded(door.bytes_max + 9999), length=False)
    yield "a body that says it is larger than all", large, {400}
    yield "no body", door.sent(body=b""), {400}
    yield "a body without its length", door.sent(length=False), {400}


def _bodies(door: Door) -> Iterator[tuple[str, bytes, set[int]]]:
    for name, body in {
        "no UTF-8": door.body.replace(b'"', b'"\xff\xfe', 1),
        "half a character": door.body[:-2] + b"\xe2\x82",
        "half a surrogate pair": b'{"a": "\\ud800"}',
        "UTF-16": door.body.decode().encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + door.body,
        "NUL": b"\x00" + door.body,
        "deep": b"[" * 20_000,
        "a long number": b'{"a": ' + b"9" * 5000 + b"}",
        "no object": b"[]",
        "two documents": door.body + door.body,
    }.items():
        yield f"a body of {name}", door.sent(body=body), {400}
    kinds = (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
    )
    for kind in (*kinds, "", "///", "text/" + "x" * 5000):
        # What it is called decides nothing: it is read as JSON, strictly.
        yield f"content type {kind[:24]!r}", door.sent(f"content-type: {kind}"), {200}
    for coding, body in (
        ("gzip", gzip.compress(door.body)),
        ("deflate", zlib.compress(door.body)),
        ("br", b"x"),
        ("x", door.body),
    ):
        yield f"a body in {coding}", door.sent(f"content-encoding: {coding}", body=body), {400}
    yield "a bomb in gzip", door.sent("content-encoding: gzip", body=gzip.compress(b" " * 2**24)), {400}
    yield "gzip without a word of it", door.sent(body=gzip.compress(door.body)), {400}
    yield "content-encoding identity", door.sent("content-encoding: identity"), {200}


def _chunks(door: Door) -> Iterator[tuple[str, bytes, set[int]]]:
    coded = "transfer-encoding: chunked"
    body, half = door.body, len(door.body) // 2

    def chunked(*parts: bytes) -> bytes:
        return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in (*parts, b""))

    for name, given, statuses in (
        ("in one", chunked(body), {200}),
        ("in two", chunked(body[:half], body[half:]), {200}),
        ("of a byte each", chunked(*(body[at : at + 1] for at in range(len(body)))), {200}),
        ("with an extension", f"{len(body):x};a=b\r\n".encode() + body + b"\r\n0\r\n\r\n", {200, 400}),
        ("with a trailer", f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\nx-late: 1\r\n\r\n", {200, 400}),
        ("of no size", b"zz\r\n" + body + b"\r\n0\r\n\r\n", {0, 400}),
        ("of a negative size", b"-1\r\n" + body + b"\r\n0\r\n\r\n", {0, 400}),
        ("that say they are larger than all", b"ffffffffffff\r\n" + b" " * (2 * door.bytes_max), {400}),
        ("above the limit", chunked(*[b" " * 4096] * (door.bytes_max // 4096 + 1)), {400}),
    ):
        yield f"chunks {name}", door.sent(coded, body=given, length=False), statuses
    yield "another coding of transfer", door.sent("transfer-encoding: gzip", length=False), {0, 400, 501}
    yield "two lengths", door.sent(coded, body=chunked(body)), {0, 400}


def _heads(door: Door) -> Iterator[tuple[str, bytes, set[int]]]:
    for header in ("authorization: Bearer other", "content-type: text/plain", "host: there", "content-length: 3"):
        name = header.partition(":")[0]
        twice = door.sent(header, "content-type: application/json") if name == "content-type" else door.sent(header)
        yield f"{name} twice", twice, {0, 400}
    yield "accept twice", door.sent("accept: a/b", "accept: c/d"), {200}
    yield "an empty name of a header", door.sent(": x"), {0, 400}
    yield "a header over two lines", door.sent("x-a: b\r\n c"), {0, 200, 400}
    yield "a header that is no ASCII", door.sent("x-a: \xe9\xff"), {400}
    yield "expecting to be told to go on", door.sent("expect: 100-continue"), {100, 200}
    yield "expecting something else", door.sent("expect: 200-ok"), {200, 400, 417}
    yield "going on after a refusal of the head", door.sent("expect: 100-continue", "host: there"), {0, 100, 400}
    for protocol in ("websocket", "h2c"):
        yield (
            f"upgrading to {protocol}",
            door.sent(f"upgrade: {protocol}", "connection: upgrade, close", last=False),
            {200, 400},
        )
    yield "two at once", door.sent(last=False) + door.sent(), {200}
    yield "two at once, the first refused", door.sent(last=False, body=b"{") + door.sent(), {200, 400}
    yield "two at once, the second of none", door.sent(last=False) + b"\x00\x01\r\n\r\n", {0, 200, 400}
    yield "lines before the request", b"\r\n\r\n" + door.sent(), {200, 400}
