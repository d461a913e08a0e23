"""Carry out a plan, one write after the other, each with its event.

The order is the plan's. A crash between two writes leaves a store that the next plan compares with the file again:
nothing is written twice, and nothing that was not yet written is forgotten.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from spendgate.admin_plan import Change, Plan, Snapshot, managed_names, price_name
from spendgate.admin_temporary import kept
from spendgate.catalogue import load
from spendgate.configuration import Configuration, KeySpec
from spendgate.core.event import Event
from spendgate.core.key import KEY_BYTES, Key, hash_secret, new_secret
from spendgate.errors import RevisionConflict, SpendgateError
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What came of a plan: the secrets of new keys, shown this once, and the error that ended it early."""

    secrets: Mapping[str, str]
    failure: SpendgateError | None = None

    def view(self) -> dict[str, Any]:
        """Return the outcome JSON-ready, secrets included."""
        return {
            "keys": dict(self.secrets),
            "complete": self.failure is None,
            "failure": None if self.failure is None else str(self.failure),
        }


@dataclass(slots=True, kw_only=True)
class Applier:
    """One application of one plan."""

    ledger: Ledger
    config: Config
    configuration: Configuration
    snapshot: Snapshot
    clock: Callable[[], datetime]
    by: str
    randomness: Callable[[int], bytes]
    secrets: dict[str, str] = field(default_factory=dict)
    # Writing a key raises the revision of its budget: what this application raised itself is no conflict.
    raised: Counter[str] = field(default_factory=Counter)

    def apply(self, plan: Plan) -> Applied:
        """Write every change of a plan."""
        names, before = managed_names(self.configuration), self.snapshot.managed
        # First answer for what will be made, last let go of what was taken away: a crash between orphans nothing.
        if not names <= before:
            self.config.put_managed(names | before)
        try:
            for change in plan.changes:
                if change.writes:
                    self._write(change)
            if not before <= names:
                self.config.put_managed(names)
        except SpendgateError as failure:
            if not self.secrets:
                raise
            # Only the hash of a key is stored: an error must not swallow a secret that nobody can ever read again.
            return Applied(secrets=self.secrets, failure=failure)
        return Applied(secrets=self.secrets)

    def _write(self, change: Change) -> None:
        match change.kind:
            case "budget":
                self._budget(change)
            case "price":
                self._price(change)
            case "catalogue":
                rows = [row for row in self.snapshot.shipped if row.provider == change.name]
                load(self.config, rows, now=self.clock(), by=self.by)
            case "provider":
                provider = next(one for one in self.configuration.providers if one.name == change.name)
                self.config.put_provider(provider, self._event(change))
            case "route":
                self._route(change)
            case "key":
                self._key(change)
            case "alerts":
                self.config.put_alerts(self.configuration.alerts, self._event(change, subject="alerts"))

    def _budget(self, change: Change) -> None:
        policy = next(policy for policy in self.configuration.budgets if policy.path == change.name)
        stored = self.snapshot.budget(change.name)
        rev = None if stored is None else stored.policy.rev + self.raised[change.name]
        if stored is not None:
            temporary = kept(stored.policy, policy, self.clock())
            policy = replace(policy, rev=stored.policy.rev, stop=stored.policy.stop, temporary=temporary)
        self.ledger.put_budget(policy, expected_rev=rev, now=self.clock(), event=self._event(change))
        self.raised[change.name] += 1

    def _price(self, change: Change) -> None:
        row = next(row for row in self.configuration.prices if price_name(row) == change.name)
        if not self.config.add_price(row, self._event(change, subject=row.id)):
            raise RevisionConflict(f"a price row {row.id} was added since the plan was made; plan again")

    def _route(self, change: Change) -> None:
        if change.action == "delete":
            self.config.delete_route(change.name, self._event(change))
            return
        route = next(one for one in self.configuration.routes if one.name == change.name)
        self.config.put_route(route, self._event(change))

    def _key(self, change: Change) -> None:
        live = self.snapshot.live_keys(change.name)
        if change.action == "revoke":
            for key in live:
                self._revoke(key, change)
            return
        spec = next(one for one in self.configuration.keys if one.name == change.name)
        if spec.secret is not None and hash_secret(spec.secret) not in {key.hash for key in live}:
            for key in live:
                self._revoke(key, change)
            live = ()
        if not live:
            self._create(spec, change)
        for key in live:
            self._update(key, spec, change)

    def _create(self, spec: KeySpec, change: Change) -> None:
        secret = spec.secret or new_secret(self.randomness(KEY_BYTES))
        key = Key(
            hash=hash_secret(secret), name=spec.name, budget=spec.budget, models=spec.models, expires_at=spec.expires_at
        )
        self.config.put_key(key, self._event(change))
        self.raised[spec.budget] += 1
        self.secrets[spec.name] = secret

    def _update(self, key: Key, spec: KeySpec, change: Change) -> None:
        self.config.put_key(
            replace(key, budget=spec.budget, models=spec.models, expires_at=spec.expires_at),
            self._event(change),
            known=key,
        )
        # Of both budgets where the key moves, in that one transaction.
        self.raised.update({spec.budget, key.budget})

    def _revoke(self, key: Key, change: Change) -> None:
        self.config.revoke_key(key, self.clock(), self._event(change))
        self.raised[key.budget] += 1

    def _event(self, change: Change, *, subject: str | None = None) -> Event:
        return Event(
            kind=f"{change.kind}_{_PAST[change.action]}" if change.kind != "price" else "price_added",
            subject=subject or (change.name if change.kind == "budget" else f"{change.kind}:{change.name}"),
            at=self.clock(),
            by=self.by,
            reason=change.note,
            before=change.before,
            after=change.after,
        )


_PAST: Mapping[str, str] = {"create": "created", "update": "updated", "revoke": "revoked", "delete": "deleted"}
