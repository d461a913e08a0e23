"""The driver of Spendgate: a ``spendgate local`` of its own, or one that runs already.

All cases go through one gateway, each with a provider, routes, prices, budgets and keys of its own name.
"""

import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from spendgate import __version__
from spendgate.core.money import usd
from spendgate.local.conformance.driver import Books, Caller, Held, Limited, Session, Setup
from spendgate.local.conformance.spendgate_file import configuration
from spendgate.local.conformance.spendgate_places import Admin, Own, Target

_OPEN: Final = ("in_flight", "unknown")
_LISTED_MAX: Final = 1000


class Spendgate:
    """A gateway in processes of its own, on the emulated DynamoDB; or, with ``url`` and ``token``, one that runs."""

    name = "spendgate"

    def __init__(self, *, url: str | None = None, token: str | None = None, call_seconds: int = 20) -> None:
        self._target = None if url is None else Target(url.rstrip("/"), token or "")
        self._call_seconds = call_seconds
        self._stack = ExitStack()
        self._own: Own | None = None
        self._cases = 0
        # Apart from the cases of an earlier run against the same gateway.
        self._run = secrets.token_hex(3)

    def version(self) -> str:
        """Return the version of this package; a target does not tell its own. Cannot where that cannot be played."""
        if self._target is None:
            return __version__
        self._target.claim()
        return "a target's"

    def command(self) -> str:
        """Return how the gateway is started."""
        return "spendgate local --config spendgate.yaml" if self._target is None else f"(runs at {self._target.url})"

    def close(self) -> None:
        """End the gateway's processes, where they are this driver's; leave a target as it was found."""
        if self._target is not None:
            self._target.leave()
        self._stack.close()
        self._own = None

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        """Apply a configuration of the case's own names; the gateway stays for the next case."""
        self._cases += 1
        name = f"c{self._run}-{self._cases}"
        where = self._target or self._started()
        secret_of = {f"{name}-{number}": f"sg-{secrets.token_hex(20)}" for number in range(max(1, len(setup.shares)))}
        where.configure(configuration(name, setup, secret_of))
        session = SpendgateSession(where, name, setup, secret_of)
        yield session

    def _started(self) -> "Own":
        if self._own is None:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-spendgate-")))
            own = Own(folder, self._call_seconds)
            self._stack.callback(own.end)
            own.start()
            self._own = own
        return self._own


class SpendgateSession(Limited):
    """One case's budgets in a running gateway."""

    def __init__(self, where: Admin, name: str, setup: Setup, secret_of: Mapping[str, str]) -> None:
        self._where = where
        self._name = name
        self._key_names = {secret: key for key, secret in secret_of.items()}
        self.callers = tuple(Caller(key=secret) for secret in secret_of.values())
        self.asked = {one: f"{name}-{one}" for one in (*(model.name for model in setup.models), *setup.unpriced)}

    @property
    def url(self) -> str:
        return self._where.url

    @property
    def pids(self) -> tuple[int, ...]:
        return self._where.pids

    def books(self) -> Books:
        budget = next(
            one for one in self._where.get("/budgets", path=self._name)["budgets"] if one["path"] == self._name
        )
        records = tuple(
            Held(amount=usd(one["reserved"]["usd"]), why=one["reason"] or f"{state} until {one['deadline']}")
            for state in _OPEN
            for one in self._where.get("/reservations", budget=self._name, state=state, limit=_LISTED_MAX)[
                "reservations"
            ]
        )
        return Books(booked=usd(budget["committed"]["life"]), held=usd(budget["reserved"]), records=records)

    def restart(self, *, kill: bool) -> None:
        self._where.restart(kill=kill)

    def revoke(self, caller: Caller) -> None:
        self._where.post(f"/keys/{self._key_names[caller.key]}/revoke", {})

    def advance(self, seconds: int) -> None:
        self._where.advance(seconds)

    def run(self, name: str) -> Mapping[str, str]:
        return {"x-spendgate-run": name}
