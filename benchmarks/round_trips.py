"""How often a call goes to DynamoDB: before it leaves for the provider, and after."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.rig import CONFIGURATION, SMALL, Rig, chat_body, key_of_depth
from benchmarks.stub import EGRESS


@dataclass(frozen=True, slots=True, kw_only=True)
class Trips:
    """One call: what it was answered, and its requests to DynamoDB before and after egress, by operation."""

    name: str
    status: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def left(self) -> bool:
        """Tell whether the call went to the provider."""
        return self.status == 200


async def measure(rig: Rig) -> list[Trips]:
    """Make one call of each kind and return its round trips."""
    warm, run = key_of_depth(4), (b"x-spendgate-run", b"4711")
    body, streamed = chat_body(1000), chat_body(1000, stream=True)
    found = [
        await _trips(rig, "first call of all", warm, body),
        await _trips(rig, "warm call", warm, body),
        await _trips(rig, "warm call, streamed", warm, streamed),
        await _trips(rig, "warm call with an idempotency key", warm, body, (b"idempotency-key", b"order-66")),
        await _trips(rig, "its repetition (409)", warm, body, (b"idempotency-key", b"order-66")),
        await _trips(rig, "first call of another key", key_of_depth(3), body),
        await _trips(rig, "first call of a run", key_of_depth(3), body, run),
        await _trips(rig, "second call of a run", key_of_depth(3), body, run),
    ]
    rig.admin.apply(CONFIGURATION.replace("day: 80000", "day: 80001"), by="benchmarks")
    found += [
        await _trips(rig, "after a limit above the key's budget changed", warm, body),
        await _trips(rig, "the call after that", warm, body),
    ]
    rig.admin.apply(CONFIGURATION.replace("day: 60000", "day: 60001"), by="benchmarks")
    found.append(await _trips(rig, "after a limit of the key's own budget changed", warm, body))
    await rig.call(SMALL, body)
    found.append(await _trips(rig, "refused by a limit (402)", SMALL, body))
    rig.directory.forget()
    found.append(await _trips(rig, "after everything was forgotten", warm, body))
    return found


async def _trips(rig: Rig, name: str, secret: str, body: bytes, *headers: tuple[bytes, bytes]) -> Trips:
    answer, trace = await rig.traced(secret, body, *headers)
    egress = trace.index(EGRESS) if EGRESS in trace else len(trace)
    return Trips(name=name, status=answer.status, before=tuple(trace[:egress]), after=tuple(trace[egress + 1 :]))
