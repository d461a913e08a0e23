"""The auditor's judgement of what leaves the gateway, and of what a caller hears instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from spendgate.errors import Refused
from tests.simulation.records import Held, Item, Place, key_place

if TYPE_CHECKING:
    import httpx

    from tests.simulation.actors import Actor, Process
    from tests.simulation.providers import Arrival


class Egress:
    """Judges requests as they reach a provider, by the reservations of their call."""

    def __init__(
        self,
        fault: Callable[[str, str], None],
        by_call: Mapping[int, list[Held]],
        seen: Mapping[Place, Item],
        outcomes: Counter[str],
    ) -> None:
        self.fault = fault
        self._by_call = by_call
        self._seen = seen
        self._outcomes = outcomes

    def attempted(self, actor: Actor) -> None:
        """A connection to a provider is about to be made for a call."""
        held = self._sent_for(actor)
        if held is not None:
            if held.attempts and not held.failover:
                self.fault("G3", f"{actor.name} tries a further candidate, and no budget opts in")
            held.attempts += 1

    def _sent_for(self, actor: Actor) -> Held | None:
        """Return the reservation that a call is sent under: the last, unless that was written when nobody waited any more."""
        mine = self._by_call.get(actor.number, [])
        return next((one for one in reversed(mine) if not one.late), mine[-1] if mine else None)

    def searches_allowed(self, actor: Actor) -> int:
        """Return how often a provider may search for a call."""
        held = self._sent_for(actor)
        return 0 if held is None else held.searches_max

    def counted(self, actor: Actor) -> None:
        """A request that costs nothing has reached a provider: nothing is held for it, and its key was good."""
        if actor.call.was_dead:
            self.fault("G10", f"{actor.name} has its tokens counted with a key that was revoked before it asked")
        if self._by_call.get(actor.number):
            self.fault("G2", f"{actor.name} has its tokens counted, and holds money")

    def is_revoked(self, key_hash: str, *, minted: bool) -> bool:
        """Tell whether a key is revoked at this moment, as it stands in the store."""
        return "revoked_at" in self._seen.get(key_place(key_hash, minted=minted), {})

    def arrived(self, actor: Actor, process: Process, arrival: Arrival, request: httpx.Request) -> None:
        """A request that can be billed has reached a provider."""
        held = self._sent_for(actor)
        if held is None:
            self.fault("G2", f"{actor.name} reaches {arrival.provider} without a reservation")
            return
        # A sweeper whose clock is ahead may have called it unknown already; the money is held all the same.
        if not held.open:
            self.fault("G2", f"{actor.name} reaches {arrival.provider} and {held.id} is {held.state}")
        if held.arrivals and not (held.failover and all(one.proves for one in held.arrivals)):
            self.fault("G3", f"{actor.name} reaches {arrival.provider} a second time")
        if not arrival.over and not held.unpriced and arrival.billed > held.asked["usd"]:
            self.fault("G8", f"{actor.name} is billed {arrival.billed} and holds {held.asked['usd']}")
        told = b"".join(value for _, value in request.headers.raw) + request.content
        if actor.call.secret.encode() in told:
            self.fault("G10", f"{actor.name}'s own key leaves")
        held.arrivals.append(arrival)

    def refused(self, actor: Actor, refused: Refused) -> None:
        """A call has got no answer from a provider."""
        self._outcomes[refused.code] += 1
        arrivals = [one for held in self._by_call.get(actor.number, ()) for one in held.arrivals]
        if actor.process.dead:
            return
        if refused.code == "internal_fault":
            self.fault("a fault", f"{actor.name}: {refused} {refused.__cause__!r}")
        elif refused.code not in ("outcome_unknown", "provider_unreachable", "provider_refused_us") and arrivals:
            self.fault("G2", f"{actor.name} is refused ({refused.code}) and was sent")
