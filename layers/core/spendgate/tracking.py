"""What is written down beside a call, never in its way: no byte waits for it, and no call fails because of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from spendgate.calls import Parts
from spendgate.core.reservation import Reservation
from spendgate.core.route import Candidate
from spendgate.dialects.dialect import Meter
from spendgate.errors import LedgerError, LedgerUnavailable

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class ShownId:
    """Keeps the provider's id of a streamed answer as soon as it is shown, for a gateway that does not see the end.

    ``is_wanted`` tells whether the provider can be asked about an answer by its id; else nothing is written.
    """

    def __init__(self, parts: Parts, reservation: Reservation, candidate: Candidate, *, is_wanted: bool) -> None:
        self._parts = parts
        self._reservation = reservation
        self._candidate = candidate
        self._is_wanted = is_wanted

    def look(self, meter: Meter, spawn: Spawn) -> None:
        """Look at what the answer has told so far."""
        if not self._is_wanted:
            return
        response_id = meter.report().response_id
        if response_id is not None:
            self._is_wanted = False
            spawn(self._keep(response_id))

    async def _keep(self, response_id: str) -> None:
        parts, reservation, candidate = self._parts, self._reservation, self._candidate
        try:
            await parts.offload(lambda: parts.ledger.show(reservation, candidate, response_id))
        except (LedgerUnavailable, LedgerError) as error:
            # The settlement writes it again; only a gateway that ends before it leaves the call without.
            parts.log.info("an answer's id was not kept", reservation=reservation.id, error=str(error))
