"""The driver of Spendgate: a ``spendgate local`` of its own, or one that runs already.

All cases go through one gateway, each with a provider, routes, prices, budgets and keys of its own name.
"""

import functools
import json
import re
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx

from spendgate import __version__
from spendgate.core.money import Picodollars, usd, usd_text
from spendgate.errors import LocalStoreFailed
from spendgate.local import ministack
from spendgate.local.conformance.child import Child, accepts
from spendgate.local.conformance.driver import Books, Caller, Cannot, Held, Limited, Session, Setup
from spendgate.local.paths import LOCAL_FILE

# Before any case: a gateway needs something to serve, and this can spend nothing.
_NOTHING: Final = "version: 1\nbudgets:\n  conformance: {limits: {usd: {life: 0}}}\n"
_OPEN: Final = ("in_flight", "unknown")
_LISTED_MAX: Final = 1000
_STARTS_MAX: Final = 3
# How a run names what it makes.
_OWN_NAME: Final = re.compile(r"c[0-9a-f]{6}-[0-9]+(?:-.*)?\Z")


class Spendgate:
    """A gateway in processes of its own, on the emulated DynamoDB; or, with ``url`` and ``token``, one that runs."""

    name = "spendgate"

    def __init__(self, *, url: str | None = None, token: str | None = None, call_seconds: int = 20) -> None:
        self._target = None if url is None else (url.rstrip("/"), token or "")
        self._call_seconds = call_seconds
        self._stack = ExitStack()
        self._own: _Own | None = None
        self._cases = 0
        # Apart from the cases of an earlier run against the same gateway.
        self._run = secrets.token_hex(3)

    def version(self) -> str:
        """Return the version of this package; of a target it is what the operator says it is."""
        return __version__

    def command(self) -> str:
        """Return how the gateway is started."""
        return "spendgate local --config spendgate.yaml" if self._target is None else f"(runs at {self._target[0]})"

    def close(self) -> None:
        """End the gateway's processes, where they are this driver's."""
        self._stack.close()
        self._own = None

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        """Apply a configuration of the case's own names; the gateway stays for the next case."""
        self._cases += 1
        name = f"c{self._run}-{self._cases}"
        where = self._started() if self._target is None else _Target(*self._target)
        secret_of = {f"{name}-{number}": f"sg-{secrets.token_hex(20)}" for number in range(max(1, len(setup.shares)))}
        where.configure(configuration(name, setup, secret_of))
        session = SpendgateSession(where, name, setup, secret_of)
        yield session

    def _started(self) -> "_Own":
        if self._own is None:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-spendgate-")))
            own = _Own(folder, self._call_seconds)
            self._stack.callback(own.end)
            own.start()
            self._own = own
        return self._own


class _Admin:
    """The admin API of a running gateway."""

    url: str
    token: str

    def get(self, path: str, /, **query: str | int) -> dict[str, Any]:
        """Return an answer; Cannot where there is none."""
        return self._read(self._http.get(f"{self.url}/admin{path}", params=query, headers=self._headers()))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a change; Cannot where it is refused."""
        document = self._read(self._http.post(f"{self.url}/admin{path}", json=body, headers=self._headers()))
        if not document.get("complete", True):
            raise Cannot(f"the configuration was applied in part only: {document.get('failure')}")
        return document

    def configure(self, text: str) -> None:
        """Apply a file."""
        self.post("/apply", {"file": text})

    @functools.cached_property
    def _http(self) -> httpx.Client:
        return httpx.Client(trust_env=False, timeout=60)

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}", "x-spendgate-operator": "conformance"}

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        if not answer.is_success:
            raise Cannot(f"the admin API answered {answer.status_code}: {answer.text[:300]}")
        document: dict[str, Any] = answer.json()
        return document

    def restart(self, *, kill: bool) -> None:
        raise Cannot(f"it runs elsewhere and cannot be {'killed' if kill else 'restarted'} from here")

    def advance(self, seconds: int) -> None:  # noqa: ARG002 - the protocol's
        raise Cannot("it runs elsewhere and its clock cannot be moved from here")

    @property
    def pids(self) -> tuple[int, ...]:
        return ()


class _Target(_Admin):
    """A gateway that somebody else runs."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def configure(self, text: str) -> None:
        """Apply a file, unless that would take away what is not the suite's own."""
        changes = self.post("/plan", {"file": text})["changes"]
        others = sorted(
            f"{one['kind']} {one['name']}"
            for one in changes
            if one["action"] in {"revoke", "delete"} and _OWN_NAME.match(one["name"]) is None
        )
        if others:
            raise Cannot(f"the suite wants a gateway of its own: its file would take away {', '.join(others[:5])}")
        super().configure(text)


