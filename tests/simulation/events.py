"""What happens in a history beside calls: sweepers, alerts, messages, clocks, deaths; and operators (``operators.py``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from spendgate.alerts import alert
from spendgate.asking import Asking
from spendgate.calls import NO_METRICS
from spendgate.errors import AlertUndelivered, SpendgateError
from spendgate.settlements import settle_message
from spendgate.store.audit import audit
from spendgate.sweep import sweep, trim
from spendgate.sweep_minute import minute
from tests.simulation import gateways, operators, recovery
from tests.simulation.actors import Actor, seeded
from tests.simulation.founding import Opened
from tests.simulation.virtual import ACTOR, SECOND, Killed

if TYPE_CHECKING:
    from tests.simulation.world import World

# How often each comes, of a thousand events.
_KINDS: Final = {
    "call": 841,
    "count": 15,
    "operator": 80,
    "sweep": 12,
    "alerts": 8,
    "clock": 15,
    "death": 10,
    "outage": 8,
    "mint": 12,
    "retire": 7,
}
RECEIVES_MAX: Final = 5


def kind_of(random: Random) -> str:
    """Draw what happens."""
    return random.choices(list(_KINDS), weights=list(_KINDS.values()))[0]


def begin(world: World, number: int, kind: str, *, calm: bool) -> None:
    """Let an event begin."""
    process = world.process(f"{kind}-{number}", seeded(world.history.seed, "process", number))
    _BEGUN[kind](world, world.actor(number, kind, process, calm=calm))


def _clock(world: World, actor: Actor) -> None:
    for process in world.gateways.processes():
        process.skew += actor.random.choice((1, 3, 50)) * actor.random.randrange(-SECOND, SECOND)


def _death(world: World, actor: Actor) -> None:
    living = world.gateways.processes()
    if living and not actor.calm:
        actor.random.choice(living).dead = True


def _outage(world: World, actor: Actor) -> None:
    if not actor.calm:
        world.away_until = world.loop.micros + actor.random.choice((1, 5, 60)) * actor.random.randrange(SECOND)
        world.away_from = actor.random.choice([None, *world.gateways.processes()])


def ended(world: World, actor: Actor, done: asyncio.Future[Any]) -> None:
    """Look at how a piece of work ended: what the code raises on purpose is an answer too."""
    error = done.exception()
    if error is not None and not isinstance(error, (SpendgateError, Killed)):
        world.auditor.fault("a fault", f"{actor.name} ended with {error!r}")
    elif error is not None:
        world.tell(actor, f"ends: {error}")


def _start(actor: Actor, world: World, work: Any) -> None:
    token = ACTOR.set(actor)
    try:
        world.loop.create_task(work)
    finally:
        ACTOR.reset(token)


# -- what runs each minute ---------------------------------------------------------------------------------------------


def _sweep(world: World, actor: Actor) -> None:
    ledger, config = world.stores(actor.process)
    world.step(actor, "sweeps")
    if not actor.calm and actor.random.random() < world.weather.deaths * 5:
        actor.dies_at = actor.random.randrange(1, 60)
    log = gateways.Log(world, actor.process)
    if actor.random.random() < 0.5:
        minute(ledger, actor.process.clock(), charge_after=timedelta(hours=72), metrics=NO_METRICS, log=log)
    else:
        asking = Asking(provider_named=config.provider, recover=recovery.recoverer(world, actor.process), by="sweeper")
        sweep(ledger, actor.process.clock(), asking=asking)
        trim(ledger, actor.process.clock())


def _alerts(world: World, actor: Actor) -> int:
    ledger, config = world.stores(actor.process)
    world.step(actor, "tells")
    log = gateways.Log(world, actor.process)
    return alert(ledger, config, _notifier(world, actor), actor.process.clock(), log=log).published


def _notifier(world: World, actor: Actor) -> Callable[[Any], None]:
    def notify(message: Any) -> None:
        world.step(actor, "publishes")
        world.loop.wait(actor.random.randrange(SECOND))
        actor.process.check()
        fault = 1.0 if actor.calm or world.calm else actor.random.random()
        if fault < 0.1:
            raise AlertUndelivered("the topic takes nothing")
        world.told.append(message)
        if fault < 0.2:
            raise AlertUndelivered("its answer is lost")

    return notify


# -- messages, and functions that are retired --------------------------------------------------------------------------


def message_comes(world: World, body: str, receives: int, number: int) -> None:
    """Give a message of the queue to its function."""
    process = world.process(f"consumer-{number}", seeded(world.history.seed, "consumer", number, receives))
    actor = Actor(number, "message", seeded(world.history.seed, "message", number, receives), process)

    def settle() -> None:
        world.step(actor, "is received")
        if not world.calm and actor.random.random() < world.weather.deaths * 3:
            actor.dies_at = actor.random.randrange(1, 8)
        ledger, _ = world.stores(process)
        try:
            settle_message(ledger, body, receives, now=process.clock(), log=gateways.Log(world, process))
        except (SpendgateError, Killed):
            if receives < RECEIVES_MAX:
                world.loop.after(90 * SECOND, message_comes, world, body, receives + 1, number)
            else:
                world.lost_messages += 1
            raise

    world.run_as(actor, settle)


async def _mint(world: World, actor: Actor) -> None:
    function = world.gateways.one(actor.random)
    actor.process = function.process
    opened = actor.random.choice(world.founded.keys)
    world.step(actor, f"mints a key below {opened.budget}")
    body: dict[str, Any] = {"delegate": actor.random.choice((0, 0, 1))}
    if actor.random.random() < 0.5:
        body["limits"] = {"requests": {"life": actor.random.randrange(1, 8)}}
    try:
        minted = await function.gateway.mint(opened.secret, body)
    except (SpendgateError, Killed) as error:
        world.tell(actor, f"mints none: {error}")
        return
    world.auditor.outcomes["minted"] += 1
    world.founded.keys.append(Opened(minted.secret, minted.key.name, minted.key.budget, minted=True))
    if actor.random.random() < 0.3:
        await world.loop.pause(actor.random.randrange(600) * SECOND)
        try:
            await function.gateway.end_run(opened.secret, minted.run)
        except (SpendgateError, Killed) as error:
            world.tell(actor, f"the run goes on: {error}")


async def _retire(world: World, actor: Actor) -> None:
    function = world.gateways.take(actor.random)
    if function is not None:
        world.step(actor, f"{function.process.name} is told to stop")
        try:
            await function.gateway.aclose(grace_seconds=actor.random.choice((0, 0.5, 5, 30)))
        except Killed:
            world.tell(actor, "it died before")


_BEGUN: Final[Mapping[str, Callable[[World, Actor], None]]] = {
    "call": gateways.start_call,
    "count": gateways.start_count,
    "operator": lambda world, actor: world.run_as(actor, lambda: operators.operate(world, actor)),
    "sweep": lambda world, actor: world.run_as(actor, lambda: _sweep(world, actor)),
    "alerts": lambda world, actor: world.run_as(actor, lambda: _alerts(world, actor)),
    "clock": _clock,
    "death": _death,
    "outage": _outage,
    "mint": lambda world, actor: _start(actor, world, _mint(world, actor)),
    "retire": lambda world, actor: _start(actor, world, _retire(world, actor)),
}


# -- the end -----------------------------------------------------------------------------------------------------------


def sweep_at_last(world: World) -> None:
    """Let the sweeper come when nothing goes wrong any more, and another one while it is at it."""
    random = seeded(world.history.seed, "last sweeps", world.loop.micros)
    for number in (-1, -4):
        actor = world.actor(number, "sweep", world.process(f"sweep{number}", random), calm=True)
        world.loop.after(random.randrange(3 * SECOND), world.run_as, actor, partial(_sweep, world, actor))


def tell_at_last(world: World) -> None:
    """Let people be told of all that is left."""
    actor = world.actor(-2, "alerts", world.process("alerts-at-last", seeded(world.history.seed, "end")), calm=True)

    def tell() -> None:
        while _alerts(world, actor):
            pass

    world.run_as(actor, tell)


def audit_at_last(world: World) -> None:
    """Let production's own audit prove what the auditor has found, or not."""
    actor = world.actor(-3, "audit", world.process("audit", seeded(world.history.seed, "end")), calm=True)

    def prove() -> None:
        ledger, _ = world.stores(actor.process)
        report = audit(ledger, actor.process.clock(), pause=lambda: None)
        for one in report.differences:
            world.auditor.fault("G9", f"spendgate audit tells of {one}")

    world.run_as(actor, prove)
    world.loop.run()
