"""What passes between the parts of the gateway: a call, its admission, the reply; and what they are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from spendgate.core.reservation import Reservation, Resolution
from spendgate.core.route import Candidate, Provider
from spendgate.dialects.dialect import Dialect, Request
from spendgate.directory import Directory, Offload
from spendgate.outbox import Outbox
from spendgate.providers.attempt import Outbound, Pool
from spendgate.relay import Relay
from spendgate.settings import Settings
from spendgate.store.ledger import Ledger


class Fallback(Protocol):
    """Takes a settlement that the ledger did not take in time; the money stays held until it is settled."""

    def defer(self, reservation: Reservation, resolution: Resolution) -> None:
        """Keep a resolution for later, in another failure domain where there is one."""
        ...


class Log(Protocol):
    """What the gateway logs with."""

    def info(self, message: str, /, **fields: Any) -> None:
        """Log what happened."""
        ...

    def exception(self, message: str, /, **fields: Any) -> None:
        """Log the exception that is being handled."""
        ...


class Metrics(Protocol):
    """What the gateway counts with; names and units are in ``observability.UNITS``."""

    def add(self, values: Mapping[str, int | str], /, **dimensions: str) -> None:
        """Count values, by service and again by ``dimensions``."""
        ...


class _NoMetrics:
    def add(self, values: Mapping[str, int | str], /, **dimensions: str) -> None:
        """Count nothing."""


NO_METRICS: Final[Metrics] = _NoMetrics()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call as it came in. ``deadline`` is the platform's, if it told one; ``arrived`` a ``perf_counter`` of the door."""

    dialect: Dialect
    raw: bytes
    headers: Mapping[str, str]
    query: str
    secret: str | None = field(repr=False)
    path: Mapping[str, str] = field(default_factory=dict)
    run: str | None = None
    idempotency_key: str | None = None
    deadline: datetime | None = None
    request_id: str = ""
    arrived: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer to the caller: a whole ``body``, or ``pieces`` as they come."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    pieces: Relay | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A call whose reservation is committed: what may be tried, in order, and until when."""

    call: Call
    request: Request
    reservation: Reservation
    candidates: tuple[tuple[Candidate, Provider], ...]
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the gateway is made of; time and randomness among it."""

    directory: Directory
    ledger: Ledger
    pool: Pool
    secret: Callable[[str], Awaitable[str]]
    fallback: Fallback
    settings: Settings
    clock: Callable[[], datetime]
    randomness: Callable[[int], bytes]
    offload: Offload
    log: Log
    sign: Callable[[Outbound], tuple[tuple[str, str], ...]]
    # None: nobody is told of refusals.
    outbox: Outbox | None = None
    metrics: Metrics = NO_METRICS
