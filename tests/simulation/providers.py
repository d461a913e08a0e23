"""Providers that answer, refuse, hang, cut, fail after the work, lie about usage, or bill more than they may.

They speak through the transport of the gateway's own HTTP client. What each bills is settled the moment a request arrives:
nothing that happens to its connection afterwards takes that back. Wire forms are those of the demo provider.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httpx

from spendgate.core.route import Framing, Provider
from spendgate.local.demo_bedrock import CONVERSE, CONVERSE_STREAM, INVOKE, INVOKE_STREAM
from spendgate.local.demo_gemini import ARRAY, BATCH, EMBEDDING, EVENTS, GEMINI
from spendgate.local.demo_openai import COMPLETIONS, EMBEDDINGS, RESPONSES
from spendgate.local.demo_shapes import CHAT, MESSAGES, Reply, Shape
from spendgate.local.demo_work import Work
from spendgate.providers.attempt import Pool
from tests.simulation.actors import Actor, Process
from tests.simulation.virtual import ACTOR, SECOND

if TYPE_CHECKING:
    from spendgate.core.address import Network
    from tests.simulation.world import World

SECRET: Final = "sk-simulated-provider-key"
_MILLISECOND: Final = SECOND // 1000
_BARE: Final = Framing(request=0, tooling=0, tool=0, part=8, output_overshoot=0)


def _provider(name: str, dialect: str, url: str, kind: str | None = None) -> Provider:
    return Provider(name=name, dialect=dialect, base_url=url, secret="env:KEY", framing=_BARE, kind=kind)


PROVIDERS: Final = (
    _provider("gpt", "openai", "https://gpt.example/v1"),
    _provider("oai", "openai", "https://api.openai.com/v1"),
    _provider("router", "openai", "https://openrouter.ai/api/v1"),
    _provider("claude", "anthropic", "https://api.anthropic.com"),
    _provider("claude-there", "anthropic", "https://bedrock.example", "bedrock-anthropic"),
    _provider("gemini", "gemini", "https://generativelanguage.googleapis.com"),
    _provider("converse", "bedrock", "https://converse.example"),
)
# What proves, by each provider's own documents, that nothing was billed.
_REFUSED: Final = (400, 401, 403, 404, 413, 422, 429)
_UNBILLED: Final[Mapping[str, tuple[int, ...]]] = {
    "gpt": (*_REFUSED, 409, 415),
    "oai": (*_REFUSED, 409),
    "router": (*_REFUSED, 402, 502, 503),
    "claude": (*_REFUSED, 402, 529),
    "claude-there": (400, 401, 403, 404, 413, 429),
    "gemini": _REFUSED,
    "converse": (400, 401, 403, 404, 413, 415, 429),
}
# What may come after the work, and may not: nobody can say.
_UNCLEAR: Final = (500, 500, 504, 408, 520)
_SHAPES: Final = (
    ("/chat/completions", CHAT),
    ("/responses", RESPONSES),
    ("/embeddings", EMBEDDINGS),
    ("/completions", COMPLETIONS),
    ("/v1/messages", MESSAGES),
    ("/converse", CONVERSE),
    ("/converse-stream", CONVERSE_STREAM),
    ("/invoke", INVOKE),
    ("/invoke-with-response-stream", INVOKE_STREAM),
    (":generateContent", GEMINI),
    (":embedContent", EMBEDDING),
    (":batchEmbedContents", BATCH),
)
TROUBLES: Final = (
    *("refuse", "refuse", "unsent", "fail", "fail", "reset", "hang", "cut", "cut", "ends early", "error in stream"),
    *("no usage", "garbage usage", "garbage", "overbill", "redirect", "late", "overstate", "wrong type"),
)
_GARBAGE: Final = ("null", "[]", "{}", '"many"', "-5", "NaN", '{"prompt_tokens": -4, "completion_tokens": 1e400}')


@dataclass(slots=True, kw_only=True)
class Arrival:
    """One request at a provider: what it billed, and what its answer says that it used.

    ``fair`` tells that the whole answer would say just what is billed; ``over`` that it bills what it may not.
    ``proves`` tells that the answer proves that nothing was billed.
    """

    provider: str
    model: str
    trouble: str
    work: Work
    billed: int = 0
    fair: bool = False
    over: bool = False
    proves: bool = False
    reply: Reply | None = None
    shape: Shape | None = None


class SimulatedPool(Pool):
    """The gateway's own pool, whose connections lead to the simulated providers."""

    def __init__(self, world: World, process: Process) -> None:
        super().__init__(clock=process.clock, connect_seconds=5, idle_seconds=4)
        self._world = world
        self._process = process

    def _new(self, network: Network) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=_Transport(self._world, self._process),
            timeout=httpx.Timeout(None, connect=5, pool=5),
            follow_redirects=False,
            trust_env=False,
        )


