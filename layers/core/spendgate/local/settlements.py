"""Settlements that the store did not take in time, kept in memory and tried again while the process lives.

The money stays held meanwhile; should the process end first, the sweeper finds the reservation past its deadline.
"""

import threading
from collections.abc import Callable
from datetime import datetime

from spendgate.calls import Log
from spendgate.core.reservation import Reservation, Resolution
from spendgate.errors import LedgerError, LedgerUnavailable, ReservationMissing
from spendgate.store.ledger import Ledger


class Settlements:
    """A fallback for one process: ``defer`` keeps a resolution, ``drain`` tries all that are kept."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Reservation, Resolution]] = {}
        self._missed: set[str] = set()

    def defer(self, reservation: Reservation, resolution: Resolution) -> None:
        """Keep a resolution for later."""
        with self._lock:
            self._kept[reservation.id] = (reservation, resolution)
        self._log.info(
            "settlement deferred", reservation=reservation.id, budget=reservation.path, state=resolution.state
        )

    def drain(self, ledger: Ledger, clock: Callable[[], datetime]) -> int:
        """Try every kept resolution once; return how many are left."""
        with self._lock:
            kept = tuple(self._kept.values())
        for reservation, resolution in kept:
            try:
                ledger.resolve(reservation.id, resolution, clock(), known=reservation)
            except LedgerUnavailable:
                break
            except ReservationMissing:
                # Never written, so there is nothing to release. A store that was away may yet write it: asked twice.
                if reservation.id not in self._missed:
                    self._missed.add(reservation.id)
                    continue
                self._log.info("a deferred release found no reservation", reservation=reservation.id)
            except LedgerError as error:
                self._log.info("a deferred settlement is refused", reservation=reservation.id, error=str(error))
            self._missed.discard(reservation.id)
            with self._lock:
                self._kept.pop(reservation.id, None)
        with self._lock:
            return len(self._kept)
