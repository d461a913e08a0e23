"""The way to the providers: the transport that the gateway sends by, on which anything can happen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import TYPE_CHECKING, Final

import httpx

from spendgate.providers.attempt import Pool
from tests.simulation.actors import Actor, Process
from tests.simulation.providers import TROUBLES, UNBILLED, UNCLEAR, Arrival, answer_frames, arrive, is_free
from tests.simulation.tellings import whole
from tests.simulation.virtual import ACTOR, SECOND

if TYPE_CHECKING:
    from spendgate.core.address import Network
    from tests.simulation.world import World

_MILLISECOND: Final = SECOND // 1000


class SimulatedPool(Pool):
    """The gateway's own pool, whose connections lead to the simulated providers."""

    def __init__(self, world: World, process: Process) -> None:
        super().__init__(clock=process.clock, connect_seconds=5, idle_seconds=4)
        self._world = world
        self._process = process

    def _new(self, network: Network) -> httpx.AsyncBaseTransport:
        return _Transport(self._world, self._process)


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
        world.auditor.egress.attempted(actor)
        await world.loop.pause(random.randrange(1, 200) * _MILLISECOND)
        process.check()
        if trouble == "unsent":
            await world.loop.pause(random.choice((0, 5 * SECOND)))
            raise random.choice((httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))("no connection")
        if is_free(request.url.path):
            return await self._count(actor, request, trouble)
        arrival = arrive(world, process, actor, request, trouble)
        world.step(actor, f"reached {arrival.provider}: {trouble}, bills {arrival.billed}")
        await self._work(random, trouble)
        return self._response(actor, arrival, request)

    async def _count(self, actor: Actor, request: httpx.Request, trouble: str) -> httpx.Response:
        """Answer what costs nothing: how many tokens a request has."""
        self._world.auditor.egress.counted(actor)
        self._world.step(actor, f"has its tokens counted: {trouble}")
        await self._work(actor.random, trouble)
        if trouble in ("refuse", "fail"):
            return self._whole(actor, actor.random.choice((400, 401, 429, *UNCLEAR)), b"{}")
        return self._whole(actor, 200, b'{"inp' if trouble == "garbage" else b'{"input_tokens": 7, "totalTokens": 7}')

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
            status = random.choice(UNBILLED[arrival.provider])
            return self._whole(actor, status, shape.error(status, "refused", None))
        if arrival.trouble == "fail":
            status = random.choice(UNCLEAR)
            return self._whole(actor, status, random.choice((shape.error(status, "failed", None), b"", b"<html>")))
        if arrival.trouble == "redirect":
            return httpx.Response(307, headers={"location": str(request.url)}, request=request)
        if arrival.trouble == "garbage":
            return self._whole(actor, 200, b'{"id": "half a docu')
        if arrival.work.stream:
            frames, kind = answer_frames(random, arrival), shape.stream_type
        else:
            body, kind = whole(shape, reply, arrival.bill), "application/json"
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
