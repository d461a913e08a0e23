"""What a configuration file would change, as data: the file compared with what is stored. Nothing here does I/O."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal

from spendgate.admin_configuration_view import key_policy_view, price_view, provider_view, route_view
from spendgate.admin_view import instant_text, policy_view
from spendgate.admin_warnings import warnings
from spendgate.catalogue import addable
from spendgate.configuration import Configuration, KeySpec
from spendgate.core.alert import DEFAULTS, AlertPolicy
from spendgate.core.budget import BudgetState
from spendgate.core.key import Key, hash_secret
from spendgate.core.price import PriceRow
from spendgate.core.route import Provider, Route
from spendgate.errors import ConfigurationInvalid, Problem

Kind = Literal["budget", "price", "catalogue", "provider", "route", "key", "alerts"]
Action = Literal["create", "update", "keep", "revoke", "delete", "kept"]

WRITES: Final[frozenset[Action]] = frozenset({"create", "update", "revoke", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of a plan. ``keep`` is the same in both; ``kept`` differs from the file and stays, ``note`` says why."""

    kind: Kind
    name: str
    action: Action
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    note: str | None = None

    @property
    def writes(self) -> bool:
        """Tell whether applying it changes anything."""
        return self.action in WRITES

    def view(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What is stored, at one read, and what is shipped for the file's providers.

    Runs are left out: they come and go while agents work.
    """

    budgets: tuple[BudgetState, ...]
    keys: tuple[Key, ...]
    providers: tuple[Provider, ...]
    routes: tuple[Route, ...]
    prices: tuple[PriceRow, ...]
    managed: frozenset[str]
    shipped: tuple[PriceRow, ...] = ()
    alerts: AlertPolicy = DEFAULTS

    def budget(self, path: str) -> BudgetState | None:
        return next((state for state in self.budgets if state.policy.path == path), None)

    def live_keys(self, name: str) -> tuple[Key, ...]:
        """Return the keys of a name that are not revoked; more than one only after a race of two operators."""
        return tuple(key for key in self.keys if key.name == name and key.revoked_at is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every change, in the order in which they are applied, and what an operator should know before."""

    id: str
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]

    def view(self) -> dict[str, Any]:
        """Return the plan JSON-ready; ``writes`` counts the changes that would be written."""
        return {
            "plan_id": self.id,
            "changes": [change.view() for change in self.changes],
            "writes": sum(change.writes for change in self.changes),
            "warnings": list(self.warnings),
        }


def plan(text: str, configuration: Configuration, snapshot: Snapshot, now: datetime) -> Plan:
    """Return what applying a file changes. ConfigurationInvalid where the file contradicts what is stored."""
    _check(configuration, snapshot)
    changes = (
        # What takes away comes first, then budgets, and keys last: at no step can a call spend more than both the
        # file and the store allow, and nothing that is new can be used before all that it needs is there.
        *_keys_gone(configuration, snapshot),
        *_routes_gone(configuration, snapshot),
        *_budgets(configuration, snapshot),
        *_prices(configuration, snapshot),
        *_catalogues(configuration, snapshot),
        *_providers(configuration, snapshot),
        *_routes(configuration, snapshot),
        *_keys(configuration, snapshot),
        *_alerts(configuration.alerts, snapshot.alerts),
    )
    return Plan(
        id=plan_id(text, snapshot),
        changes=changes,
        warnings=tuple(warnings(configuration, snapshot.budgets, snapshot.prices, snapshot.shipped, now)),
    )


def plan_id(text: str, snapshot: Snapshot) -> str:
    """Return a digest of the file and of all that it was compared with: the same id, the same plan."""
    seen = {
        "file": text,
        "budgets": [[state.policy.path, state.policy.rev, policy_view(state.policy)] for state in snapshot.budgets],
        "keys": sorted(json.dumps(asdict(key), default=instant_text, sort_keys=True) for key in snapshot.keys),
        "providers": sorted((one.name, provider_view(one)) for one in snapshot.providers),
        "routes": sorted((one.name, route_view(one)) for one in snapshot.routes),
        "prices": sorted(row.id for row in snapshot.prices),
        "shipped": sorted(row.id for row in snapshot.shipped),
        "managed": sorted(snapshot.managed),
        "alerts": alerts_view(snapshot.alerts),
    }
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:32]


def price_name(row: PriceRow) -> str:
    """Return a price row's name in a plan: ``openai/house-model from 2026-01-01``."""
    start = instant_text(row.valid_from).removesuffix("T00:00:00Z")
    return f"{row.provider}/{row.model} from {start}"


def managed_names(configuration: Configuration) -> frozenset[str]:
    """Return what the file answers for: a key or a route that it no longer has is taken away by the next apply."""
    return frozenset(
        [
            *(f"key:{spec.name}" for spec in configuration.keys),
            *(f"route:{route.name}" for route in configuration.routes),
        ]
    )


def _check(configuration: Configuration, snapshot: Snapshot) -> None:
    holders = {key.hash: key.name for key in snapshot.keys}
    taken = {spec.name: holders.get(hash_secret(spec.secret)) for spec in configuration.keys if spec.secret is not None}
    problems = [
        Problem(f"keys.{name}.secret", f"key {holder} already has this secret")
        for name, holder in taken.items()
        if holder not in (None, name)
    ]
    if problems:
        raise ConfigurationInvalid(problems)


