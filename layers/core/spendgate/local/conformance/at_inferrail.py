"""The driver of inferrail."""

import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from spendgate.core.money import Picodollars, usd_text
from spendgate.local.conformance.child import Child, free_port, running
from spendgate.local.conformance.driver import Books, Cannot, Held, Session, Setup
from spendgate.local.conformance.peers import (
    MICRODOLLAR,
    PATIENCE_SECONDS,
    PROVIDER_KEY,
    Peer,
    PeerSession,
    callers_by_header,
    picodollars,
)


class Inferrail(Peer):
    """inferrail: USD budgets in SQLite, in block mode; the limit is the gateway's global one of a month."""

    name = "inferrail"
    starts = "inferrail serve --config inferrail.yaml --no-telemetry"

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        """Set the budgets by its command line, then start the gateway."""
        if setup.dialect not in {"openai", "anthropic"}:
            raise Cannot("it answers OpenAI's chat completions and Anthropic's messages only")
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
            environment = {"PROVIDER_KEY": PROVIDER_KEY, "HOME": str(folder), "DO_NOT_TRACK": "1"}
            child = Child(command, folder, environment)
            names = {one.name: one.name for one in setup.models} | {name: name for name in setup.unpriced}
            session = _InferrailSession(child, port, callers_by_header(setup, "X-Inferrail-Attribute-Project"), names)
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
            timeout=PATIENCE_SECONDS,
        )
        if ran.returncode:
            raise Cannot(f"its budget cannot be set: {(ran.stdout + ran.stderr).strip()[-200:]}")

    def _config(self, setup: Setup, *, port: int) -> dict[str, Any]:
        kind = "openai_compatible" if setup.dialect == "openai" else "anthropic_compatible"
        prices = {
            one.name: {
                "input_usd_per_million": usd_text(Picodollars(one.input * 1_000_000)),
                "output_usd_per_million": usd_text(Picodollars(one.output * 1_000_000)),
                "cache_read_usd_per_million": usd_text(Picodollars(one.cache_read * 1_000_000)),
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


class _InferrailSession(PeerSession):
    folder: Path

    def run(self, name: str) -> Mapping[str, str]:
        return {"X-Inferrail-Attribute-Work-Id": name}

    def books(self) -> Books:
        spent = self._column("receipts.db", "SELECT estimated_cost_usd FROM receipts WHERE estimated_cost_usd NOT NULL")
        rows = self._rows("budgets.db", "SELECT amount_usd, state, request_id FROM budget_reservations")
        records = tuple(
            Held(amount=picodollars(amount), why=f"{state} for request {request}") for amount, state, request in rows
        )
        held = Picodollars(sum(one.amount for one in records))
        settled = sum(picodollars(amount) for amount in spent)
        return Books(booked=Picodollars(settled + held), held=held, records=records, resolution=MICRODOLLAR)

    def _column(self, file: str, query: str) -> list[str]:
        return [row[0] for row in self._rows(file, query)]

    def _rows(self, file: str, query: str) -> list[tuple[Any, ...]]:
        path = self.folder / file
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as store:
            return store.execute(query).fetchall()
