"""One attempt over HTTP: no retry, no redirect, and no connection that has been idle for more than a few seconds.

A write to a connection that died while the function was frozen cannot be told from a request that was sent, so an
idle connection is judged by the wall clock, which a freeze does not stop.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import httpx

from spendgate.core.address import Network
from spendgate.core.kind import Kind
from spendgate.errors import AddressRefused, SpendgateError

if TYPE_CHECKING:
    from spendgate.providers.network import Resolve

# What of a provider's answer is passed on; everything else (cookies, addresses, internals) stays here.
HEADERS_PASSED: Final = frozenset(
    {"content-type", "retry-after", "retry-after-ms", "request-id", "x-request-id", "x-should-retry"}
    | {"x-amzn-errortype", "x-amzn-requestid"}
)
HEADERS_PASSED_PREFIXES: Final = ("x-ratelimit-", "anthropic-ratelimit-", "openai-processing-ms", "openai-version")


class Unsent(SpendgateError):
    """It is proven that the request did not leave: the connection was never made."""


class Unclear(SpendgateError):
    """The request may have left, and there is no usable answer. ``timed_out`` tells a silence from a break."""

    def __init__(self, message: str, *, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class AnswerTooLarge(SpendgateError):
    """An answer is larger than the gateway reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """One request to a provider. ``secret`` is put into it here, and is in no representation of this value."""

    kind: Kind
    url: str
    body: bytes
    headers: tuple[tuple[str, str], ...]
    secret: str | None = field(repr=False)
    network: Network = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A provider's answer whose body is still to be read, once, through ``pieces`` or ``read``."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content_type: str
    response: httpx.Response = field(repr=False)
    on_close: Callable[[], Awaitable[None]] = field(repr=False)

    async def aclose(self) -> None:
        """Give the connection back."""
        if not self.response.is_closed:
            await self.response.aclose()
        await self.on_close()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes; Unclear where it breaks off."""
        try:
            async for piece in self.response.aiter_bytes():
                yield piece
        except httpx.TimeoutException as error:
            raise Unclear(type(error).__name__, timed_out=True) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise Unclear(type(error).__name__, timed_out=False) from error

    async def read(self, bytes_max: int) -> bytes:
        """Return the whole body; Unclear where it breaks off, AnswerTooLarge above ``bytes_max``."""
        parts: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > bytes_max:
                raise AnswerTooLarge(f"the provider's answer is larger than {bytes_max} bytes")
            parts.append(piece)
        return b"".join(parts)


class _Connections:
    """Connections of one network and the answers still read through them; once retired, the last one closes them."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self.transport = transport
        self.answers: set[object] = set()
        self.retired = False

    async def retire(self) -> None:
        self.retired = True
        if not self.answers:
            await self.transport.aclose()

    async def done(self, answer: object) -> None:
        self.answers.discard(answer)
        if self.retired and not self.answers:
            await self.transport.aclose()


class Pool:
    """Connections by network, made anew once they have been idle for too long; what is read through the old ones is.

    httpx's transports and not its client, which adds what may not be here: redirects, cookies, credentials of an
    environment; and a tenth of a call's time.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        connect_seconds: float,
        idle_seconds: float,
        resolve: Resolve | None = None,
    ) -> None:
        self._clock = clock
        self._resolve = resolve
        # The call's own deadline ends a silence; only making a connection has a time of its own, since it proves
        # that nothing was sent.
        self._timeout = httpx.Timeout(None, connect=connect_seconds, pool=connect_seconds).as_dict()
        self._idle = timedelta(seconds=idle_seconds)
        self._tls: ssl.SSLContext | None = None
        self._open: dict[Network, _Connections] = {}
        self._last_used = clock()

    async def send(self, outbound: Outbound) -> Answer:
        """Send a request once and return its answer, which the caller closes; Unsent or Unclear."""
        connections = await self._current(outbound.network)
        answer = object()
        connections.answers.add(answer)

        async def done() -> None:
            self._last_used = self._clock()
            await connections.done(answer)

        try:
            response = await self._sent(connections.transport, outbound)
        except BaseException:
            await done()
            raise
        return Answer(
            status=response.status_code,
            headers=_passed(response.headers),
            content_type=response.headers.get("content-type", ""),
            response=response,
            on_close=done,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        opened, self._open = self._open, {}
        for connections in opened.values():
            await connections.transport.aclose()

    async def _current(self, network: Network) -> _Connections:
        if self._open and self._clock() - self._last_used > self._idle:
            # Whatever is still read through them: a connection beside that one may have been idle all the while.
            opened, self._open = self._open, {}
            for connections in opened.values():
                await connections.retire()
        if network not in self._open:
            self._open[network] = _Connections(self._new(network))
        return self._open[network]

    def _new(self, network: Network) -> httpx.AsyncBaseTransport:
        if self._tls is None:
            # Reading the certificate authorities takes longer than all the rest of a call.
            self._tls = httpx.create_ssl_context(trust_env=False)
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=32, keepalive_expiry=self._idle.total_seconds()
        )
        # httpcore is as large as all of this package, and nothing before the first call needs it.
        from spendgate.providers.network import resolve, transport  # noqa: PLC0415

        return transport(network, tls=self._tls, limits=limits, resolve=self._resolve or resolve)

    async def _sent(self, transport: httpx.AsyncBaseTransport, outbound: Outbound) -> httpx.Response:
        request = httpx.Request(
            "POST",
            outbound.url,
            content=outbound.body,
            headers=_headers(outbound),
            extensions={"timeout": self._timeout},
        )
        try:
            response = await transport.handle_async_request(request)
        except AddressRefused as error:
            raise Unsent(str(error)) from error
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol) as error:
            raise Unsent(type(error).__name__) from error
        except httpx.TimeoutException as error:
            raise Unclear(type(error).__name__, timed_out=True) from error
        except httpx.HTTPError as error:
            raise Unclear(type(error).__name__, timed_out=False) from error
        response.request = request
        return response


def _headers(outbound: Outbound) -> list[tuple[str, str]]:
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        # A compressed stream cannot be metered as it passes.
        ("accept-encoding", "identity"),
        ("user-agent", "spendgate"),
    ]
    own = {name for name, _ in outbound.headers}
    headers = [*(header for header in headers if header[0] not in own), *outbound.headers]
    if outbound.secret is not None:
        name, form = outbound.kind.authorization
        headers.append((name, form.format(outbound.secret)))
    return headers


def _passed(headers: httpx.Headers) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in headers.items()
        if name in HEADERS_PASSED or name.startswith(HEADERS_PASSED_PREFIXES)
    )
