"""Serve an ASGI app on loopback from within a running event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import uvicorn


@asynccontextmanager
async def served(
    app: Any, *, port: int = 0, grace_seconds: int = 1, closing: Callable[[], Awaitable[None]] | None = None
) -> AsyncIterator[str]:
    """Serve ``app`` on 127.0.0.1 (port 0 finds a free one) and hand out its URL; OSError where the port is taken.

    At the end nobody new is let in, ``closing`` is waited for, and open connections have ``grace_seconds`` to finish;
    then they are broken.
    """
    # With its protocol named: only then does asyncio send small pieces at once (TCP_NODELAY), and an answer after the first on a
    # connection need not wait 40 ms for the other side's acknowledgement.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(1024)
        # No WebSockets, whatever is installed: nothing of ours speaks them, and a connection that was upgraded got no answer.
        config = uvicorn.Config(
            app,
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="auto",
            timeout_graceful_shutdown=grace_seconds,
        )
        server = _Embedded(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event to wait for
                await asyncio.sleep(0.005)
            if not server.started:
                raise RuntimeError("the server did not start; its log says why")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            if closing is not None:
                await closing()
            await serving


class _Embedded(uvicorn.Server):
    """A server that leaves the process's signals to whoever embeds it."""

    # uvicorn's is a generator, of which only this is used.
    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()
