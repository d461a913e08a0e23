"""What a provider answers when it is asked, long after, what became of an answer."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import httpx

from spendgate.providers import recovery
from tests.simulation.providers import SECRET, Arrival
from tests.simulation.tellings import whole
from tests.simulation.virtual import ACTOR, SECOND

if TYPE_CHECKING:
    from tests.simulation.actors import Process
    from tests.simulation.world import World


def recoverer(world: World, process: Process) -> recovery.Recover:
    """Return what asks the simulated providers."""
    return recovery.recoverer(lambda _: SECRET, _Transport(world, process))


class _Transport(httpx.BaseTransport):
    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        world, actor = self._world, ACTOR.get()
        random: Random = actor.random
        world.step(actor, f"asks {request.url.host}")
        world.loop.wait(random.randrange(SECOND))
        self._process.check()
        chance = random.random()
        if chance < 0.15:
            raise httpx.ConnectError("no connection")
        response_id = request.url.params.get("id") or request.url.path.rpartition("/")[2]
        number = int(response_id.rpartition("-")[2].rpartition("_")[2])
        arrival = world.arrivals[number]
        if chance < 0.3 or arrival.reply is None or arrival.shape is None or not arrival.fair:
            return httpx.Response(random.choice((404, 404, 500, 429)), json={})
        if "generation" in request.url.path:
            return httpx.Response(200, content=_generation(arrival, response_id))
        return httpx.Response(200, content=whole(arrival.shape, arrival.reply, arrival.bill))


def _generation(arrival: Arrival, response_id: str) -> bytes:
    assert arrival.reply is not None
    data = {
        "id": response_id,
        "model": arrival.model,
        "total_cost": "@",
        "native_tokens_prompt": arrival.bill.taken_in,
        "native_tokens_completion": arrival.bill.out,
    }
    cost = f"{arrival.billed // 10**12}.{arrival.billed % 10**12:012d}"
    return json.dumps({"data": data}).replace('"@"', cost).encode()
