"""The driver of governer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spendgate.core.money import Picodollars, usd_text
from spendgate.local.conformance.child import Child, free_port, running
from spendgate.local.conformance.driver import Books, Cannot, Session, Setup
from spendgate.local.conformance.peers import (
    MICRODOLLAR,
    PROVIDER_KEY,
    Peer,
    PeerSession,
    a_million,
    callers_by_header,
    picodollars,
)


class Governer(Peer):
    """governer: one total of USD in a process, and caps of agents by a header; the price list is a file."""

    name = "governer"
    starts = "governer proxy --config governer.json"

    @contextmanager
    def session(self, setup: Setup) -> Iterator[Session]:
        """Write its two files, then start the proxy."""
        if setup.dialect == "gemini":
            raise Cannot(
                "it reads OpenAI's and Anthropic's protocols only: of a Gemini call it sees neither model nor usage"
            )
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
            child = Child([*command, "--key", PROVIDER_KEY], folder, environment)
            names = {one.name: one.name for one in setup.models} | {name: name for name in setup.unpriced}
            session = _GovernerSession(child, port, callers_by_header(setup, "X-Governer-Agent"), names)
            session.folder = folder
            with running(child, session.ready):
                yield session

    def _prices(self, setup: Setup) -> dict[str, Any]:
        rows = {
            one.name: {
                "in": a_million(one.input),
                "out": a_million(one.output),
                "cache_read": a_million(one.cache_read),
                "cache_write": a_million(one.cache_write),
            }
            for one in setup.models
        }
        return {"models": rows}


class _GovernerSession(PeerSession):
    folder: Path

    def books(self) -> Books:
        ledger = self.folder / "ledger.jsonl"
        records = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
        booked = sum(picodollars(repr(one["cost"])) for one in records)
        # What is in flight is in its memory only, and nothing shows it.
        return Books(booked=Picodollars(booked), held=None, resolution=MICRODOLLAR)


def _float(amount: Picodollars) -> float:
    return float(usd_text(amount))
