"""What operators do in a history: through the use cases of the admin API, at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from spendgate.admin import Admin
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.core.money import usd_text
from spendgate.core.route import Candidate
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.simulation import founding, gateways, recovery
from tests.simulation.actors import SKEW_MAX, Actor, seeded
from tests.simulation.founding import Opened
from tests.simulation.virtual import SECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

_SINCE: Final = timedelta(minutes=5)


def operate(world: World, actor: Actor) -> None:
    ledger, config = world.stores(actor.process)
    command = actor.random.choice(_COMMANDS)
    world.step(actor, command.__name__.strip("_"))
    command(world, actor, ledger, config)


def _change_limits(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    random = actor.random
    path = random.choice(world.founded.paths)
    state = ledger.budget(path)
    if state is None:
        return
    scale = random.choice((2, 6, 30))
    policy = replace(state.policy, limits=founding.limits_of(random, scale), unbudgeted=False)
    ledger.put_budget(policy, expected_rev=state.policy.rev, now=actor.process.clock(), event=_event(actor, path))


def _stop(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    path = actor.random.choice(world.founded.paths)
    _admin(world, actor, ledger, config).stop(path, reason="the simulation says so", by="operator")


def _resume(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    admin = _admin(world, actor, ledger, config)
    for state in ledger.budgets():
        if state.policy.stop is not None:
            admin.resume(state.policy.path, reason="the simulation says so", by="operator")
    for block in ledger.blocks():
        one = block.candidate
        admin.blocks.lift(provider=one.provider, model=one.model, feature=block.feature, reason="looked", by="operator")


def _raise_limits(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    """Raise what is limited, for a while."""
    random = actor.random
    path = random.choice(world.founded.paths)
    state = ledger.budget(path)
    if state is None:
        return
    raised = [
        replace(one, maximum=one.maximum * random.choice((2, 3, 10)) + 1)
        for one in state.policy.limits
        if one.window != "request"
    ]
    until = actor.process.clock() + timedelta(minutes=random.choice((1, 1, 10, 600)))
    admin = _admin(world, actor, ledger, config)
    admin.resume(path, reason="a busy day", by="operator", limits=raised, until=f"{until:%Y-%m-%dT%H:%M:%SZ}")


def _revoke_key(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    opened = actor.random.choice(world.founded.keys)
    if not opened.minted and len(world.founded.keys) > 2:
        _admin(world, actor, ledger, config).keys.revoke(opened.name, by="operator")
        _goes_on(world, actor, opened)


def _goes_on(world: World, actor: Actor, opened: Opened) -> None:
    """Let whoever has a key that is revoked go on with it, soon: with a call, and with what is free."""
    # What holds money is known by its number, so that each has one of its own.
    for number, kind, start in (
        (actor.number, "call", gateways.start_call),
        (-100 - actor.number, "count", gateways.start_count),
    ):
        random = seeded(world.history.seed, "goes on", number)
        caller = Actor(number, kind, random, actor.process, calm=actor.calm)
        world.loop.after(random.randrange(10 * SECOND), start, world, caller, opened)


def _create_key(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    path = actor.random.choice(world.founded.paths)
    now = actor.process.clock()
    expires_at = now + timedelta(hours=1) if actor.random.random() < 0.2 else None
    admin = _admin(world, actor, ledger, config)
    made = admin.keys.create(f"new-{actor.number}", budget=path, expires_at=expires_at, by="operator")
    world.founded.keys.append(Opened(made["secret"], f"new-{actor.number}", path))


def _move_key(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    opened = actor.random.choice(world.founded.keys)
    key: Key | None = None if opened.minted else config.key(opened.hash)
    if key is not None:
        opened.budget = actor.random.choice(world.founded.paths)
        config.put_key(replace(key, budget=opened.budget), _event(actor, f"key:{key.name}"), known=key)


def _add_price(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    random = actor.random
    provider = random.choice(("gpt", "gpt", "claude", "gemini", "oai", "converse"))
    model = "anthropic.claude-m" if provider == "converse" else random.choice(("m", "m", "rich"))
    rates = random.choice((founding.PLAIN, founding.DEAR, founding.CHEAP))
    # Longer than anybody remembers a price, and than clocks differ.
    at = world.true_time() + timedelta(minutes=random.randrange(20, 600))
    founding.add_price(
        config, world.founded, Candidate(provider=provider, model=model), rates, at, _event(actor, "a price")
    )


def _reconcile(world: World, actor: Actor, ledger: Ledger, config: Config) -> None:
    """End what is unknown as the provider's bill says, which an operator has looked up."""
    admin = _admin(world, actor, ledger, config)
    for one in ledger.reservations(state="unknown", limit=5, now=actor.process.clock()):
        held = world.auditor.held[one.id]
        if held.deadline + _SINCE > world.true_time() - timedelta(microseconds=SKEW_MAX):
            continue
        action, cost = actor.random.choice((("settle", usd_text(held.billed)), ("charge", None), ("ask", None)))
        if held.billed == 0 and actor.random.random() < 0.7:
            action, cost = "release", None
        if action == "charge" and held.billed > held.asked["usd"]:
            continue
        world.step(actor, f"{action} {one.id}")
        evidence = None if action == "ask" else "the provider's bill"
        admin.reconcile(one.id, action=action, cost=cost, evidence=evidence, by="operator")


_COMMANDS: Final[tuple[Callable[[World, Actor, Ledger, Config], None], ...]] = (
    _change_limits,
    _change_limits,
    _stop,
    _resume,
    _resume,
    _resume,
    _resume,
    _raise_limits,
    _raise_limits,
    _revoke_key,
    _revoke_key,
    _create_key,
    _create_key,
    _move_key,
    _add_price,
    _reconcile,
    _reconcile,
)


def _admin(world: World, actor: Actor, ledger: Ledger, config: Config) -> Admin:
    return Admin(
        ledger,
        config,
        clock=actor.process.clock,
        randomness=actor.random.randbytes,
        recover=recovery.recoverer(world, actor.process),
    )


def _event(actor: Actor, subject: str) -> Event:
    return Event(kind="simulated", subject=subject, at=actor.process.clock(), by="operator")
