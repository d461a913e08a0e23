"""What the gateway knows of callers, routes, providers and prices: read from the store, kept for at most a minute.

Nothing strict rests on this: a policy that is old fails on its revision inside the transaction, and a key that was
revoked has raised the revision of its budget. What is not there is never remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from spendgate.core.block import Block
from spendgate.core.budget import BudgetPolicy, BudgetState, prefixes
from spendgate.core.key import Key, allows, hash_secret, is_minted, is_well_formed
from spendgate.core.price import PriceRow
from spendgate.core.route import Candidate, Provider, Route
from spendgate.errors import KeyInvalid, RefusalFacts
from spendgate.store.config import Config
from spendgate.store.run_keys import RunKeys

T = TypeVar("T")
ENTRIES_MAX: Final = 4096

_HOW_TO_GET_A_KEY: Final = RefusalFacts(next_action="ask an operator for a key: spendgate keys create")


class Offload(Protocol):
    """Runs a blocking call where it does not block the event loop."""

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]:
        """Return what ``call`` returns, or raise what it raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A valid key and the policies of its path, root first. ``fresh`` if they were read for this very call."""

    key: Key
    path: tuple[BudgetPolicy, ...]
    fresh: bool = False
    # Of a minted key every key above it, as it stands: it may do what all of these may, and dies with any.
    above: tuple[Key, ...] = ()

    @property
    def keys(self) -> tuple[Key, ...]:
        """The key, and those above it."""
        return (*self.above, self.key)

    def allows(self, route: str) -> bool:
        """Tell whether the caller may ask for a route."""
        return all(allows(key, route) for key in self.keys)

    def with_policies(self, policies: Sequence[BudgetPolicy]) -> Caller:
        """Return the caller with those policies that were found to have changed."""
        known = {policy.path: policy for policy in policies}
        return replace(self, path=tuple(known.get(policy.path, policy) for policy in self.path))


class Directory:
    """The store's configuration, through a cache."""

    def __init__(self, config: Config, *, clock: Callable[[], datetime], offload: Offload, seconds: float) -> None:
        self._config = config
        self.run_keys = RunKeys(config)
        self._clock = clock
        self._offload = offload
        self._callers: _Cache[Caller] = _Cache(seconds)
        self._routes: _Cache[Route] = _Cache(seconds)
        self._providers: _Cache[Provider] = _Cache(seconds)
        self._prices: _Cache[tuple[PriceRow, ...]] = _Cache(seconds)
        self._runs: _Cache[BudgetPolicy] = _Cache(seconds)
        self._blocks: _Cache[tuple[Block, ...]] = _Cache(seconds)

    async def caller(self, secret: str | None) -> Caller:
        """Return who holds a key; KeyInvalid for a missing, unknown, expired or revoked one."""
        key_hash = _hash(secret)
        now = self._clock()
        known = self._callers.get(key_hash, now)
        if known is None:
            return await self.read_caller(secret)
        _check(known.keys, now)
        return known

    async def read_caller(self, secret: str | None) -> Caller:
        """Return who holds a key as it stands this moment; KeyInvalid."""
        caller, _ = await self.read_states(secret)
        return caller

    async def read_states(self, secret: str | None) -> tuple[Caller, tuple[BudgetState, ...]]:
        """Return who holds a key, and the budgets of the path with their counters, of one instant; KeyInvalid."""
        key_hash = _hash(secret)
        remembered = self._callers.peek(key_hash)
        find = self.run_keys.key if secret is not None and is_minted(secret) else self._config.key
        key = remembered.key if remembered is not None else await self._offload(lambda: find(key_hash))
        if key is None:
            raise KeyInvalid("no such key", facts=_HOW_TO_GET_A_KEY)
        wanted = key
        if wanted.minted_by:
            return await self._read_minted(wanted)
        found, states = await self._offload(lambda: self._config.key_and_path(wanted))
        if found is not None and found.budget != wanted.budget:
            # The key was moved since it was remembered: its new path has to be read together with it.
            moved = found
            found, states = await self._offload(lambda: self._config.key_and_path(moved))
        if found is None:
            raise KeyInvalid("no such key", facts=_HOW_TO_GET_A_KEY)
        return self._known(found, (), states)

    async def _read_minted(self, key: Key) -> tuple[Caller, tuple[BudgetState, ...]]:
        found, states = await self._offload(lambda: self.run_keys.keys_and_path(key))
        if [(one.hash, one.budget) for one in found] != [*key.minted_by, (key.hash, key.budget)]:
            raise KeyInvalid(f"key {key.name} is gone, or one above it is gone or was moved", facts=_HOW_TO_GET_A_KEY)
        return self._known(found[-1], found[:-1], states)

    def _known(
        self, key: Key, above: tuple[Key, ...], states: tuple[BudgetState, ...]
    ) -> tuple[Caller, tuple[BudgetState, ...]]:
        """Return the caller of what was read, and remember it; KeyInvalid."""
        now = self._clock()
        _check((*above, key), now)
        if len(states) != len(prefixes(key.budget)):
            raise KeyInvalid(f"the key's budget {key.budget} is not there any more", facts=_HOW_TO_GET_A_KEY)
        caller = Caller(key=key, path=tuple(state.policy for state in states), above=above)
        self._callers.put(key.hash, caller, now)
        return replace(caller, fresh=True), states

    def learn(self, caller: Caller) -> None:
        """Keep a caller whose policies the ledger has just shown."""
        self._callers.put(caller.key.hash, replace(caller, fresh=False), self._clock())

    def run(self, path: str) -> BudgetPolicy | None:
        """Return the policy of a run that was seen lately."""
        return self._runs.get(path, self._clock())

    def learn_run(self, policy: BudgetPolicy) -> None:
        """Keep the policy of a run."""
        self._runs.put(policy.path, policy, self._clock())

    def forget_run(self, path: str) -> None:
        """Read the policy of a run anew."""
        self._runs.drop(path)

    async def route(self, name: str) -> Route | None:
        """Return a route by its exact name."""
        return await self._read(self._routes, name, lambda: self._config.route(name))

    async def routes(self) -> tuple[Route, ...]:
        """Return every route as it stands."""
        return await self._offload(self._config.routes)

    async def provider(self, name: str) -> Provider | None:
        """Return a provider by its exact name."""
        return await self._read(self._providers, name, lambda: self._config.provider(name))

    async def prices(self, candidate: Candidate) -> tuple[PriceRow, ...]:
        """Return every price row of exactly this candidate."""
        rows = await self._read(
            self._prices, candidate, lambda: self._config.prices(candidate.provider, candidate.model) or None
        )
        return rows or ()

    async def blocks(self) -> tuple[Block, ...]:
        """Return what a broken bound has blocked."""
        return await self._read(self._blocks, "", self._config.blocks) or ()

    def forget_blocks(self) -> None:
        """Read anew what is blocked, since a bound was just broken."""
        self._blocks.clear()

    def forget(self) -> None:
        """Read everything anew from now on."""
        for cache in (self._callers, self._routes, self._providers, self._prices, self._runs, self._blocks):
            cache.clear()

    async def _read(self, cache: _Cache[T], name: Hashable, read: Callable[[], T | None]) -> T | None:
        now = self._clock()
        known = cache.get(name, now)
        if known is not None:
            return known
        found = await self._offload(read)
        if found is not None:
            cache.put(name, found, now)
        return found


