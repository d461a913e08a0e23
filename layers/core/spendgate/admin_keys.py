"""The keys that agents call with: to see, to make and to revoke. A secret is in the answer that made it, and nowhere else."""

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from spendgate.admin_budget import named_budget
from spendgate.admin_configuration_view import key_policy_view, key_view
from spendgate.admin_input import invalid
from spendgate.admin_view import instant_text
from spendgate.core.budget import is_run
from spendgate.core.event import Event
from spendgate.core.key import KEY_BYTES, Key, hash_secret, new_secret
from spendgate.errors import NotFound, RequestConflict
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger

KEY_MODELS_MAX: Final = 64
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Keys:
    """The operators' use cases over keys."""

    ledger: Ledger
    config: Config
    _: KW_ONLY
    clock: Callable[[], datetime]
    randomness: Callable[[int], bytes]

    def list(self) -> dict[str, Any]:
        """Return all keys, by name; never a secret."""
        now = self.clock()
        keys = sorted(
            self.config.keys(), key=lambda key: (key.name, key.revoked_at or datetime.max.replace(tzinfo=UTC))
        )
        return {"keys": [key_view(key, now) for key in keys]}

    def create(
        self, name: str, *, budget: str, models: Sequence[str] = (), expires_at: datetime | None = None, by: str
    ) -> dict[str, Any]:
        """Make a key; its secret is in the answer, and nowhere else."""
        if _NAME.fullmatch(name) is None:
            raise invalid("name", "small letters, digits, '.', '_' and '-', 1 to 64, the first a letter or digit")
        now = self.clock()
        if expires_at is not None and expires_at <= now:
            raise invalid("expires_at", f"must lie in the future; it is {instant_text(now)} now")
        if is_run(budget):
            raise invalid("budget", "a key belongs to a budget, not to a run")
        named_budget(self.ledger, budget)
        self._check_models(models)
        if any(key.revoked_at is None for key in self._named(name)):
            raise RequestConflict(f"there is a key {name} already: revoke it first, or take another name")
        secret = new_secret(self.randomness(KEY_BYTES))
        key = Key(
            hash=hash_secret(secret),
            name=name,
            budget=budget,
            models=tuple(dict.fromkeys(models)),
            expires_at=expires_at,
        )
        after = key_policy_view(budget=key.budget, models=key.models, expires_at=key.expires_at)
        self.config.put_key(key, Event(kind="key_created", subject=f"key:{name}", at=self.clock(), by=by, after=after))
        return {"key": key_view(key, now), "secret": secret}

    def revoke(self, name: str, *, by: str) -> dict[str, Any]:
        """Revoke a key, from the next call on; again is a no-op."""
        keys = self._named(name)
        if not keys:
            raise NotFound(f"there is no key {name}")
        now = self.clock()
        for key in keys:
            if key.revoked_at is None:
                before = key_policy_view(budget=key.budget, models=key.models, expires_at=key.expires_at)
                event = Event(kind="key_revoked", subject=f"key:{name}", at=self.clock(), by=by, before=before)
                self.config.revoke_key(key, now, event)
        return {"keys": [key_view(key, now) for key in self._named(name)]}

    def _named(self, name: str) -> tuple[Key, ...]:
        keys = self.config.keys()
        return tuple(key for key in keys if key.name == name)

    def _check_models(self, models: Sequence[str]) -> None:
        routes = sorted(route.name for route in self.config.routes())
        if len(models) > KEY_MODELS_MAX:
            raise invalid("models", f"at most {KEY_MODELS_MAX}")
        for model in models:
            if model not in routes:
                raise invalid("models", f"there is no route {model!r}; routes: {', '.join(routes) or 'none'}")
