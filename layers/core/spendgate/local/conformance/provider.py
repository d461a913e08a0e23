"""The suite's provider: it counts what arrives and bills by ``bill``, and the manners of its answers are told to it.

Nothing of a gateway's view of the world is in it: what it billed is the truth that the books are compared with. It
listens on 127.0.0.1, in a thread of its own.
"""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from spendgate.core.money import Picodollars
from spendgate.local.conformance.bill import Bill, Terms, Unreadable, bill, flat
from spendgate.local.conformance.driver import Model
from spendgate.local.demo_shapes import CHAT, MESSAGES, Reply, Shape
from spendgate.local.demo_wire import Wire
from spendgate.local.serving import served

WORDS_MAX: Final = 4096
FRAMES_BEFORE_A_CUT: Final = 3
# Nothing holds a connection for longer.
HANG_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.2
_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a call is answered.

    ``name``: ok, hang, reset, error (``status``, after the work or, with ``unbilled``, without it), cut,
    error_in_stream, no_usage, garbage, redirect. ``usage_text`` takes the place of the usage, be it JSON or not;
    ``each_frame`` reports the usage so far on every frame of a stream.
    """

    name: str = "ok"
    status: int = 500
    unbilled: bool = False
    usage_text: str | None = None
    usage_fields: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    gzipped: bool = False
    each_frame: bool = False
    delay_seconds: float = 0
    between_seconds: float = 0


OK: Final = Manner()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request that arrived: names and numbers, never its text."""

    path: str
    billed: Picodollars
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Provider:
    """The provider's bookkeeping, its terms, and what it was told to do next."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.url = ""
        self.terms = Terms()
        self.manner = OK
        # Nothing more is to be shown: whoever still waits is let go.
        self.over = False
        self.models = {model.name: model for model in models}
        self._next: deque[Manner] = deque()
        self._arrivals: list[Arrival] = []
        self._open = 0
        self._lock = threading.Lock()

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """Every request that came, in order."""
        with self._lock:
            return tuple(self._arrivals)

    @property
    def hits(self) -> int:
        """How many requests came that could be billed."""
        return len(self.arrivals)

    @property
    def billed(self) -> Picodollars:
        """What was billed, for good: nothing that happens to a connection takes it back."""
        return Picodollars(sum(one.billed for one in self.arrivals))

    @property
    def open(self) -> int:
        """How many requests are being answered now."""
        return self._open

    def tell(self, *manners: Manner) -> None:
        """Say how the next calls are answered, one each; those after them as ``manner``."""
        self._next.extend(manners)

    def app(self) -> Starlette:
        """Return the provider as an ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", _Calls(self, CHAT), methods=["POST"]),
                Route("/v1/messages", _Calls(self, MESSAGES), methods=["POST"]),
                Route("/{path:path}", _Others(self), methods=_METHODS),
            ]
        )

    def _take(self) -> Manner:
        return self._next.popleft() if self._next else self.manner

    def _arrived(self, arrival: Arrival) -> None:
        with self._lock:
            self._arrivals.append(arrival)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


@contextmanager
def running(models: Sequence[Model], *, port: int = 0) -> Iterator[Provider]:
    """Serve a provider on loopback until the block ends."""
    provider = Provider(models)
    ready, over = threading.Event(), threading.Event()
    failure: list[BaseException] = []

    async def serve() -> None:
        async with served(provider.app(), port=port) as url:
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


def quiet(provider: Provider, *, seconds: float) -> bool:
    """Wait until the provider answers nobody; False where that does not happen in time."""
    deadline = time.monotonic() + seconds
    while provider.open:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


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
        with self._provider._answering():  # noqa: SLF001 - one module
            await request.body()
            self._provider._arrived(Arrival(path=request.url.path, billed=flat()))  # noqa: SLF001
            await wire.whole(200, b'{"object":"list","data":[]}', {"content-type": "application/json"})


class _Calls:
    """The billable endpoint of one dialect."""

    def __init__(self, provider: Provider, shape: Shape) -> None:
        self._provider = provider
        self._shape = shape

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        provider, wire = self._provider, Wire(receive, send)
        request = Request(scope, receive)
        with provider._answering():  # noqa: SLF001 - one module
            try:
                body = await request.body()
            except ClientDisconnect:
                return
            try:
                done = bill(body, provider.terms, provider.models)
            except Unreadable as problem:
                await wire.whole(400, self._shape.error(400, str(problem), None), {"content-type": "application/json"})
                return
            manner = provider._take()  # noqa: SLF001
            free = manner.unbilled or manner.name == "redirect"
            provider._arrived(  # noqa: SLF001
                Arrival(
                    path=request.url.path,
                    billed=Picodollars(0) if free else done.amount,
                    model=done.model,
                    input_tokens=done.input_tokens,
                    output_tokens=done.output_tokens,
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
            frames = _with_usage_so_far(frames, done)
        stops = manner.name in {"cut", "error_in_stream"}
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
        usage = self._shape.usage(done.input_tokens, done.output_tokens) | dict(manner.usage_fields)
        if done.cache_write_tokens:
            usage |= {"cache_creation_input_tokens": done.cache_write_tokens}
            usage["cache_creation"] = {"ephemeral_5m_input_tokens": done.cache_write_tokens}
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


def _with_usage_so_far(frames: Sequence[bytes], done: Bill) -> list[bytes]:
    """Put into each chunk of a chat the tokens so far, as some hosts do: totals, not differences."""
    said = list(frames)
    chunks = [at for at, frame in enumerate(said) if b'"choices":[{' in frame]
    for place, at in enumerate(chunks, start=1):
        so_far = done.output_tokens * place // len(chunks)
        document = json.loads(said[at].removeprefix(b"data: "))
        document["usage"] = CHAT.usage(done.input_tokens, so_far)
        said[at] = b"data: " + json.dumps(document).encode() + b"\n\n"
    return said
