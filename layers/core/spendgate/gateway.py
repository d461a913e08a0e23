"""What a caller can ask of the gateway: a call, a free one, and how its budgets, runs and reservations stand.

A call is admitted by ``admitter.py``; then ``exchange.py`` sends once, passes the answer on and settles.
Nothing that can be billed leaves before its reservation is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import datetime
from typing import Any

from spendgate import runs
from spendgate.admission import check_dialect
from spendgate.admitter import Admitter
from spendgate.calls import Call, Parts, Reply
from spendgate.core.address import network_of
from spendgate.core.budget import BudgetState, is_within
from spendgate.core.kind import kind_of
from spendgate.core.reservation import Reservation, is_id
from spendgate.core.route import Route
from spendgate.dialects.dialect import Free
from spendgate.directory import Caller
from spendgate.errors import LedgerUnavailable, NotFound, RefusalFacts
from spendgate.exchange import Exchange
from spendgate.passing import pass_through
from spendgate.providers.attempt import Outbound


class Gateway:
    """Serves calls. ``aclose`` waits for those in flight."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._admitter = Admitter(parts)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, call: Call) -> Reply:
        """Return the provider's answer; any of the Refused where there is none."""
        # In a task of its own: a caller who goes away, or a server that stops waiting, does not end the call.
        return await asyncio.shield(self._spawn(self._serve(call)))

    def now(self) -> datetime:
        """Return the time by the gateway's clock."""
        return self._parts.clock()

    async def pass_free(self, call: Call, free: Free) -> Reply:
        """Pass a call through that is free, so nothing is reserved; the key is checked as it stands now."""
        caller = await self._parts.directory.read_caller(call.secret)
        request = await self._admitter.read(call, caller, free.read)
        route = await self._admitter.route(caller, request.facts.model)
        candidate = route.candidates[0]
        reached = await self._admitter.reach(candidate)
        check_dialect(route, [reached], call.dialect.family)
        if kind_of(reached.provider).signed:
            raise NotFound(
                f"provider {candidate.provider} has no such call that is free",
                facts=RefusalFacts(next_action="make the call itself: its bound needs no count"),
            )
        secret = reached.provider.secret
        path = free.upstream_path(request, candidate.model) + (f"?{request.query}" if request.query else "")
        outbound = Outbound(
            kind=kind_of(reached.provider),
            url=reached.provider.base_url.rstrip("/") + path,
            body=free.outgoing(request, candidate.model),
            headers=request.headers,
            secret=None if secret is None else await self._parts.secret(secret),
            network=network_of(reached.provider),
        )
        life = self._admitter.lifetime(call, self._parts.clock())
        return await pass_through(self._parts, outbound, provider=candidate.provider, seconds=life.call.total_seconds())

    async def models(self, secret: str | None) -> tuple[Caller, tuple[Route, ...]]:
        """Return the routes that a key may ask for, and whose it is."""
        caller = await self._parts.directory.read_caller(secret)
        routes = await self._parts.directory.routes()
        return caller, tuple(route for route in routes if caller.allows(route.name))

    async def budgets(self, secret: str | None, run: str | None) -> tuple[BudgetState, ...]:
        """Return every budget on a key's path as it stands, root first; and a run's, if one is named and known."""
        caller, states = await self._parts.directory.read_states(secret)
        if run is None:
            return states
        path = self._admitter.run_path(caller.path[-1], run)
        state = await self._parts.offload(lambda: self._parts.ledger.budget(path))
        return states if state is None else (*states, state)

    async def mint(self, secret: str | None, body: Mapping[str, Any]) -> runs.Minted:
        """Mint a key for a run of the key's budget."""
        return await runs.mint(self._parts, await self._parts.directory.read_caller(secret), body)

    async def end_run(self, secret: str | None, run: str) -> BudgetState:
        """End a run of the key's budget before its time; return it as it then stands."""
        return await runs.end(self._parts, await self._parts.directory.read_caller(secret), run)

    async def reservation(self, secret: str | None, reservation_id: str) -> Reservation:
        """Return a reservation of the key's budget or below; any other does not exist for this key."""
        caller = await self._parts.directory.read_caller(secret)
        found = None
        if is_id(reservation_id):
            found = await self._parts.offload(lambda: self._parts.ledger.reservation(reservation_id))
        if found is None or not is_within(found.path, caller.key.budget):
            raise NotFound("there is no such reservation of this key's budget", facts=RefusalFacts(field="id"))
        return found

    async def aclose(self, *, grace_seconds: float) -> None:
        """Wait for calls in flight; those that do not end in time become unknown, and their money stays held."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_seconds)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*tuple(self._tasks), return_exceptions=True)
        await self._parts.pool.aclose()

    async def _serve(self, call: Call) -> Reply:
        try:
            admitted = await self._admitter.admit(call)
        except asyncio.CancelledError as stopped:
            raise LedgerUnavailable("the gateway is stopping; nothing was sent", retry_after_seconds=1) from stopped
        return await Exchange(self._parts, admitted, self._spawn).run()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
