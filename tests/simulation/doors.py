"""How a process reaches the store and the queue: each operation takes its time and may meet a fault.

An operation is two steps of a history, its way there and its way back; a process can die before either, and others act in
between. What each may meet is known to ``store_faults.py``; here it is met in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from tests.simulation.actors import Actor, Process
from tests.simulation.store_faults import NAMES, error_of, is_refusal, without_token
from tests.simulation.virtual import ACTOR, SECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

_MILLISECOND: Final = SECOND // 1000
_WRITES: Final = frozenset({"transact_write_items", "update_item", "put_item"})


class StoreDoor:
    """A client of the store, as one process has it."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def __getattr__(self, operation: str) -> Any:
        if operation not in NAMES:
            raise AttributeError(operation)

        def call(**request: Any) -> Any:
            return self._do(operation, request)

        return call

    def _do(self, operation: str, request: Mapping[str, Any]) -> Any:
        world, process, actor = self._world, self._process, ACTOR.get()
        random = actor.random
        fault = "none" if actor.calm or world.calm else world.weather.fault(random, operation)
        world.step(actor, operation)
        world.loop.wait(_latency(random))
        process.check()
        if world.is_away(process) or fault == "unreachable":
            world.loop.wait(random.randrange(5, 600) * _MILLISECOND)
            process.check()
            raise EndpointConnectionError(endpoint_url="the store")
        if is_refusal(fault):
            raise error_of(fault, operation, request)
        if fault == "late":
            # It is on its way; nobody waits for it any more.
            world.loop.after(random.randrange(SECOND, 40 * SECOND), self._arrive_late, operation, request, actor)
        else:
            answer = self._applied(operation, request, actor, forgets=fault == "forgotten")
        world.step(actor, "")
        world.loop.wait(_latency(random) if fault == "none" else random.randrange(2 * SECOND))
        process.check()
        if fault in ("late", "lost", "forgotten"):
            raise ReadTimeoutError(endpoint_url="the store")
        return answer

    def _applied(
        self, operation: str, request: Mapping[str, Any], actor: Actor, *, forgets: bool, late: bool = False
    ) -> Any:
        if forgets:
            request = without_token(request)
        answer = getattr(self._world.store, operation)(**request)
        if operation in _WRITES:
            self._world.auditor.written(actor, self._process, _touched(operation, request), late=late)
        elif "IndexName" in request and not (actor.calm or self._world.calm):
            # An index follows its table, a moment later.
            answer["Items"] = [item for item in answer["Items"] if actor.random.random() > self._world.weather.lags]
        return answer

    def _arrive_late(self, operation: str, request: Mapping[str, Any], actor: Actor) -> None:
        self._world.steps += 1
        with suppress(ClientError):
            self._applied(operation, request, actor, forgets=False, late=True)


class QueueDoor:
    """A client of SQS, as one process has it."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803 - as it is called
        """Take a message; it comes at least once."""
        world, process, actor = self._world, self._process, ACTOR.get()
        random = actor.random
        world.step(actor, "send_message")
        world.loop.wait(_latency(random))
        process.check()
        fault = random.random() if not (actor.calm or world.calm) else 1.0
        if fault < 0.05:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        world.deliver(MessageBody, random)
        world.step(actor, "")
        world.loop.wait(_latency(random))
        process.check()
        if fault < 0.1:
            raise ReadTimeoutError(endpoint_url=QueueUrl)


def _latency(random: Random) -> int:
    chance = random.random()
    most = 12 if chance < 0.9 else 120 if chance < 0.98 else 1500
    return random.randrange(_MILLISECOND, most * _MILLISECOND)


def _touched(operation: str, request: Mapping[str, Any]) -> list[tuple[str, tuple[str, str]]]:
    """Return the table and the key of every item that a request writes."""
    writes = [request]
    if operation == "transact_write_items":
        writes = [write for step in request["TransactItems"] for write in step.values()]
    return [
        (write["TableName"], (key["pk"]["S"], key["sk"]["S"]))
        for write in writes
        for key in [write["Key"] if "Key" in write else write["Item"]]
    ]