def _keys_gone(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    named = {spec.name for spec in configuration.keys}
    for key in sorted(snapshot.keys, key=lambda key: key.name):
        if key.name in named or key.revoked_at is not None:
            continue
        before = key_policy_view(budget=key.budget, models=key.models, expires_at=key.expires_at)
        if f"key:{key.name}" in snapshot.managed:
            yield Change(kind="key", name=key.name, action="revoke", before=before, note="no longer in the file")
        else:
            yield Change(
                kind="key", name=key.name, action="kept", before=before, after=before, note="made by `keys create`"
            )


def _routes_gone(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    named = {route.name for route in configuration.routes}
    for route in snapshot.routes:
        if route.name in named:
            continue
        before = route_view(route)
        if f"route:{route.name}" in snapshot.managed:
            yield Change(kind="route", name=route.name, action="delete", before=before, note="no longer in the file")
        else:
            yield Change(
                kind="route", name=route.name, action="kept", before=before, after=before, note="not in the file"
            )


def _budgets(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    wanted = {policy.path: policy for policy in configuration.budgets}
    for path in sorted(
        wanted.keys() | {state.policy.path for state in snapshot.budgets}, key=lambda path: path.split("/")
    ):
        stored = snapshot.budget(path)
        before = None if stored is None else policy_view(stored.policy)
        policy = wanted.get(path)
        after = None if policy is None else policy_view(policy)
        if policy is None:
            note = "not in the file: a budget is never deleted, its records stay"
            yield Change(kind="budget", name=path, action="kept", before=before, after=before, note=note)
        elif stored is None:
            yield Change(kind="budget", name=path, action="create", after=after)
        elif before == after:
            yield Change(kind="budget", name=path, action="keep", before=before, after=after)
        elif not after:
            # The file's paths imply every budget above them: a line that was deleted must not lift a limit.
            note = "the file sets nothing on it: its limits stay until the file sets others"
            yield Change(kind="budget", name=path, action="kept", before=before, after=before, note=note)
        else:
            yield Change(kind="budget", name=path, action="update", before=before, after=after)


def _alerts(wanted: AlertPolicy, stored: AlertPolicy) -> Iterator[Change]:
    if wanted != stored:
        yield Change(
            kind="alerts", name="alerts", action="update", before=alerts_view(stored), after=alerts_view(wanted)
        )


def alerts_view(policy: AlertPolicy) -> dict[str, Any]:
    """Return at what to warn in the shape of the configuration file."""
    return {"warn_at": list(policy.warn_at), "slack": policy.slack}


def _prices(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    stored = {row.id: row for row in snapshot.prices}
    for row in configuration.prices:
        name = price_name(row)
        old = stored.get(row.id)
        if old is None:
            yield Change(kind="price", name=name, action="create", after=price_view(row))
        elif price_view(old) == price_view(row):
            yield Change(kind="price", name=name, action="keep", before=price_view(old), after=price_view(row))
        else:
            yield Change(
                kind="price",
                name=name,
                action="kept",
                before=price_view(old),
                after=price_view(row),
                note="a price row is never overwritten; add one with a new `from`",
            )


def _catalogues(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    missing = addable(snapshot.shipped, (*snapshot.prices, *configuration.prices))
    for provider in dict.fromkeys(row.provider for row in snapshot.shipped):
        count = sum(row.provider == provider for row in missing)
        action: Action = "create" if count else "keep"
        yield Change(kind="catalogue", name=provider, action=action, after={"shipped_prices": count} if count else None)


def _providers(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    wanted = {one.name: provider_view(one) for one in configuration.providers}
    stored = {one.name: provider_view(one) for one in snapshot.providers}
    yield from _named("provider", wanted, stored)
    for name in sorted(stored.keys() - wanted.keys()):
        view = stored[name]
        yield Change(kind="provider", name=name, action="kept", before=view, after=view, note="not in the file")


def _routes(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    wanted = {one.name: route_view(one) for one in configuration.routes}
    yield from _named("route", wanted, {one.name: route_view(one) for one in snapshot.routes})


def _named(kind: Kind, wanted: dict[str, dict[str, Any]], stored: dict[str, dict[str, Any]]) -> Iterator[Change]:
    for name, after in wanted.items():
        before = stored.get(name)
        action: Action = "create" if before is None else "keep" if before == after else "update"
        yield Change(kind=kind, name=name, action=action, before=before, after=after)


def _keys(configuration: Configuration, snapshot: Snapshot) -> Iterator[Change]:
    for spec in configuration.keys:
        yield _key(spec, snapshot)


def _key(spec: KeySpec, snapshot: Snapshot) -> Change:
    after = key_policy_view(budget=spec.budget, models=spec.models, expires_at=spec.expires_at)
    live = snapshot.live_keys(spec.name)
    revoked = [key for key in snapshot.keys if key.name == spec.name and key.revoked_at is not None]
    fixed = None if spec.secret is None else hash_secret(spec.secret)
    if fixed in {key.hash for key in revoked}:
        note = "revoked, and a revoked secret is never used again: give it another one"
        return Change(kind="key", name=spec.name, action="kept", after=after, note=note)
    if not live:
        again = "a new secret; the revoked one stays revoked" if revoked else None
        return Change(kind="key", name=spec.name, action="create", after=after, note=again)
    before = key_policy_view(budget=live[0].budget, models=live[0].models, expires_at=live[0].expires_at)
    if fixed is not None and fixed not in {key.hash for key in live}:
        note = "another secret; the one before is revoked"
        return Change(kind="key", name=spec.name, action="update", before=before, after=after, note=note)
    same = all((key.budget, key.models, key.expires_at) == (spec.budget, spec.models, spec.expires_at) for key in live)
    return Change(kind="key", name=spec.name, action="keep" if same else "update", before=before, after=after)
