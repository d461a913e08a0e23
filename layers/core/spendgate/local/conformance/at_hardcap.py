"""The driver of hardcap."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import httpx
import yaml

from spendgate.core.money import Picodollars
from spendgate.local.conformance.child import Child, accepts, free_port, running
from spendgate.local.conformance.driver import Books, Caller, Cannot, Session, Setup
from spendgate.local.conformance.peers import PROVIDER_KEY, Peer, PeerSession, a_million

# A window that has no end while a case runs, where a gateway has no limit for good.
_WINDOW_SECONDS: Final = 10 * 366 * 86_400


class Hardcap(Peer):
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
            child = Child([self._program(), "serve", "-c", "config.yaml"], folder, {"PROVIDER_KEY": PROVIDER_KEY})
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
        price = {"input": a_million(rate), "output": a_million(rate)}
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


class _HardcapSession(PeerSession):
    rate: Picodollars

    def books(self) -> Books:
        headers = {"authorization": f"Bearer {self.callers[0].key}"}
        shown = httpx.get(f"{self.url}/v1/hardcap/usage", headers=headers, timeout=10, trust_env=False)
        document = shown.raise_for_status().json()
        used, reserved = (sum(document[name].values()) for name in ("used", "reserved"))
        return Books(booked=Picodollars((used + reserved) * self.rate), held=Picodollars(reserved * self.rate))


def _one_rate(setup: Setup) -> Picodollars:
    rates = {rate for one in setup.models for rate in (one.input, one.output)}
    if len(rates) > 1:
        raise Cannot("its budgets are tokens, so that only models of one rate can share a limit of money")
    return rates.pop()