class _Own(_Admin):
    """A ``spendgate local`` of this driver's own."""

    def __init__(self, folder: Path, call_seconds: int) -> None:
        self._state = folder / "state"
        self._file = folder / "spendgate.yaml"
        self._file.write_text(_NOTHING, encoding="utf-8")
        self._clock = folder / "clock"
        self._clock.write_text("0")
        program = "spendgate.local.conformance.on_a_clock"
        self._child = Child(
            [sys.executable, "-m", program, str(self._state), str(self._file), str(self._clock)],
            folder,
            {
                # This package, wherever it was found from.
                "PYTHONPATH": str(Path(__file__).parents[3]),
                "SPENDGATE_CALL_SECONDS_MAX": str(call_seconds),
                "SPENDGATE_DEADLINE_GRACE_SECONDS": "2",
                # The suite's provider is frozen or killed at times: an old connection says nothing about the gateway.
                "SPENDGATE_IDLE_SECONDS_MAX": "0",
            },
        )

    @property
    def pids(self) -> tuple[int, ...]:
        return (self._child.pid,)

    def configure(self, text: str) -> None:
        """Apply a file, also when the gateway is started again."""
        super().configure(text)
        self._file.write_text(text, encoding="utf-8")

    def start(self) -> None:
        """Start it, and find it; a busy machine may need more than one try."""
        for _ in range(_STARTS_MAX - 1):
            with suppress(Cannot):
                return self._child.start(self._found)
        return self._child.start(self._found)

    def restart(self, *, kill: bool) -> None:
        self._child.end(signal.SIGKILL if kill else signal.SIGTERM)
        self.start()

    def advance(self, seconds: int) -> None:
        moved = self._clock.with_suffix(".new")
        moved.write_text(str(int(self._clock.read_text()) + seconds))
        moved.replace(self._clock)

    def end(self) -> None:
        """End the gateway, and a store that a killed one has left."""
        self._child.end()
        if (self._state / "ministack.json").exists():
            with suppress(LocalStoreFailed):
                ministack.start(self._state, persist=False, environ={}).kill()

    def _found(self) -> bool:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            document = json.loads((self._state / LOCAL_FILE).read_text())
            if document["pid"] == self._child.pid:
                self.url, self.token = document["url"], document["admin_token"]
                return accepts(httpx.URL(self.url).port or 80)
        return False


class SpendgateSession(Limited):
    """One case's budgets in a running gateway."""

    def __init__(self, where: _Admin, name: str, setup: Setup, secret_of: Mapping[str, str]) -> None:
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


def configuration(name: str, setup: Setup, secret_of: Mapping[str, str]) -> str:
    """Return the file of a case: everything in it has the case's name."""
    base = f"{setup.provider_url}/v1" if setup.dialect == "openai" else setup.provider_url
    served = (*(model.name for model in setup.models), *setup.unpriced)
    budgets: dict[str, Any] = {name: _budget(setup)}
    budgets |= {f"{name}/share-{at}": {"limits": {"usd": {"life": _text(one)}}} for at, one in enumerate(setup.shares)}
    leaves = [f"{name}/share-{at}" for at in range(len(setup.shares))] or [name]
    document = {
        "version": 1,
        "providers": {
            name: {
                "dialect": setup.dialect,
                "base_url": base,
                # What the suite's provider documents that it adds to a request: four tokens a message.
                "framing": {"request": 0, "tooling": 0, "tool": 0, "part": 8, "output_overshoot": 0},
            }
        },
        "prices": [
            {
                "provider": name,
                "model": model.name,
                "input": _text(Picodollars(model.input * 1_000_000)),
                "output": _text(Picodollars(model.output * 1_000_000)),
                "cache_write": _text(Picodollars(model.cache_write * 1_000_000)),
                "context_tokens": 128_000,
                "output_tokens_max": 4096,
            }
            for model in setup.models
        ],
        "routes": {f"{name}-{one}": [{"provider": name, "model": one}] for one in served},
        "budgets": budgets,
        "keys": {
            key: {"budget": leaf, "secret": secret}
            for (key, secret), leaf in zip(secret_of.items(), leaves, strict=True)
        },
    }
    # A subset of YAML, and exact about what is a string.
    return json.dumps(document, indent=1)


def _budget(setup: Setup) -> dict[str, Any]:
    limits: dict[str, Any] = {"usd": {"life": _text(setup.limit)}}
    if setup.daily is not None:
        limits["usd"]["day"] = _text(setup.daily)
    if setup.requests_a_minute is not None:
        limits["requests"] = {"minute": setup.requests_a_minute}
    budget: dict[str, Any] = {"limits": limits}
    if setup.runs is not None:
        budget["runs"] = {"limits": {"usd": {"life": _text(setup.runs)}}, "expire_after": "24h"}
    return budget


def _text(amount: int) -> str:
    return usd_text(amount)
