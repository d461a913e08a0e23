"""The least that a gateway on this HTTP stack can do: pass a call through, with no ledger and no look at it.

``python -m benchmarks.pass_through PORT PROVIDER_URL``: Starlette, uvicorn and httpx with httpcore, as the gateway has them.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route


def application(provider_url: str) -> Starlette:
    """Return the proxy."""
    clients: list[httpx.AsyncClient] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
        async with httpx.AsyncClient(trust_env=False, timeout=60, limits=limits) as client:
            clients.append(client)
            yield

    async def passed(request: Request) -> Response:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        out = httpx.Request("POST", f"{provider_url}{request.url.path}", content=await request.body(), headers=headers)
        answer = await clients[0].send(out, stream=True)
        kind = answer.headers["content-type"]
        if kind == "application/json":
            body = await answer.aread()
            await answer.aclose()
            return Response(body, answer.status_code, media_type=kind)
        closing = BackgroundTask(answer.aclose)
        return StreamingResponse(answer.aiter_bytes(), answer.status_code, media_type=kind, background=closing)

    return Starlette(routes=[Route("/v1/chat/completions", passed, methods=["POST"])], lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(
        application(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning"
    )
