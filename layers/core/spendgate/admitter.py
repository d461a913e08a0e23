"""The way of a call to its reservation: identify, read, route, price, bound, reserve.

Nothing is sent here. What is remembered of keys and budgets decides nothing alone: only what the ledger holds refuses a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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
from spendgate.calls import Admitted, Call, Parts
from spendgate.core.bound import Offer
from spendgate.core.budget import BudgetPolicy, new_run, run_path
from spendgate.core.feature import allowance, granted
from spendgate.core.policy import rooms_left
from spendgate.core.reservation import Reservation
from spendgate.core.route import Candidate, Route
from spendgate.core.window import Measure
from spendgate.dialects.dialect import ReadRequest, Request
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
from spendgate.metering import unbilled
from spendgate.store.ledger import NotAdmitted, PolicyStale

# Each try has learnt what the last one met; more than a few mean that policies change faster than calls are made.
ADMISSION_TRIES_MAX: Final = 6
RANDOM_BYTES: Final = 10
# The platform kills a function at its deadline; settling and telling the caller need a little before that.
PLATFORM_MARGIN: Final = timedelta(seconds=5)


class Admitter:
    """Admits calls, or refuses them with the reason."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def admit(self, call: Call) -> Admitted:
        """Reserve what a call may cost; any of the Refused where it is not admitted."""
        caller = await self._parts.directory.caller(call.secret)
        request = await self.read(call, caller, call.dialect.read)
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

    async def read(self, call: Call, caller: Caller, read: ReadRequest) -> Request:
        """Return the request, with what no list of fields knows only where every provider of the route has listed it."""
        body = self._parsed(call)
        try:
            return read(body, call.headers, call.query, call.path)
        except FieldUnlisted:
            model = call.path.get("model", body.get("model"))
            if not isinstance(model, str):
                raise
            route = await self.route(caller, model)
            reached = [(await self.reach(candidate)).provider for candidate in route.candidates]
            return read_listed(read, body, call.headers, call.query, call.path, listed=listed_by_all(reached))

    async def route(self, caller: Caller, name: str) -> Route:
        """Return the route of a name that the caller's keys may ask for."""
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

    async def reach(self, candidate: Candidate) -> Reach:
        """Return a candidate's provider with its price rows."""
        provider = await self._parts.directory.provider(candidate.provider)
        if provider is None:
            raise NotFound(
                f"provider {candidate.provider} of the route is not configured",
                facts=RefusalFacts(field="model", next_action="an operator applies a configuration with this provider"),
            )
        return Reach(provider=provider, rows=await self._parts.directory.prices(candidate))

    def lifetime(self, call: Call, now: datetime) -> Lifetime:
        """Return how long a call may take; LedgerUnavailable where no time is left."""
        settings = self._parts.settings
        span = timedelta(seconds=settings.call_seconds_max)
        if call.deadline is not None:
            span = min(span, call.deadline - now - PLATFORM_MARGIN)
        if span <= timedelta(0):
            raise LedgerUnavailable("there is no time left for this call; nothing was sent", retry_after_seconds=1)
        return Lifetime(now=now, call=span, grace=timedelta(seconds=settings.deadline_grace_seconds))

    def run_path(self, leaf: BudgetPolicy, run: str) -> str:
        """Return the path of a run below a budget; RequestInvalid."""
        if leaf.runs is None:
            raise RequestInvalid(
                f"budget {leaf.path} allows no runs", facts=RefusalFacts(budget=leaf.path, field="x-spendgate-run")
            )
        try:
            return run_path(leaf.path, run)
        except ValueError as error:
            raise RequestInvalid(str(error), facts=RefusalFacts(field="x-spendgate-run")) from error

    def _parsed(self, call: Call) -> dict[str, Any]:
        encoding = call.headers.get("content-encoding")
        return parse_object(call.raw, content_encoding=encoding, bytes_max=self._parts.settings.body_bytes_max)

    async def _reserve(self, call: Call, request: Request, caller: Caller, *, seen: bool) -> Admitted:
        parts, facts = self._parts, request.facts
        route = await self.route(caller, facts.model)
        reached = [await self.reach(candidate) for candidate in route.candidates]
        check_dialect(route, reached, call.dialect.family)
        now = parts.clock()
        life = self.lifetime(call, now)
        path = self._path(caller, call.run, now)
        # From here on the facts, and with them what an answer's meter knows, are those that the budgets allow.
        facts = granted(facts, allowance(path, route.allow))
        request = replace(request, facts=facts)
        reachable = slice(None if any(policy.failover for policy in path) else 1)
        check_blocks(facts, await parts.directory.blocks(), route.candidates[reachable], path)
        offers = await self._offers(route, reached, path, life)
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
            await self._hold(reservation, path, now)
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
        candidates = tuple((one, reach.provider) for one, reach in zip(route.candidates, reached, strict=True))
        return Admitted(
            call=call,
            request=request,
            reservation=reservation,
            candidates=candidates[reachable],
            until=now + life.call,
        )

    async def _offers(
        self, route: Route, reached: Sequence[Reach], path: Sequence[BudgetPolicy], life: Lifetime
    ) -> tuple[Offer, ...] | None:
        """Return what can be priced; where it cannot be, people are told."""
        try:
            return offers_of(route, reached, path, life)
        except PriceUnknown:
            if self._parts.outbox is not None:
                await self._parts.outbox.unpriced(path[-1].path, route, reached, life)
            raise

    async def _hold(self, reservation: Reservation, path: Sequence[BudgetPolicy], now: datetime) -> None:
        """Reserve on the path; where the ledger gives no answer in time, release what it may have written."""
        parts = self._parts
        try:
            await parts.offload(lambda: parts.ledger.reserve(reservation, path, now))
        except (LedgerUnavailable, asyncio.CancelledError):
            # The reservation may have been written although no answer came. Nothing is sent, so it can be released.
            release = unbilled(None, "the ledger did not answer in time; nothing was sent")
            # Off the loop, since a queue may be slow; shielded, since this task may be the one that is cancelled.
            await asyncio.shield(parts.offload(lambda: parts.fallback.defer(reservation, release)))
            raise
        if path[-1].rev == 0:
            parts.directory.learn_run(replace(path[-1], rev=1))

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

    def _path(self, caller: Caller, run: str | None, now: datetime) -> tuple[BudgetPolicy, ...]:
        if run is None:
            return caller.path
        leaf = caller.path[-1]
        path = self.run_path(leaf, run)
        return (*caller.path, self._parts.directory.run(path) or new_run(leaf, path, now))

    async def _read_run(self, path: str) -> None:
        """Learn how a run stands now, if it is there yet."""
        self._parts.directory.forget_run(path)
        state = await self._parts.offload(lambda: self._parts.ledger.budget(path))
        if state is not None:
            self._parts.directory.learn_run(state.policy)

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


class _Reread(Exception):
    """A denial that rests on remembered policies: read them again. A way back, not an error."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path
