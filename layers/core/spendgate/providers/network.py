"""Connections to providers: a name is resolved here, all its addresses are judged, and one of these is connected to.

Nothing resolves the name a second time, so what was judged is what is reached: a name that is public when it is
configured and private when it is called leads nowhere. TLS is still checked against the name. Imported when the first
connection is made: what it takes along is a tenth of the gateway's start.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx

from spendgate.core.address import Network, literal, may_reach
from spendgate.errors import AddressRefused

# The addresses of a name, the best first; blocks. OSError where there are none.
Resolve = Callable[[str, int], Sequence[str]]


def resolve(host: str, port: int) -> Sequence[str]:
    """Ask the machine's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def transport(
    network: Network, *, tls: ssl.SSLContext, limits: httpx.Limits, resolve: Resolve
) -> httpx.AsyncHTTPTransport:
    """Return a transport that connects to addresses of one network only."""
    made = httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)
    # httpx has no parameter for it; tests/test_addresses.py fails should this attribute change its meaning.
    made._pool = httpcore.AsyncConnectionPool(  # noqa: SLF001
        ssl_context=tls,
        max_connections=limits.max_connections,
        max_keepalive_connections=limits.max_keepalive_connections,
        keepalive_expiry=limits.keepalive_expiry,
        network_backend=_Judged(network, resolve),
    )
    return made


def blocking_transport(network: Network, *, resolve: Resolve = resolve) -> httpx.HTTPTransport:
    """Return the same for a client that blocks."""
    tls = httpx.create_ssl_context(trust_env=False)
    made = httpx.HTTPTransport(verify=tls, trust_env=False)
    made._pool = httpcore.ConnectionPool(  # noqa: SLF001 - as above
        ssl_context=tls, network_backend=_JudgedBlocking(network, resolve)
    )
    return made


class _Judged(httpcore.AsyncNetworkBackend):
    def __init__(self, network: Network, resolve: Resolve) -> None:
        self._network = network
        self._resolve = resolve
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        started = time.monotonic()
        found = await self._resolved(host, port, timeout)
        addresses = _judged(found, self._network)
        for left in range(len(addresses), 0, -1):
            share = None if timeout is None else max(timeout - (time.monotonic() - started), 0.0) / left
            try:
                return await self._inner.connect_tcp(addresses[-left], port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
        raise httpcore.ConnectError("the name has no address")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def _resolved(self, host: str, port: int, timeout: float | None) -> Sequence[str]:
        if literal(host) is not None:
            return (host,)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                return await loop.run_in_executor(None, self._resolve, host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout("the name was not resolved in time") from error
        except OSError as error:
            raise httpcore.ConnectError("the name is not known") from error


class _JudgedBlocking(httpcore.NetworkBackend):
    def __init__(self, network: Network, resolve: Resolve) -> None:
        self._network = network
        self._resolve = resolve
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = (host,) if literal(host) is not None else self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError("the name is not known") from error
        addresses = _judged(found, self._network)
        for left in range(len(addresses), 0, -1):
            share = None if timeout is None else timeout / len(addresses)
            try:
                return self._inner.connect_tcp(addresses[-left], port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
        raise httpcore.ConnectError("the name has no address")

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


def _judged(found: Sequence[str], network: Network) -> Sequence[str]:
    """Return the addresses, AddressRefused if one of them may not be reached: a good one beside it proves nothing."""
    if not all(may_reach(ip_address(address), network) for address in found):
        raise AddressRefused("its name leads to an address that it may not have")
    return found
