"""Settlements that came to the queue: each is given to the ledger, as often as it takes, and ends once."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from spendgate.calls import Log
from spendgate.core.reservation import Reservation, Resolution
from spendgate.errors import LedgerError, LedgerUnavailable, ReservationMissing
from spendgate.store.ledger import Ledger
from spendgate.store.queue import SettlementQueue, decode

# A release may overtake the reservation that it releases: a store that was away may yet write it. So often it is asked for.
MISSING_RECEIVES_MAX: Final = 3


class QueuedFallback:
    """Defers to the queue; where that takes nothing either the money stays held, and the log says what is missing."""

    def __init__(self, queue: SettlementQueue, log: Log) -> None:
        self._queue = queue
        self._log = log

    def defer(self, reservation: Reservation, resolution: Resolution) -> None:
        """Queue a resolution."""
        facts = {"reservation": reservation.id, "budget": reservation.path, "state": resolution.state}
        try:
            self._queue.send(reservation, resolution)
        except LedgerUnavailable as error:
            actual = None if resolution.actual is None else resolution.actual.usd
            self._log.info("settlement lost, the money stays held", **facts, actual=actual, error=str(error))
        else:
            self._log.info("settlement deferred", **facts)


def settle_message(ledger: Ledger, body: str, receives: int | str, *, now: datetime, log: Log) -> None:
    """Give one message's resolution to the ledger. Raises what should bring the message again.

    LedgerUnavailable: the ledger is still away. ReservationMissing: it may yet be written. ValueError: not a settlement;
    after some receipts the queue sets it aside, and the alarm on its dead letters tells people.
    """
    reservation_id, resolution = decode(body)
    try:
        ledger.resolve(reservation_id, resolution, now)
    except LedgerUnavailable:
        raise
    except ReservationMissing:
        if resolution.state != "released" or int(receives) < MISSING_RECEIVES_MAX:
            raise
        log.info("a deferred release found no reservation", reservation=reservation_id)
    except LedgerError as error:
        # It was resolved otherwise in the meantime; a conflict has stopped the budget, which is what people then see.
        log.info("a deferred settlement is refused", reservation=reservation_id, error=str(error))
