"""A gateway that believes whatever a request or an answer says, in every dialect: what no case of the suite may pass."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spendgate.core.money import Picodollars
from spendgate.local.conformance.driver import RATE, Books
from tests.conformance.leaky import Toy

CAP_ASSUMED: Final = 256
OUTPUT_TOKENS_MAX: Final = 4096
CHARACTERS_A_TOKEN: Final = 4
_CAPS: Final = ("max_tokens", "max_output_tokens", "maxOutputTokens")
# With the parts of some beside them, and without what stands beside others.
_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "promptTokenCount",
    "candidatesTokenCount",
    "cachedContentTokenCount",
)


class Credulous(Toy):
    """It estimates a call by its text and its cap, passes everything on, and adds up every count that an answer tells.

    No usage is no cost, and whoever has no key is somebody too.
    """

    def books(self) -> Books:
        return Books(booked=Picodollars(self._settled), held=Picodollars(0), records=())

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._forward, methods=["POST"])])

    async def _forward(self, request: Request) -> Response:
        body = await request.body()
        if self._settled + _estimated(json.loads(body)) * RATE > self._setup.limit:
            return JSONResponse({"error": {"message": "the limit is reached", "code": "over"}}, status_code=402)
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"{self._setup.provider_url}{request.url.path}{query}"
        passed = {name: value for name, value in request.headers.items() if name not in {"host", "content-length"}}
        status, answer = await asyncio.to_thread(self._sent, url, body, passed)
        self._settled += sum(_counts(answer)) * RATE
        return Response(answer, status_code=status)

    def _sent(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        got = bytearray()
        with self._http.stream("POST", url, content=body, headers=headers) as answer:
            try:
                for part in answer.iter_raw():
                    got += part
            except httpx.HTTPError:
                return answer.status_code, bytes(got)
        return answer.status_code, bytes(got)


def _estimated(body: Any) -> int:
    # What no model can do is no cap.
    caps = [number for name, number in _numbers(body) if name in _CAPS and number <= OUTPUT_TOKENS_MAX]
    text = body.get("input") or body.get("contents") or ""
    return len(json.dumps(text)) // CHARACTERS_A_TOKEN + (caps[0] if caps else CAP_ASSUMED)


def _counts(answer: bytes) -> Iterator[int]:
    for line in answer.decode().splitlines():
        try:
            document = json.loads(line.removeprefix("data: "))
        except ValueError:
            continue
        yield from (number for name, number in _numbers(document) if name in _COUNTS)


def _numbers(value: Any) -> Iterator[tuple[str, int]]:
    """Yield every named number at any depth."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, int):
            yield name, inner
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _numbers(inner)
