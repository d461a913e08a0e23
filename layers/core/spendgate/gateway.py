"""One call, from the bytes that a caller sent to the reservation of what they may cost.

identify, read, route, price, bound, reserve; then ``exchange.py`` sends once, passes the answer on and settles.
Nothing that can be billed leaves before its reservation is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from spendgate import runs
from spendgate.admission import (
    Asked,
    Lifetime,
    Reach,
    bound_of,
    check_blocks,
    check_dialect,
    offers_of,
    refusal_of,
    reservation_of,
)
from spendgate.calls import Admitted, Call, Parts, Reply
from spendgate.core.address import network_of
from spendgate.core.budget import BudgetPolicy, BudgetState, is_within, new_run, run_path
from spendgate.core.feature import allowance, granted
from spendgate.core.kind import kind_of
from spendgate.core.policy import rooms_left
from spendgate.core.reservation import Reservation, is_id
from spendgate.core.route import Candidate, Route
from spendgate.core.window import Measure
from spendgate.dialects.dialect import Free, ReadRequest, Request
from spendgate.dialects.json_strict import parse_object
from spendgate.dialects.listed import listed_by_all, read_listed
from spendgate.directory import Caller
from spendgate.errors import (
    FieldUnlisted,
    LedgerUnavailable,
    ModelNotAllowed,
    NotFound,
    PriceUnknown,
    RefusalFacts,
    RequestInvalid,
)
from spendgate.exchange import Exchange, pass_through
from spendgate.metering import unbilled
from spendgate.providers.attempt import Outbound
from spendgate.store.ledger import NotAdmitted, PolicyStale

# Each try has learnt what the last one met; more than a few mean that policies change faster than calls are made.
ADMISSION_TRIES_MAX: Final = 6
RANDOM_BYTES: Final = 10
# The platform kills a function at its deadline; settling and telling the caller need a little before that.
PLATFORM_MARGIN: Final = timedelta(seconds=5)


class Gateway:
    """Serves calls. ``aclose`` waits for those in flight."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
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
        request = await self._read(call, caller, free.read)
        route = await self._route(caller, request.facts.model)
        candidate = route.candidates[0]
        reached = await self._reach(candidate)
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
        life = self._lifetime(call, self._parts.clock())
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
        path = self._run_path(caller.path[-1], run)
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

    # -- before egress -----------------------------------------------------------------------------------------------

    async def _serve(self, call: Call) -> Reply:
        try:
            admitted = await self._admit(call)
        except asyncio.CancelledError as stopped:
            raise LedgerUnavailable("the gateway is stopping; nothing was sent", retry_after_seconds=1) from stopped
        return await Exchange(self._parts, admitted, self._spawn).run()

    async def _admit(self, call: Call) -> Admitted:
        caller = await self._parts.directory.caller(call.secret)
        request = await self._read(call, caller, call.dialect.read)
        # Of a run that is remembered, or of which only is known what a new one would be, nothing was read for this call.
        seen = caller.fresh and call.run is None
        for _ in range(ADMISSION_TRIES_MAX):
            try:
                return await self._reserve(call, request, caller, seen=seen)
            except PolicyStale as stale:
                caller = await self._refreshed(call, caller, stale)
                seen = True
            except _Reread as reread:
                if call.run is not None:
                    await self._read_run(reread.path)
                caller = await self._parts.directory.read_caller(call.secret)
                seen = True
        raise LedgerUnavailable("the budgets of the path change faster than a call can be made", retry_after_seconds=1)

    async def _read(self, call: Call, caller: Caller, read: ReadRequest) -> Request:
        """Return the request, with what no list of fields knows only where every provider of the route has listed it."""
        body = self._parsed(call)
        try:
            return read(body, call.headers, call.query, call.path)
        except FieldUnlisted:
            model = call.path.get("model", body.get("model"))
            if not isinstance(model, str):
                raise
            route = await self._route(caller, model)
            reached = [(await self._reach(candidate)).provider for candidate in route.candidates]
            return read_listed(read, body, call.headers, call.query, call.path, listed=listed_by_all(reached))

    def _parsed(self, call: Call) -> dict[str, Any]:
        encoding = call.headers.get("content-encoding")
        return parse_object(call.raw, content_encoding=encoding, bytes_max=self._parts.settings.body_bytes_max)

    async def _reserve(self, call: Call, request: Request, caller: Caller, *, seen: bool) -> Admitted:
        parts, facts = self._parts, request.facts
        route = await self._route(caller, facts.model)
        reached = [await self._reach(candidate) for candidate in route.candidates]
        check_dialect(route, reached, call.dialect.family)
        now = parts.clock()
        life = self._lifetime(call, now)
        path = self._path(caller, call.run, now)
        # From here on the facts, and with them what an answer's meter knows, are those that the budgets allow.
        facts = granted(facts, allowance(path, route.allow))
        request = replace(request, facts=facts)
        reachable = slice(None if any(policy.failover for policy in path) else 1)
        check_blocks(facts, await parts.directory.blocks(), route.candidates[reachable], path)
        try:
            offers = offers_of(route, reached, path, life)
        except PriceUnknown:
            if parts.outbox is not None:
                await parts.outbox.unpriced(path[-1].path, route, reached, life)
            raise
        bounded = None if offers is None else bound_of(facts, offers, path)
        reservation = reservation_of(
            facts,
            asked=Asked(raw=call.raw, run=call.run, idempotency_key=call.idempotency_key),
            bounded=bounded,
            path=path,
            key_name=caller.key.name,
            life=life,
            randomness=parts.randomness(RANDOM_BYTES),
        )
        try:
            await parts.offload(lambda: parts.ledger.reserve(reservation, path, now))
        except NotAdmitted as denied:
            if not denied.seen and not seen:
                # What is remembered of a stop or a limit may be over: only what stands now refuses a call.
                raise _Reread(path[-1].path) from denied
            await runs.latch_refused(parts, path, denied.denials)
            rooms = await self._rooms(denied, path, now)
            if parts.outbox is not None:
                await parts.outbox.refused(denied.denials, now)
            raise refusal_of(
                denied.denials, rooms, reservation.asked, facts=facts, offers=offers, bounded=bounded
            ) from denied
        except (LedgerUnavailable, asyncio.CancelledError):
            # The reservation may have been written although no answer came. Nothing is sent, so it can be released.
            release = unbilled(None, "the ledger did not answer in time; nothing was sent")
            # Off the loop, since a queue may be slow; shielded, since this task may be the one that is cancelled.
            await asyncio.shield(parts.offload(lambda: parts.fallback.defer(reservation, release)))
            raise
        if path[-1].rev == 0:
            parts.directory.learn_run(replace(path[-1], rev=1))
        candidates = tuple((one, reach.provider) for one, reach in zip(route.candidates, reached, strict=True))
        return Admitted(
            call=call,
            request=request,
            reservation=reservation,
            candidates=candidates[reachable],
            until=now + life.call,
        )

    async def _rooms(
        self, denied: NotAdmitted, path: Sequence[BudgetPolicy], now: datetime
    ) -> list[tuple[Measure, int]]:
        """Return what is left of the limits in the way, so that the output cap that is told to fit does fit.

        Budgets that did not object have room for all that was asked; where the ledger was not asked, all are read.
        """
        rooms = [room for one in denied.denials for room in one.rooms]
        if denied.seen or any(one.limit is None for one in denied.denials):
            return rooms
        paths = [policy.path for policy in path]
        states = await self._parts.offload(lambda: self._parts.ledger.budgets_on(paths))
        return rooms + [room for state in states for room in rooms_left(state, now)]

    async def _route(self, caller: Caller, name: str) -> Route:
        if not caller.allows(name):
            allowed = ", ".join(dict.fromkeys(one for key in caller.keys for one in key.models if caller.allows(one)))
            raise ModelNotAllowed(
                f"key {caller.key.name} may not call {name!r}; it may call: {allowed}",
                facts=RefusalFacts(field="model", next_action=f"ask for one of: {allowed}"),
            )
        route = await self._parts.directory.route(name)
        if route is None:
            raise NotFound(
                f"there is no route named {name!r}",
                facts=RefusalFacts(field="model", next_action="GET /v1/models lists what this key may call"),
            )
        return route

    async def _reach(self, candidate: Candidate) -> Reach:
        provider = await self._parts.directory.provider(candidate.provider)
        if provider is None:
            raise NotFound(
                f"provider {candidate.provider} of the route is not configured",
                facts=RefusalFacts(field="model", next_action="an operator applies a configuration with this provider"),
            )
        return Reach(provider=provider, rows=await self._parts.directory.prices(candidate))

    def _lifetime(self, call: Call, now: datetime) -> Lifetime:
        settings = self._parts.settings
        span = timedelta(seconds=settings.call_seconds_max)
        if call.deadline is not None:
            span = min(span, call.deadline - now - PLATFORM_MARGIN)
        if span <= timedelta(0):
            raise LedgerUnavailable("there is no time left for this call; nothing was sent", retry_after_seconds=1)
        return Lifetime(now=now, call=span, grace=timedelta(seconds=settings.deadline_grace_seconds))

    def _path(self, caller: Caller, run: str | None, now: datetime) -> tuple[BudgetPolicy, ...]:
        if run is None:
            return caller.path
        leaf = caller.path[-1]
        path = self._run_path(leaf, run)
        return (*caller.path, self._parts.directory.run(path) or new_run(leaf, path, now))

    async def _read_run(self, path: str) -> None:
        """Learn how a run stands now, if it is there yet."""
        self._parts.directory.forget_run(path)
        state = await self._parts.offload(lambda: self._parts.ledger.budget(path))
        if state is not None:
            self._parts.directory.learn_run(state.policy)

    def _run_path(self, leaf: BudgetPolicy, run: str) -> str:
        if leaf.runs is None:
            raise RequestInvalid(
                f"budget {leaf.path} allows no runs", facts=RefusalFacts(budget=leaf.path, field="x-spendgate-run")
            )
        try:
            return run_path(leaf.path, run)
        except ValueError as error:
            raise RequestInvalid(str(error), facts=RefusalFacts(field="x-spendgate-run")) from error

    async def _refreshed(self, call: Call, caller: Caller, stale: PolicyStale) -> Caller:
        """Return the caller with the policies that the failed conditions showed; the key is read again if it may have
        changed with them, since revoking a key raises the revision of its budget."""
        directory = self._parts.directory
        # Of a minted key each key above it may have been revoked, too.
        owners = {key.budget for key in caller.keys}
        changed = [state.policy for state in stale.states]
        for policy in changed:
            if policy.path not in {known.path for known in caller.path}:
                directory.learn_run(policy)
        if stale.missing or any(policy.path in owners for policy in changed):
            return await directory.read_caller(call.secret)
        refreshed = caller.with_policies(changed)
        directory.learn(refreshed)
        return replace(refreshed, fresh=True)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Reread(Exception):
    """A denial that rests on remembered policies: read them again. A way back, not an error."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path
