"""What the tests of the operators' side share: a clock to turn, a file, and a call that was admitted."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spendgate.core.bound import Quote
from spendgate.core.budget import Amounts, prefixes
from spendgate.core.counters import hold_of
from spendgate.core.money import usd
from spendgate.core.reservation import Reservation, Resolution, new_id
from spendgate.store.ledger import Ledger

FILE = """\
version: 1
providers:
  openai: {dialect: openai, base_url: https://api.openai.com/v1, secret: env:OPENAI_API_KEY}
prices:
  - {provider: openai, model: house-model, from: 2026-01-01, input: "2.50", output: "10", output_tokens_max: 16384}
routes:
  agent-model: [{provider: openai, model: house-model}]
budgets:
  acme: {limits: {usd: {month: 5000, day: 400}}}
  acme/search/triage:
    limits: {usd: {request: "0.50", hour: 5, day: 40}, requests: {minute: 60}}
    default_output_tokens: 8192
    runs: {limits: {usd: {life: 2}}, expire_after: 24h, stop_on_unknown: true}
keys:
  triage-prod: {budget: acme/search/triage, models: [agent-model], expires: 2027-01-01}
"""

LEAF = "acme/search/triage"


@dataclass
class Clock:
    """A clock that a test turns. Each look at it takes a microsecond, so that nothing happens at once."""

    now: datetime = datetime(2026, 11, 30, 2, 14, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)
        return self.now

    def turn(self, **by: float) -> None:
        self.now += timedelta(**by)


def admit(
    ledger: Ledger,
    now: datetime,
    *,
    held: str,
    path: str = LEAF,
    key_name: str = "triage-prod",
    number: int = 0,
    quotes: tuple[Quote, ...] = (),
) -> Reservation:
    """Reserve for one call; ``number`` makes several of one instant different."""
    policies = tuple(state.policy for state in ledger.budgets_on(prefixes(path)))
    reservation = Reservation(
        id=new_id(now, number.to_bytes(10)),
        state="in_flight",
        path=path,
        key_name=key_name,
        route="agent-model",
        dialect="openai",
        fingerprint="f" * 64,
        asked=Amounts(usd=usd(held), requests=1, tokens=1000),
        holds=tuple(hold_of(policy, now) for policy in policies),
        quotes=quotes,
        created_at=now,
        deadline=now + timedelta(minutes=15),
        output_cap=8192,
        stamped=True,
    )
    ledger.reserve(reservation, policies, now)
    return reservation


def settle(ledger: Ledger, reservation: Reservation, now: datetime, *, cost: str) -> None:
    """Settle a call as a gateway does."""
    actual = Amounts(usd=usd(cost), requests=1, tokens=400)
    ledger.resolve(reservation.id, Resolution(state="settled", reason="answered", actual=actual), now)


def lose(ledger: Ledger, reservation: Reservation, now: datetime) -> None:
    """Mark a call as of unknown outcome."""
    ledger.resolve(reservation.id, Resolution(state="unknown", reason="no answer before the deadline"), now)
