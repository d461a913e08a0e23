"""An audit of a budget that changes while it is read."""

from dataclasses import dataclass

from spendgate.core.reservation import Reservation
from spendgate.store.audit import audit
from spendgate.store.ledger import Ledger
from tests.store.builders import NOW, UNKNOWN, a_policy, a_reservation, opened


@dataclass(frozen=True, slots=True)
class Restless(Ledger):
    """A ledger in which one call more becomes unknown each time after the counters were read, while there are any."""

    flying: list[Reservation]

    def reservations_of_day(self, path: str, day: str) -> tuple[Reservation, ...]:
        if self.flying and day == f"{NOW:%Y-%m-%d}":
            self.resolve(self.flying.pop().id, UNKNOWN, NOW)
        return Ledger.reservations_of_day(self, path, day)


def test_calls_that_change_one_by_one_while_an_audit_reads_are_no_difference(ledger: Ledger) -> None:
    path = opened(ledger, a_policy("acme"))
    flying = [a_reservation(path) for _ in range(6)]
    for one in flying:
        ledger.reserve(one, path, NOW)
    restless = Restless(ledger.table, ledger.client, ledger.timing, flying)

    # Each reading meets one more unknown call than its counters knew: always off by the same amount.
    assert audit(restless, NOW, pause=lambda: None).differences == ()
    assert flying == []
