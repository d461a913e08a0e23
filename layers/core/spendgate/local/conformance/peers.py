"""Drivers of three other gateways, each installed from the package registry into an environment of its own.

``--peers FOLDER`` says where: ``FOLDER/hardcap/bin/hardcap`` and so on. Each is set up as its own documentation says,
in the strictest way that it has; what its settings cannot express is said by ``Cannot``.
"""

import json
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from spendgate.core.money import Picodollars, usd, usd_text
from spendgate.local.conformance.child import Child, accepts, free_port, running
from spendgate.local.conformance.driver import Books, Caller, Cannot, Held, Limited, Session, Setup

MICRODOLLAR: Final = Picodollars(1_000_000)
# A window that has no end while a case runs, where a gateway has no limit for good.
_WINDOW_SECONDS: Final = 10 * 366 * 86_400
# One of their commands may take long to start on a busy machine.
_PATIENCE_SECONDS: Final = 300
_PROVIDER_KEY: Final = "conformance-provider-key"


class _Peer:
    """What the three have in common: an environment with their program, and a folder for a case."""

    name: str
    starts: str

    def __init__(self, peers: Path) -> None:
        self._peers = peers

    def version(self) -> str:
        """Return the installed version; Cannot where it is not installed."""
        python = self._peers / self.name / "bin" / "python"
        if not python.exists():
            raise Cannot(f"it is not installed: {self._peers.name}/{self.name} has no bin/python")
        program = f"import importlib.metadata as m; print(m.version({self.name!r}))"
        ran = subprocess.run(  # noqa: S603 - an environment that the operator named
            [python, "-c", program], capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
        )
        if ran.returncode:
            raise Cannot(f"its environment does not have the package: {ran.stderr.strip()[-200:]}")
        return ran.stdout.strip()

    def command(self) -> str:
        """Return how it is started."""
        return self.starts

    def close(self) -> None:
        """Each case has its own process; nothing is left."""

    def _program(self) -> str:
        return str(self._peers / self.name / "bin" / self.name)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix=f"conformance-{self.name}-") as folder:
            yield Path(folder)


class _PeerSession(Limited):
    """A peer's process, its port, and how it is started again."""

    def __init__(self, child: Child, port: int, callers: tuple[Caller, ...], asked: Mapping[str, str]) -> None:
        self.child = child
        self.url = f"http://127.0.0.1:{port}"
        self.callers = callers
        self.asked = asked
        self._port = port

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.child.pid,)

    def ready(self) -> bool:
        """Tell whether it listens."""
        return accepts(self._port)

    def restart(self, *, kill: bool) -> None:
        self.child.end(signal.SIGKILL if kill else signal.SIGTERM)
        self.child.start(self.ready)


