"""Asking providers for the sweeper: what became of a call that is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spendgate import admin_reconcile as reconciliation
from spendgate.core.kind import kind_of
from spendgate.core.reservation import Reservation, Resolution
from spendgate.core.route import Provider
from spendgate.errors import LedgerUnavailable

if TYPE_CHECKING:
    # It loads what speaks HTTP, which a sweeper that asks through the gateway needs for an answer only.
    from spendgate.providers.recovery import Recover


@dataclass(slots=True)
class Asking:
    """Asks about reservations, one after the other. Make one for each run: it remembers providers."""

    provider_named: Callable[[str], Provider | None]
    recover: Recover
    by: str
    _known: dict[str, Provider | None] = field(default_factory=dict)

    def can_prove(self, reservation: Reservation) -> bool:
        """Tell whether the provider that served can be asked about this answer."""
        provider = self._provider_of(reservation)
        if provider is None or reservation.response_id is None:
            return False
        return kind_of(provider).look_up(reservation.dialect) is not None

    def ask(self, reservation: Reservation) -> Resolution | None:
        """Return the settlement that the provider's own word proves, None where it proves nothing."""
        provider = self._provider_of(reservation)
        if provider is None:
            return None
        try:
            recovered = self.recover(provider, reservation)
        except LedgerUnavailable:
            # The provider's secret cannot be read here or now, which says nothing of the call.
            return None
        if recovered.report is None:
            return None
        return reconciliation.proven(reservation, recovered.report, said=recovered.said, by=self.by)

    def _provider_of(self, reservation: Reservation) -> Provider | None:
        name = reservation.provider
        if name is None:
            return None
        if name not in self._known:
            self._known[name] = self.provider_named(name)
        return self._known[name]
