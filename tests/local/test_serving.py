"""Serving on loopback."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from spendgate.local.serving import served

OPEN = Path("/proc/self/fd")


def options_of_connections(port: int) -> list[int]:
    """TCP_NODELAY of each connection that this process has accepted on a port."""
    found = []
    for descriptor in OPEN.iterdir():
        with suppress(OSError), socket.socket(fileno=int(descriptor.name)) as one:
            try:
                if one.family == socket.AF_INET and one.getsockname()[1] == port and one.getpeername():
                    found.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            finally:
                one.detach()
    return found


@pytest.mark.skipif(not OPEN.exists(), reason="a process's descriptors are listed on Linux")
def test_the_pieces_of_an_answer_do_not_wait_for_each_other() -> None:
    """A head and a body are two pieces: with the second held back, each answer on a kept connection took 44 ms."""

    async def options(request: Request) -> JSONResponse:
        return JSONResponse(options_of_connections(request.url.port or 0))

    async def asked() -> list[int]:
        async with (
            served(Starlette(routes=[Route("/", options)])) as url,
            httpx.AsyncClient(trust_env=False) as client,
        ):
            found: list[int] = (await client.get(url)).json()
            return found

    assert asyncio.run(asked()) == [1]