class Hardcap(_Peer):
    """hardcap: token budgets a tenant, in Redis; with max_tokens reserved in full and streams cut at the budget."""

    name = "hardcap"
    starts = "hardcap serve -c config.yaml"

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        """Start a Redis and a gateway whose tenant has the limit as tokens."""
        rate = _one_rate(setup)
        if setup.shares:
            raise Cannot("its budgets are of one tenant each: there is none above two of them")
        if setup.daily is not None:
            raise Cannot("a tenant has one window, and a case needs two")
        if setup.runs is not None:
            raise Cannot("it has no budget of a run")
        if setup.dialect != "openai":
            raise Cannot("it answers OpenAI's chat completions only")
        with self._folder() as folder, ExitStack() as stack:
            redis, port = free_port(), free_port()
            server = Child([self._redis(), "--port", str(redis), "--bind", "127.0.0.1", "--save", ""], folder)
            stack.enter_context(running(server, lambda: accepts(redis)))
            (folder / "config.yaml").write_text(yaml.safe_dump(self._config(setup, rate, redis=redis, port=port)))
            child = Child([self._program(), "serve", "-c", "config.yaml"], folder, {"PROVIDER_KEY": _PROVIDER_KEY})
            names = {one.name: one.name for one in setup.models} | {name: name for name in setup.unpriced}
            session = _HardcapSession(child, port, (Caller(key="sk-conformance-0"),), names)
            session.rate = rate
            stack.enter_context(running(child, session.ready))
            yield session

    def _redis(self) -> str:
        own = self._peers / "redis" / "bin" / "redis-server"
        found = str(own) if own.exists() else shutil.which("redis-server")
        if found is None:
            raise Cannot("it needs a redis-server, and there is none on this machine")
        return found

    def _config(self, setup: Setup, rate: Picodollars, *, redis: int, port: int) -> dict[str, Any]:
        tenant: dict[str, Any] = {
            "api_keys": ["sk-conformance-0"],
            "budget": {"window_s": _WINDOW_SECONDS, "total": setup.limit // rate},
        }
        if setup.requests_a_minute is not None:
            tenant["rate_limit"] = {"requests": setup.requests_a_minute, "per_s": 60.0}
        price = {"input": _a_million(rate), "output": _a_million(rate)}
        return {
            "listen": {"host": "127.0.0.1", "port": port},
            "redis_url": f"redis://127.0.0.1:{redis}/0",
            "budget": {"accounting": "reserve", "estimator": "max_tokens", "on_overrun": "truncate"},
            "upstreams": {
                "provider": {
                    "kind": "openai",
                    "base_url": setup.provider_url,
                    "api_key_env": "PROVIDER_KEY",
                    "read_timeout_s": float(setup.call_seconds),
                }
            },
            "routes": {
                name: {"targets": [{"upstream": "provider", "model": name}]}
                for name in (*(one.name for one in setup.models), *setup.unpriced)
            },
            "pricing": {one.name: price for one in setup.models},
            "tenants": {"conformance": tenant},
        }


class _HardcapSession(_PeerSession):
    rate: Picodollars

    def books(self) -> Books:
        headers = {"authorization": f"Bearer {self.callers[0].key}"}
        shown = httpx.get(f"{self.url}/v1/hardcap/usage", headers=headers, timeout=10, trust_env=False)
        document = shown.raise_for_status().json()
        used, reserved = (sum(document[name].values()) for name in ("used", "reserved"))
        return Books(booked=Picodollars((used + reserved) * self.rate), held=Picodollars(reserved * self.rate))


class Inferrail(_Peer):
    """inferrail: USD budgets in SQLite, in block mode; the limit is the gateway's global one of a month."""

    name = "inferrail"
    starts = "inferrail serve --config inferrail.yaml --no-telemetry"

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        """Set the budgets by its command line, then start the gateway."""
        if setup.requests_a_minute is not None:
            raise Cannot("it limits money only, not requests")
        with self._folder() as folder:
            port = free_port()
            (folder / "inferrail.yaml").write_text(yaml.safe_dump(self._config(setup, port=port)))
            self._budget(folder, "global", None, "monthly", setup.limit)
            if setup.daily is not None:
                self._budget(folder, "global", None, "daily", setup.daily)
            for number, share in enumerate(setup.shares):
                self._budget(folder, "project", f"share-{number}", "monthly", share)
            command = [self._program(), "serve", "--config", "inferrail.yaml", "--no-telemetry"]
            environment = {"PROVIDER_KEY": _PROVIDER_KEY, "HOME": str(folder), "DO_NOT_TRACK": "1"}
            child = Child(command, folder, environment)
            names = {one.name: one.name for one in setup.models} | {name: name for name in setup.unpriced}
            session = _InferrailSession(child, port, _callers_by_header(setup, "X-Inferrail-Attribute-Project"), names)
            session.folder = folder
            with running(child, session.ready):
                yield session

    def _budget(self, folder: Path, scope: str, value: str | None, window: str, limit: Picodollars) -> None:
        arguments = ["--scope", scope, "--window", window, "--mode", "block", "--limit-usd", usd_text(limit)]
        arguments += ["--db", "budgets.db"] + ([] if value is None else ["--scope-value", value])
        ran = subprocess.run(  # noqa: S603 - the peer's own command
            [self._program(), "budget", "set", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )
        if ran.returncode:
            raise Cannot(f"its budget cannot be set: {(ran.stdout + ran.stderr).strip()[-200:]}")

    def _config(self, setup: Setup, *, port: int) -> dict[str, Any]:
        kind = "openai_compatible" if setup.dialect == "openai" else "anthropic_compatible"
        prices = {
            one.name: {
                "input_usd_per_million": usd_text(Picodollars(one.input * 1_000_000)),
                "output_usd_per_million": usd_text(Picodollars(one.output * 1_000_000)),
                "cache_write_5m_usd_per_million": usd_text(Picodollars(one.cache_write * 1_000_000)),
                "source": "the conformance suite's provider",
                "verified_date": "2026-11-30",
            }
            for one in setup.models
        }
        provider = {
            "type": kind,
            "api_key_env": "PROVIDER_KEY",
            "base_url": f"{setup.provider_url}/v1",
            "request_stream_usage": True,
        }
        default = "default_provider" if setup.dialect == "openai" else "default_anthropic_provider"
        return {
            "providers": {"provider": provider},
            "routes": {
                name: {"provider": "provider", "model": name, "timeout_seconds": float(setup.call_seconds)}
                for name in (*(one.name for one in setup.models), *setup.unpriced)
            },
            default: "provider",
            "server": {"host": "127.0.0.1", "port": port},
            "receipts": {"sink": "sqlite", "path": "receipts.db"},
            "budgets": {"enabled": True, "path": "budgets.db"}
            | ({} if setup.runs is None else {"per_work_default_usd": usd_text(setup.runs)}),
            "telemetry": {"sink": "none"},
            "usage_ping": {"enabled": False},
            "pricing": {"provider": prices},
        }


class _InferrailSession(_PeerSession):
    folder: Path

    def run(self, name: str) -> Mapping[str, str]:
        return {"X-Inferrail-Attribute-Work-Id": name}

    def books(self) -> Books:
        spent = self._column("receipts.db", "SELECT estimated_cost_usd FROM receipts WHERE estimated_cost_usd NOT NULL")
        rows = self._rows("budgets.db", "SELECT amount_usd, state, request_id FROM budget_reservations")
        records = tuple(
            Held(amount=_picodollars(amount), why=f"{state} for request {request}") for amount, state, request in rows
        )
        held = Picodollars(sum(one.amount for one in records))
        settled = sum(_picodollars(amount) for amount in spent)
        return Books(booked=Picodollars(settled + held), held=held, records=records, resolution=MICRODOLLAR)

    def _column(self, file: str, query: str) -> list[str]:
        return [row[0] for row in self._rows(file, query)]

    def _rows(self, file: str, query: str) -> list[tuple[Any, ...]]:
        path = self.folder / file
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as store:
            return store.execute(query).fetchall()


class Governer(_Peer):
    """governer: one total of USD in a process, and caps of agents by a header; the price list is a file."""

    name = "governer"
    starts = "governer proxy --config governer.json"

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        """Write its two files, then start the proxy."""
        if setup.requests_a_minute is not None:
            raise Cannot("it limits money only, not requests")
        if setup.daily is not None:
            raise Cannot("its total has no window; only the cap of an agent, which names itself, has a day")
        if setup.runs is not None:
            raise Cannot("it has no budget of a run: its run is the life of the process")
        with self._folder() as folder:
            port = free_port()
            agents = {
                f"share-{number}": {"limit": _float(share), "per": "run"} for number, share in enumerate(setup.shares)
            }
            config = {
                "limit": _float(setup.limit),
                "upstream": f"{setup.provider_url}/v1",
                "ledger": "ledger.jsonl",
                "agents": agents,
            }
            (folder / "governer.json").write_text(json.dumps(config))
            (folder / "prices.json").write_text(json.dumps(self._prices(setup)))
            seconds = str(setup.call_seconds)
            command = [self._program(), "proxy", "--config", "governer.json", "--port", str(port), "--timeout", seconds]
            environment = {
                "GOVERNER_PRICES": str(folder / "prices.json"),
                "GOVERNER_LIVE": str(folder / "none.json"),
                "PYTHONUNBUFFERED": "1",
            }
            child = Child([*command, "--key", _PROVIDER_KEY], folder, environment)
            names = {one.name: one.name for one in setup.models} | {name: name for name in setup.unpriced}
            session = _GovernerSession(child, port, _callers_by_header(setup, "X-Governer-Agent"), names)
            session.folder = folder
            with running(child, session.ready):
                yield session

    def _prices(self, setup: Setup) -> dict[str, Any]:
        rows = {
            one.name: {
                "in": _a_million(one.input),
                "out": _a_million(one.output),
                "cache_write": _a_million(one.cache_write),
            }
            for one in setup.models
        }
        return {"models": rows}


class _GovernerSession(_PeerSession):
    folder: Path

    def books(self) -> Books:
        ledger = self.folder / "ledger.jsonl"
        records = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
        booked = sum(_picodollars(repr(one["cost"])) for one in records)
        # What is in flight is in its memory only, and nothing shows it.
        return Books(booked=Picodollars(booked), held=None, resolution=MICRODOLLAR)


def _one_rate(setup: Setup) -> Picodollars:
    rates = {rate for one in setup.models for rate in (one.input, one.output)}
    if len(rates) > 1:
        raise Cannot("its budgets are tokens, so that only models of one rate can share a limit of money")
    return rates.pop()


def _callers_by_header(setup: Setup, header: str) -> tuple[Caller, ...]:
    if not setup.shares:
        return (Caller(key="conformance-caller"),)
    return tuple(
        Caller(key="conformance-caller", headers={header: f"share-{number}"}) for number in range(len(setup.shares))
    )


def _a_million(rate: Picodollars) -> float:
    """Return a rate as these gateways' files want it."""
    return float(usd_text(Picodollars(rate * 1_000_000)))


def _float(amount: Picodollars) -> float:
    return float(usd_text(amount))


def _picodollars(text: str) -> Picodollars:
    """Read an amount of another's books; what is finer than a picodollar is their rounding."""
    try:
        return usd(format(Decimal(text).quantize(Decimal("1e-12")), "f"))
    except (ValueError, ArithmeticError):
        raise Cannot(f"its books have an amount that is none: {text[:40]}") from None
