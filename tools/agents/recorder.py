"""A proxy on loopback that notes what passes between a program and the gateway."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

_METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_HOP: Final = frozenset({"host", "connection", "accept-encoding", "content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """One request, and what became of it; ``message`` is the refusal's."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: Any
    status: int
    message: str | None


class Recorder:
    """The application of such a proxy."""

    def __init__(self, url: str) -> None:
        self.noted: list[Noted] = []
        self._client = httpx.AsyncClient(base_url=url, trust_env=False, timeout=60)
        self.app = Starlette(routes=[Route("/{path:path}", self._pass, methods=_METHODS)])

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _pass(self, request: Request) -> StreamingResponse:
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        target = httpx.URL(request.url.path, query=request.url.query.encode())
        sent = self._client.build_request(
            request.method, target, headers=headers | {"accept-encoding": "identity"}, content=body
        )
        answer = await self._client.send(sent, stream=True)
        refusal = await answer.aread() if answer.is_error else None
        self.noted.append(
            Noted(
                method=request.method,
                path=request.url.path,
                query=request.url.query,
                headers=dict(request.headers),
                body=json.loads(body) if body else None,
                status=answer.status_code,
                message=None if refusal is None or not refusal else json.loads(refusal)["error"]["message"],
            )
        )

        async def pieces() -> AsyncIterator[bytes]:
            if refusal is not None:
                yield refusal
            else:
                async for piece in answer.aiter_raw():
                    yield piece
            await answer.aclose()

        kept = {name: value for name, value in answer.headers.items() if name not in _HOP}
        return StreamingResponse(pieces(), status_code=answer.status_code, headers=kept)