class _Transport(httpx.AsyncBaseTransport):
    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        world, process, actor = self._world, self._process, ACTOR.get()
        random = actor.random
        trouble = "ok"
        if not (actor.calm or world.calm) and random.random() < world.weather.trouble:
            trouble = random.choice(TROUBLES)
        world.step(actor, f"connects to {request.url.host}")
        world.auditor.attempted(actor)
        await world.loop.pause(random.randrange(1, 200) * _MILLISECOND)
        process.check()
        if trouble == "unsent":
            await world.loop.pause(random.choice((0, 5 * SECOND)))
            raise random.choice((httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))("no connection")
        arrival = _arrive(world, process, actor, request, trouble)
        world.step(actor, f"reached {arrival.provider}: {trouble}, bills {arrival.billed}")
        await self._work(random, trouble)
        return self._response(actor, arrival, request)

    async def _work(self, random: Random, trouble: str) -> None:
        loop = self._world.loop
        await loop.pause(random.randrange(1, 3000) * _MILLISECOND)
        if trouble == "late":
            await loop.pause(random.randrange(1, 900) * SECOND)
        if trouble == "hang":
            await loop.create_future()
        self._process.check()
        if trouble == "reset":
            raise random.choice((httpx.ReadError, httpx.RemoteProtocolError, httpx.ReadTimeout, httpx.WriteError))(
                "reset"
            )

    def _response(self, actor: Actor, arrival: Arrival, request: httpx.Request) -> httpx.Response:
        world, random, shape, reply = self._world, actor.random, arrival.shape, arrival.reply
        assert shape is not None
        assert reply is not None
        world.step(actor, "is answered")
        if arrival.trouble == "refuse":
            status = random.choice(_UNBILLED[arrival.provider])
            return self._whole(actor, status, shape.error(status, "refused", None))
        if arrival.trouble == "fail":
            status = random.choice(_UNCLEAR)
            return self._whole(actor, status, random.choice((shape.error(status, "failed", None), b"", b"<html>")))
        if arrival.trouble == "redirect":
            return httpx.Response(307, headers={"location": str(request.url)}, request=request)
        if arrival.trouble == "garbage":
            return self._whole(actor, 200, b'{"id": "half a docu')
        if arrival.work.stream:
            frames, kind = _counting(random, arrival, shape.frames(reply)), shape.stream_type
        else:
            body, kind = shape.body(reply), "application/json"
            frames = [body[: len(body) // 2], body[len(body) // 2 :]]
        if arrival.trouble == "wrong type":
            kind = "text/plain"
        breaks = False
        if arrival.trouble in ("cut", "ends early", "error in stream"):
            frames = frames[: random.randrange(max(len(frames), 1))]
            breaks = arrival.trouble == "cut" or not arrival.work.stream
            if arrival.trouble == "error in stream" and arrival.work.stream:
                frames.append(shape.error_frame(529))
        stream = _Pieces(world, self._process, actor, frames, breaks=breaks)
        return httpx.Response(200, headers={"content-type": kind}, stream=stream)

    def _whole(self, actor: Actor, status: int, body: bytes) -> httpx.Response:
        stream = _Pieces(self._world, self._process, actor, [body], breaks=False)
        return httpx.Response(status, headers={"content-type": "application/json"}, stream=stream)


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, world: World, process: Process, actor: Actor, frames: list[bytes], *, breaks: bool) -> None:
        self._world = world
        self._process = process
        self._actor = actor
        self._frames = frames
        self._breaks = breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        random = self._actor.random
        together = random.choice((1, 1, 3, 100))
        for at in range(0, len(self._frames), together):
            self._world.step(self._actor, "")
            await self._world.loop.pause(random.randrange(1, 80) * _MILLISECOND)
            self._process.check()
            yield b"".join(self._frames[at : at + together])
        if self._breaks:
            raise random.choice((httpx.ReadError, httpx.RemoteProtocolError))("cut")


def _arrive(world: World, process: Process, actor: Actor, request: httpx.Request, trouble: str) -> Arrival:
    random = actor.random
    provider = next(one for one in PROVIDERS if httpx.URL(one.base_url).host == request.url.host)
    path = unquote(request.url.path)
    shape = _shape(path, request.url.query)
    in_path = path.partition("/models/")[2] or path.partition("/model/")[2]
    model = in_path.rpartition(":")[0] if ":" in in_path else in_path.rpartition("/")[0]
    work = shape.read(request.content, {"model": model})
    arrival = Arrival(provider=provider.name, model=work.model, trouble=trouble, work=work, shape=shape)
    if trouble == "overbill":
        if work.output_tokens == 0 and "mbed" in path:
            work = replace(work, input_tokens=10**6)
        else:
            most = work.output_tokens if work.output_cap is None else work.output_cap * work.choices
            work = replace(work, output_tokens=most * 20 + 5000)
        arrival.over = True
    arrival.work = work
    row = world.rates(provider.name, work.model, process)
    arrival.billed = work.input_tokens * row[0] + work.output_tokens * row[1]
    match trouble:
        case "refuse":
            arrival.billed, arrival.proves = 0, True
        case "redirect" | "fail" | "reset" if random.random() < 0.5:
            arrival.billed = 0
        case "redirect":
            arrival.billed = 0
        case "ok" | "late" | "overbill" | "cut" | "ends early" | "hang" | "error in stream" | "wrong type":
            # Claude's stream says 1 before it says 0.
            arrival.fair = work.output_tokens > 0 or not work.stream
        case _:
            pass
    arrival.reply = _reply(world, arrival, shape, random)
    world.auditor.arrived(actor, process, arrival, request)
    world.arrivals.append(arrival)
    return arrival


def _reply(world: World, arrival: Arrival, shape: Shape, random: Random) -> Reply:
    work, output = arrival.work, arrival.work.output_tokens
    if arrival.trouble == "overstate":
        output += 1
    usage_text: str | None = json.dumps(_usage(arrival, shape, work.input_tokens, output))
    if arrival.provider == "router":
        usage_text = _charged(usage_text, arrival.billed)
    if arrival.trouble == "no usage":
        usage_text = None
    if arrival.trouble == "garbage usage":
        usage_text = random.choice(_GARBAGE)
    return Reply(
        id=len(world.arrivals),
        model=work.model,
        words=work.words[:24],
        choices=work.choices,
        capped=work.capped,
        input_tokens=work.input_tokens,
        usage_text=usage_text,
        usage_asked=work.usage_asked,
        base64=work.base64,
    )


def _usage(arrival: Arrival, shape: Shape, input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return shape.usage(input_tokens, output_tokens)


def _charged(usage_text: str | None, billed: int) -> str:
    """Add what the router says that it charges."""
    return f'{(usage_text or "{")[:-1]}, "cost": {billed // 10**12}.{billed % 10**12:012d}}}'


def _counting(random: Random, arrival: Arrival, frames: list[bytes]) -> list[bytes]:
    """Let a stream tell early what it has used so far, as some servers do."""
    if arrival.shape is not CHAT or random.random() > 0.4:
        return frames
    so_far = json.dumps(CHAT.usage(arrival.work.input_tokens, min(arrival.work.output_tokens, 1)))
    return [frames[0].replace(b'"usage":null', b'"usage":' + so_far.encode()), *frames[1:]]


def _shape(path: str, query: bytes) -> Shape:
    if path.endswith(":streamGenerateContent"):
        return EVENTS if b"alt=sse" in query else ARRAY
    return next(shape for end, shape in _SHAPES if path.endswith(end))
