"""What a call costs in the gateway's own processor time; the store and the provider answer at once, for nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from benchmarks.rig import Rig, chat_body, key_of_depth


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """CPU seconds of one kind of call: the median and the least over the repetitions."""

    name: str
    body_bytes: int
    seconds: float
    seconds_least: float


async def measure(rig: Rig, *, calls: int, repetitions: int) -> list[CallCost]:
    """Return the cost of whole and streamed calls with a small and a large body, on a path of three budgets."""
    bodies = {
        f"{kind}, {size // 1000} KB": chat_body(size, stream=kind == "streamed")
        for size in (1_000, 100_000)
        for kind in ("whole", "streamed")
    }
    await warm(rig)
    taken: dict[str, list[float]] = {name: [] for name in bodies}
    # In turns, so that what else the machine does meets all kinds alike.
    for _ in range(repetitions):
        for name, body in bodies.items():
            taken[name].append(await seconds_per_call(rig, body, calls))
    return [
        CallCost(name=name, body_bytes=len(bodies[name]), seconds=median(times), seconds_least=min(times))
        for name, times in taken.items()
    ]


async def warm(rig: Rig) -> None:
    """Let the gateway read its configuration from the store, which is canned from then on."""
    rig.canned = False
    for stream in (False, True):
        answer = await rig.call(key_of_depth(3), chat_body(1000, stream=stream))
        assert answer.status == 200, answer.body
    rig.canned = True


async def seconds_per_call(rig: Rig, body: bytes, calls: int) -> float:
    """Return the CPU seconds of a call, of all threads of this process."""
    rig.trace.clear()
    start = time.process_time()
    for _ in range(calls):
        answer = await rig.call(key_of_depth(3), body)
        assert answer.status == 200, answer.body
    return (time.process_time() - start) / calls
