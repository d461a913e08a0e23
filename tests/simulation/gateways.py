"""The gateway's functions: production code on a simulated store, transport, clock and queue; and the calls that they serve."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from spendgate.calls import Call, Parts
from spendgate.dialects.registry import DIALECTS
from spendgate.directory import Directory
from spendgate.errors import Refused
from spendgate.gateway import Gateway
from spendgate.outbox import Outbox
from spendgate.settings import Settings
from spendgate.settlements import QueuedFallback
from spendgate.store.queue import SettlementQueue
from tests.simulation.actors import Actor, Process
from tests.simulation.callers import ask_of
from tests.simulation.doors import QueueDoor
from tests.simulation.founding import Opened
from tests.simulation.providers import SECRET
from tests.simulation.transport import SimulatedPool
from tests.simulation.virtual import ACTOR, SECOND, Killed
from tests.simulation.wants import Wants

if TYPE_CHECKING:
    from spendgate.calls import Reply
    from tests.simulation.world import World


@dataclass(slots=True)
class Called:
    """What the auditor knows of a call: whose key it has, and what it says of itself."""

    key_hash: str
    secret: str
    minted: bool
    run: str | None
    dialect: str
    route: str
    wants: Wants
    # Whether there is nothing wrong with the request.
    sound: bool
    # Whether its key was revoked before it asked.
    was_dead: bool = False


class Log:
    """Takes what is logged; a fault that a gateway logs is a finding."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def info(self, message: str, /, **fields: Any) -> None:
        """Take a line."""

    def exception(self, message: str, /, **fields: Any) -> None:
        """Take an exception that is being handled."""
        error = sys.exception()
        if not self._process.dead and not isinstance(error, (Killed, GeneratorExit)):
            self._world.auditor.fault("a fault", f"{ACTOR.get().name} logs {message!r}: {error!r} {fields}")


@dataclass(slots=True, eq=False)
class Function:
    """A process with a gateway in it."""

    process: Process
    gateway: Gateway


