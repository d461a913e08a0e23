"""What a gateway tells people of: refusals, which leave nothing in the ledger, and a provider's own refusal of the account.

It posts an alert to the outbox that the alerts function publishes, once for each thing; a call never fails for it, and a call
that is admitted never comes here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from spendgate.admission import Lifetime, Reach
from spendgate.core.alert import Alert, exceeded, unpriced
from spendgate.core.policy import Denied
from spendgate.core.price import rows_touching
from spendgate.core.route import Route
from spendgate.directory import Offload
from spendgate.errors import LedgerUnavailable
from spendgate.store.alerts import AlertStore
from spendgate.store.ledger import Ledger

# A refusal waits so long for its alert to be written, since a function may be frozen once it has answered.
TELL_SECONDS_MAX: Final = 0.5
# Names of budgets, windows and days; far more than one process meets in its life.
_POSTED_MAX: Final = 10_000


class Outbox:
    """Posts alerts, and remembers which: what is refused a hundred times costs one write."""

    def __init__(self, ledger: Ledger, offload: Offload, say: Callable[..., None]) -> None:
        self._store = AlertStore(ledger.table, ledger.client, ledger.timing)
        self._offload = offload
        self._say = say
        self._posted: dict[str, datetime | None] = {}

    async def tell(self, *alerts: Alert | None) -> None:
        """Post what was not posted; what takes longer than a moment goes on behind the answer."""
        new = [one for one in alerts if one is not None and not self._knows(one)]
        if new:
            work = asyncio.ensure_future(self._offload(lambda: self._post(new)))
            await asyncio.wait({work}, timeout=TELL_SECONDS_MAX)

    async def refused(self, denials: Iterable[Denied], now: datetime) -> None:
        """Tell that limits are used up, where they are."""
        await self.tell(*(exceeded(one, now) for one in denials))

    async def unpriced(self, path: str, route: Route, reached: Sequence[Reach], life: Lifetime) -> None:
        """Tell which candidate of a route has no price."""
        candidates = zip(route.candidates, reached, strict=True)
        bare = (one for one, reach in candidates if not rows_touching(reach.rows, life.now, life.now + life.call))
        await self.tell(*(unpriced(path, route=route.name, candidate=one, now=life.now) for one in bare))

    def _knows(self, one: Alert) -> bool:
        if one.name not in self._posted:
            return False
        rearms_at = self._posted[one.name]
        return rearms_at is None or rearms_at > one.at

    def _post(self, alerts: Sequence[Alert]) -> None:
        if len(self._posted) >= _POSTED_MAX:
            self._posted.clear()
        for one in alerts:
            try:
                self._store.post(one)
            except LedgerUnavailable as error:
                # Not remembered: the next refusal tries again.
                self._say("an alert could not be posted", kind=one.kind, scope=one.scope, error=str(error))
            else:
                self._posted[one.name] = one.rearms_at
