"""What operators changed, and keys of runs, read back day by day."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from spendgate.core.event import Event
from spendgate.store.ledger import Ledger

EVENT_DAYS_MAX: Final = 92


def trail(ledger: Ledger, now: datetime, whose: Sequence[bool] = (False,)) -> Iterator[Event]:
    """Yield events of operators, or of keys (True), or of both, the newest first."""
    for days in range(EVENT_DAYS_MAX):
        day = f"{now - timedelta(days=days):%Y-%m-%d}"
        of_day = [event for keys in whose for event in ledger.events(day, keys=keys)]
        yield from sorted(of_day, key=lambda event: event.at, reverse=True)
