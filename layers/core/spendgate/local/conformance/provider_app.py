"""The suite's provider on the wire: 127.0.0.1, in a thread of its own."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from spendgate.core.money import Picodollars
from spendgate.local.conformance.asked import Asked, Unreadable, chat, document_of, response
from spendgate.local.conformance.asked_gemini import gemini
from spendgate.local.conformance.bill import Bill, bill, flat
from spendgate.local.conformance.driver import Model
from spendgate.local.conformance.manner import Manner
from spendgate.local.conformance.provider import Arrival, Provider
from spendgate.local.conformance.provider_usage import usage_of, with_usage_so_far
from spendgate.local.demo_gemini import ARRAY, EVENTS, GEMINI, ByQuery
from spendgate.local.demo_openai import RESPONSES
from spendgate.local.demo_shapes import CHAT, MESSAGES, Reply, Shape
from spendgate.local.demo_wire import Wire
from spendgate.local.serving import served

WORDS_MAX: Final = 4096
FRAMES_BEFORE_A_CUT: Final = 3
# Nothing holds a connection for longer.
HANG_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.2
_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@contextmanager
def running(models: Sequence[Model], *, port: int = 0) -> Iterator[Provider]:
    """Serve a provider on loopback until the block ends."""
    provider = Provider(models)
    ready, over = threading.Event(), threading.Event()
    failure: list[BaseException] = []

    async def serve() -> None:
        async with served(app_of(provider), port=port) as url:
            provider.url = url
            ready.set()
            await asyncio.to_thread(over.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the start
            failure.append(error)
            ready.set()

    thread = threading.Thread(target=run, name="conformance-provider", daemon=True)
    thread.start()
    ready.wait()
    if failure:
        raise failure[0]
    try:
        yield provider
    finally:
        provider.over = True
        over.set()
        thread.join(timeout=30)


def app_of(provider: Provider) -> Starlette:
    """Return a provider as an ASGI application."""

    def calls(path: str, shape: Shape, read: Callable[[Mapping[str, Any]], Asked]) -> Route:
        return Route(path, _Calls(provider, shape, lambda document, _: read(document)), methods=["POST"])

    def contents(shape: Shape, *, stream: bool) -> _Calls:
        return _Calls(
            provider,
            shape,
            lambda document, request: gemini(document, model=request.path_params["model"], stream=stream),
        )

    streams = ByQuery(contents(EVENTS, stream=True), contents(ARRAY, stream=True))
    return Starlette(
        routes=[
            calls("/v1/chat/completions", CHAT, chat),
            calls("/v1/messages", MESSAGES, chat),
            calls("/v1/responses", RESPONSES, response),
            Route("/v1beta/models/{model}:generateContent", contents(GEMINI, stream=False), methods=["POST"]),
            Route("/v1beta/models/{model}:streamGenerateContent", streams, methods=["POST"]),
            Route("/{path:path}", _Others(provider), methods=_METHODS),
        ]
    )


class _Others:
    """Every path that is no chat: an image, a batch, a vector. Each costs the same, and answers little."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        wire = Wire(receive, send)
        if request.method == "GET":
            await wire.whole(200, b'{"object":"list","data":[]}', {"content-type": "application/json"})
            return
        with self._provider.answering():
            await request.body()
            self._provider.arrived(
                Arrival(path=request.url.path, billed=flat(), watched=_watched(self._provider, request))
            )
            await wire.whole(200, b'{"object":"list","data":[]}', {"content-type": "application/json"})


class _Calls:
    """The billable endpoint of one dialect."""

    def __init__(self, provider: Provider, shape: Shape, read: Callable[[Mapping[str, Any], Request], Asked]) -> None:
        self._provider = provider
        self._shape = shape
        self._read = read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        provider, wire = self._provider, Wire(receive, send)
        request = Request(scope, receive)
        with provider.answering():
            try:
                body = await request.body()
            except ClientDisconnect:
                return
            try:
                done = bill(self._read(document_of(body), request), provider.terms, provider.models)
            except Unreadable as problem:
                await wire.whole(400, self._shape.error(400, str(problem), None), {"content-type": "application/json"})
                return
            manner = provider.take()
            free = manner.unbilled or manner.name == "redirect"
            provider.arrived(
                Arrival(
                    path=request.url.path,
                    billed=Picodollars(0) if free else done.amount,
                    model=done.model,
                    input_tokens=done.input_tokens,
                    output_tokens=done.output_tokens,
                    watched=_watched(provider, request),
                )
            )
            await self._answer(wire, manner, done)

    async def _answer(self, wire: Wire, manner: Manner, done: Bill) -> None:
        if manner.delay_seconds and await wire.gone_within(manner.delay_seconds):
            return
        match manner.name:
            case "hang":
                deadline = time.monotonic() + HANG_SECONDS
                while not self._provider.over and time.monotonic() < deadline:
                    if await wire.gone_within(_LOOK_SECONDS):
                        return
                await wire.abort()
            case "reset":
                await wire.abort()
            case "error":
                body = self._shape.error(manner.status, "The provider fails, as it was told to.", None)
                await wire.whole(manner.status, body, {"content-type": "application/json"})
            case "garbage":
                await wire.whole(200, b'{"id": "half a docu', {"content-type": "application/json"})
            case "redirect":
                await wire.whole(307, b"", {"location": "/v1/elsewhere"})
            case _ if done.stream:
                await self._stream(wire, manner, done)
            case _:
                await self._whole(wire, manner, done)

    async def _whole(self, wire: Wire, manner: Manner, done: Bill) -> None:
        body = self._shape.body(self._reply(manner, done))
        if manner.name == "cut":
            await wire.begin(200, {"content-type": "application/json"})
            await wire.more(body[: len(body) // 2])
            await wire.abort()
            return
        await wire.whole(200, body, {"content-type": "application/json"}, gzipped=manner.gzipped)

    async def _stream(self, wire: Wire, manner: Manner, done: Bill) -> None:
        frames = self._shape.frames(self._reply(manner, done))
        if manner.each_frame:
            frames = with_usage_so_far(self._shape, frames, done)
        stops = manner.name in {"cut", "ends_early", "error_in_stream"}
        await wire.begin(200, {"content-type": self._shape.stream_type}, gzipped=manner.gzipped)
        for frame in frames[:FRAMES_BEFORE_A_CUT] if stops else frames:
            await wire.more(frame)
            if manner.between_seconds and await wire.gone_within(manner.between_seconds):
                return
        if manner.name == "cut":
            await wire.abort()
            return
        if manner.name == "error_in_stream":
            await wire.more(self._shape.error_frame(529))
        await wire.end()

    def _reply(self, manner: Manner, done: Bill) -> Reply:
        usage = usage_of(self._shape, done) | dict(manner.usage_fields)
        text = json.dumps(usage) if manner.usage_text is None else manner.usage_text
        return Reply(
            id=self._provider.hits,
            model=manner.model or done.model,
            words=("word",) * min(done.shown_tokens, WORDS_MAX),
            choices=done.choices,
            capped=done.capped,
            input_tokens=done.input_tokens,
            usage_text=None if manner.name == "no_usage" else text,
            usage_asked=done.usage_asked,
        )


def _watched(provider: Provider, request: Request) -> bool:
    """Tell whether a request has, anywhere but in its body, the text that is watched for."""
    text = provider.watched_for
    return bool(text) and (text in str(request.url) or any(text in value for value in request.headers.values()))
