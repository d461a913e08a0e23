"""Puts the gateway together from its settings; what a composition root needs, and nothing at import."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from spendgate.calls import NO_METRICS, Fallback, Log, Metrics, Parts
from spendgate.core.reservation import Reservation, Resolution
from spendgate.directory import Directory, Offload
from spendgate.gateway import Gateway
from spendgate.outbox import Outbox
from spendgate.providers.attempt import Pool
from spendgate.providers.recovery import Recover, recoverer
from spendgate.providers.signing import Signer
from spendgate.settings import Settings
from spendgate.settlements import QueuedFallback
from spendgate.store.client import dynamodb
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.queue import SettlementQueue, sqs
from spendgate.store.secrets import Secrets, secrets_manager
from spendgate.store.transact import Timing

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """A gateway and the parts that others share with it."""

    gateway: Gateway
    ledger: Ledger
    config: Config
    directory: Directory
    recover: Recover


class Threads:
    """Runs blocking calls of the store on a bounded number of threads."""

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(max_workers=count, thread_name_prefix="store")

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]:
        """Return what ``call`` returns, or raise what it raises."""
        return asyncio.get_running_loop().run_in_executor(self._executor, call)


class LoggedFallback:
    """Says which settlement is missing; the money stays held, and the sweeper will call it unknown."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def defer(self, reservation: Reservation, resolution: Resolution) -> None:
        """Log the resolution that the ledger did not take."""
        self._log.info(
            "settlement deferred",
            reservation=reservation.id,
            budget=reservation.path,
            state=resolution.state,
            actual=None if resolution.actual is None else resolution.actual.usd,
        )


def reader(held: Secrets, offload: Offload) -> Callable[[str], Awaitable[str]]:
    """Return what reads a provider's secret: at once where it is remembered, else off the loop."""

    async def secret(reference: str) -> str:
        known = held.known(reference)
        return await offload(lambda: held.read(reference)) if known is None else known

    return secret


def utc_now() -> datetime:
    """Return the time of the machine."""
    return datetime.now(UTC)


def timing(deadline_seconds: float, on_conflict: Callable[[], None] | None = None) -> Timing:
    """Return the machine's time and randomness for the store."""
    return Timing(
        monotonic=time.monotonic,
        sleep=time.sleep,
        random=random.random,
        randomness=secrets.token_bytes,
        deadline_seconds=deadline_seconds,
        on_conflict=on_conflict,
    )


def stores(settings: Settings, on_conflict: Callable[[], None] | None = None) -> tuple[Ledger, Config]:
    """Return the two tables that the settings name; what every function but the gateway's needs of this module."""
    client = dynamodb(
        region=settings.region, endpoint_url=settings.endpoint_url, connections_max=settings.store_threads
    )
    times = timing(settings.ledger_deadline_seconds, on_conflict)
    ledger = Ledger(settings.ledger_table, client, times)
    return ledger, Config(settings.config_table, settings.ledger_table, client, times)


def _fallback(settings: Settings, log: Log) -> Fallback:
    url = settings.settlement_queue_url
    if url is None:
        return LoggedFallback(log)
    return QueuedFallback(SettlementQueue(url, lambda: sqs(region=settings.region)), log)


def wire(
    settings: Settings,
    *,
    environ: Mapping[str, str],
    log: Log,
    metrics: Metrics = NO_METRICS,
    fallback: Fallback | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Wired:
    """Return a gateway on the tables that the settings name."""
    ledger, config = stores(settings, lambda: metrics.add({"LedgerConflicts": 1}))
    threads = Threads(settings.store_threads)
    directory = Directory(config, clock=clock, offload=threads, seconds=settings.cache_seconds)
    held = Secrets(environ=environ, manager=lambda: secrets_manager(settings.region), clock=clock)
    parts = Parts(
        directory=directory,
        ledger=ledger,
        pool=Pool(clock=clock, connect_seconds=settings.connect_seconds_max, idle_seconds=settings.idle_seconds_max),
        secret=reader(held, threads),
        fallback=fallback or _fallback(settings, log),
        settings=settings,
        clock=clock,
        randomness=secrets.token_bytes,
        offload=threads,
        log=log,
        sign=Signer(region=settings.region).sign,
        outbox=Outbox(ledger, threads, log.info),
        metrics=metrics,
    )
    return Wired(
        gateway=Gateway(parts), ledger=ledger, config=config, directory=directory, recover=recoverer(held.read)
    )