class Gateways:
    """The functions that are warm; one that has died is made anew by the next call that it would have had."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._warm: list[Function | None] = [None] * world.random.choice((1, 2, 3))
        self._number = 0

    def one(self, random: Random) -> Function:
        """Return a function for a call."""
        slot = random.randrange(len(self._warm))
        warm = self._warm[slot]
        if warm is None or warm.process.dead:
            self._number += 1
            warm = _function(self._world, f"gateway-{self._number}", random)
            self._warm[slot] = warm
        return warm

    def take(self, random: Random) -> Function | None:
        """Take a warm function out, so that no further call goes to it."""
        slot = random.randrange(len(self._warm))
        warm, self._warm[slot] = self._warm[slot], None
        return None if warm is None or warm.process.dead else warm

    def processes(self) -> list[Process]:
        """Return the processes that live."""
        return [one.process for one in self._warm if one is not None and not one.process.dead]


def start_call(world: World, actor: Actor, opened: Opened | None = None) -> None:
    """Let a caller make a call, with this key or with any."""
    _start(world, actor, _call, opened)


def start_count(world: World, actor: Actor, opened: Opened | None = None) -> None:
    """Let a caller have tokens counted, which costs nothing, with this key or with any."""
    _start(world, actor, _count, opened)


def _start(
    world: World,
    actor: Actor,
    work: Callable[[World, Actor, Function, Opened], Coroutine[Any, Any, None]],
    opened: Opened | None,
) -> None:
    function = world.gateways.one(actor.random)
    actor.process = function.process
    token = ACTOR.set(actor)
    try:
        world.loop.create_task(work(world, actor, function, opened or actor.random.choice(world.founded.keys)))
    finally:
        ACTOR.reset(token)


async def _call(world: World, actor: Actor, function: Function, opened: Opened) -> None:
    random = actor.random
    ask = ask_of(random, f"#{actor.number}")
    likely = 0.4 if opened.budget in world.founded.with_runs else 0.01
    run = f"r{random.randrange(3)}" if random.random() < likely else None
    deadline = None
    if random.random() < 0.2:
        deadline = actor.process.clock() + timedelta(seconds=random.choice((3, 12, 60)))
    if not actor.calm and not world.calm and random.random() < world.weather.deaths:
        actor.dies_at = random.randrange(1, 40)
    secret = opened.secret if random.random() > 0.01 else "sg-" + "0" * 40
    idempotency_key = f"key-{random.randrange(6)}" if random.random() < 0.06 else None
    actor.call = Called(
        key_hash=opened.hash,
        secret=secret,
        minted=opened.minted,
        run=run,
        dialect=ask.dialect,
        route=ask.route,
        wants=ask.wants,
        sound=ask.sound,
    )
    call = Call(
        dialect=DIALECTS[ask.dialect],
        raw=ask.raw,
        headers=ask.headers,
        query=ask.query,
        path=ask.path,
        secret=secret,
        run=run,
        idempotency_key=idempotency_key,
        deadline=deadline,
        request_id=f"request-{actor.number}",
    )
    world.step(actor, f"asks {ask.dialect} {ask.route} of {opened.budget}" + (f" run {run}" if run else ""))
    leaves = random.random() < 0.15
    try:
        waiting = asyncio.ensure_future(function.gateway.serve(call))
        if leaves:
            await asyncio.wait({waiting}, timeout=random.randrange(3 * SECOND) / SECOND)
            waiting.cancel()
        reply = await waiting
        await _listen(world, actor, reply)
    except Refused as refused:
        world.tell(actor, f"is refused: {refused.code}")
        world.auditor.egress.refused(actor, refused)
    except (Killed, asyncio.CancelledError):
        world.tell(actor, "hears nothing")


async def _count(world: World, actor: Actor, function: Function, opened: Opened) -> None:
    random = actor.random
    dialect = random.choice(("anthropic", "gemini"))
    ask = ask_of(random, f"#{actor.number}", dialect=dialect)
    actor.call = Called(
        key_hash=opened.hash,
        secret=opened.secret,
        minted=opened.minted,
        run=None,
        dialect=dialect,
        route=ask.route,
        wants=ask.wants,
        sound=ask.sound,
        was_dead=world.auditor.egress.is_revoked(opened.hash, minted=opened.minted),
    )
    call = Call(
        dialect=DIALECTS[dialect],
        raw=ask.raw,
        headers=ask.headers,
        query="",
        path=ask.path,
        secret=opened.secret,
        request_id=f"request-{actor.number}",
    )
    world.step(actor, f"has tokens of {ask.route} counted for {opened.budget}")
    try:
        reply = await function.gateway.pass_free(call, DIALECTS[dialect].free[0])
        world.auditor.outcomes[f"counted {reply.status}"] += 1
    except Refused as refused:
        world.tell(actor, f"is refused: {refused.code}")
        world.auditor.egress.refused(actor, refused)
    except Killed:
        world.tell(actor, "hears nothing")


async def _listen(world: World, actor: Actor, reply: Reply) -> None:
    world.auditor.outcomes[f"answered {reply.status}"] += 1
    relay = reply.pieces
    if relay is None:
        return
    left = actor.random.choice((1, 3, 1000))
    async for _ in relay.pieces():
        left -= 1
        if not left:
            relay.leave()
            return
        if actor.random.random() < 0.02:
            await world.loop.pause(actor.random.choice((1, 40)) * SECOND)


async def _secret(_: str) -> str:
    return SECRET


def _function(world: World, name: str, random: Random) -> Function:
    process = world.process(name, random)
    settings = Settings(
        call_seconds_max=random.choice((20, 60, 600)), settlement_queue_url="https://queue.example", cache_seconds=60
    )
    ledger, config = world.stores(process, settings)
    log = Log(world, process)
    queue: Any = QueueDoor(world, process)
    offload = world.loop.offload
    parts = Parts(
        directory=Directory(config, clock=process.clock, offload=offload, seconds=settings.cache_seconds),
        ledger=ledger,
        pool=SimulatedPool(world, process),
        secret=_secret,
        fallback=QueuedFallback(SettlementQueue("https://queue.example", lambda: queue), log),
        settings=settings,
        clock=process.clock,
        randomness=lambda count: ACTOR.get().random.randbytes(count),  # noqa: PLW0108 - whose it is changes
        offload=offload,
        log=log,
        sign=lambda outbound: outbound.headers,
        outbox=Outbox(ledger, offload, log.info),
    )
    return Function(process, Gateway(parts))