class _Cache(Generic[T]):
    """A bounded number of values, each for a bounded time."""

    def __init__(self, seconds: float) -> None:
        self._kept = timedelta(seconds=seconds)
        self._entries: OrderedDict[Any, tuple[datetime, T]] = OrderedDict()

    def get(self, name: Hashable, now: datetime) -> T | None:
        entry = self._entries.get(name)
        return entry[1] if entry is not None and timedelta(0) <= now - entry[0] < self._kept else None

    def peek(self, name: Hashable) -> T | None:
        """Return a value whatever its age: for what never changes of it."""
        entry = self._entries.get(name)
        return None if entry is None else entry[1]

    def put(self, name: Hashable, value: T, now: datetime) -> None:
        self._entries[name] = (now, value)
        self._entries.move_to_end(name)
        if len(self._entries) > ENTRIES_MAX:
            self._entries.popitem(last=False)

    def drop(self, name: Hashable) -> None:
        self._entries.pop(name, None)

    def clear(self) -> None:
        self._entries.clear()


def _hash(secret: str | None) -> str:
    if secret is None:
        raise KeyInvalid("the request has no key", facts=_HOW_TO_GET_A_KEY)
    if not is_well_formed(secret):
        raise KeyInvalid("the key is not a Spendgate key (sg-...)", facts=_HOW_TO_GET_A_KEY)
    return hash_secret(secret)


def _check(keys: Sequence[Key], now: datetime) -> None:
    for key in keys:
        # Whatever its instant says: that is of the operator's clock, which may be ahead of this one.
        if key.revoked_at is not None:
            raise KeyInvalid(f"key {key.name} was revoked", facts=_HOW_TO_GET_A_KEY)
        if key.expires_at is not None and key.expires_at <= now:
            raise KeyInvalid(f"key {key.name} has expired", facts=_HOW_TO_GET_A_KEY)
