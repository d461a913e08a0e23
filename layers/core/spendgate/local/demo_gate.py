"""Holds the demo provider's answers back, so that calls stay in flight for as long as the demo needs, and no longer."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Gate:
    """An ASGI application around another; while it is shut, requests arrive and are billed, and no answer leaves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = asyncio.Event()
        self._open.set()

    def shut(self) -> None:
        """Let no answer out."""
        self._open.clear()

    def open(self) -> None:
        """Let all answers out."""
        self._open.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def gated(message: Message) -> None:
            await self._open.wait()
            await send(message)

        # What is no call (the provider's own counters, the server's lifespan) never waits.
        is_call = scope["type"] == "http" and scope["path"].startswith(("/v1/", "/v1beta/"))
        await self._app(scope, receive, gated if is_call else send)
