"""Toy gateways that leak in one way each, and one that does not: what the suite has to tell apart."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spendgate.core.money import Picodollars
from spendgate.local.conformance.driver import MODEL, RATE, Books, Caller, Held, Limited, Session, Setup
from spendgate.local.serving import served

# More than the suite's small calls can cost.
BOUND = Picodollars(150 * RATE)


class Toy(Limited):
    """A gateway with one limit in memory. ``leak`` names what is wrong with it.

    late: it checks what is spent, and adds what a call cost when it ends. forgetful: what failed cost nothing. silent:
    what failed stays held, and nothing says why. "": it reserves, settles what is known, and keeps and tells the rest.
    """

    def __init__(self, setup: Setup, leak: str) -> None:
        self.url = ""
        self.callers = (Caller(key="toy"),)
        self.asked: Mapping[str, str] = {MODEL: MODEL}
        self._setup = setup
        self._leak = leak
        self._settled = 0
        self._held: dict[int, str] = {}
        self._calls = 0
        self._http = httpx.Client(trust_env=False, timeout=30)

    def books(self) -> Books:
        held = Picodollars(len(self._held) * BOUND)
        why = "" if self._leak == "silent" else "the provider failed"
        records = tuple(Held(amount=BOUND, why=why) for _ in self._held)
        return Books(booked=Picodollars(self._settled + held), held=held, records=records)

    def close(self) -> None:
        self._http.close()

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self._call, methods=["POST"])])

    async def _call(self, request: Request) -> Response:
        body = await request.body()
        self._calls += 1
        number = self._calls
        committed = self._settled + len(self._held) * BOUND
        if committed + (0 if self._leak == "late" else BOUND) > self._setup.limit:
            error = {"message": "the limit is reached", "code": "over", "limit": "1"}
            return JSONResponse({"error": error}, status_code=402)
        if self._leak != "late":
            self._held[number] = "in flight"
        url = f"{self._setup.provider_url}/v1/chat/completions"
        answer = await asyncio.to_thread(self._http.post, url, content=body)
        usage: dict[str, Any] = answer.json().get("usage") or {}
        if usage:
            self._settled += (usage["prompt_tokens"] + usage["completion_tokens"]) * RATE
        if usage or self._leak == "forgetful":
            self._held.pop(number, None)
        return Response(answer.content, status_code=answer.status_code, media_type="application/json")


class ToyDriver:
    """The driver of a toy."""

    name = "toy"

    def __init__(
        self, leak: str = "", *, kind: type[Toy] = Toy, url: str | None = None, token: str | None = None
    ) -> None:
        self._leak = leak
        self._kind = kind

    def version(self) -> str:
        return "0"

    def command(self) -> str:
        return "toy"

    def close(self) -> None:
        """Each session is its own."""

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        toy = self._kind(setup, self._leak)
        ready, over = threading.Event(), threading.Event()

        async def serve() -> None:
            async with served(toy.app()) as url:
                toy.url = url
                ready.set()
                await asyncio.to_thread(over.wait)

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        assert ready.wait(60)
        try:
            yield toy
        finally:
            over.set()
            thread.join(30)
            toy.close()
