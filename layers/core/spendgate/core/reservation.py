"""The record of one call and of the money held for it: its states, and which changes of state are legal."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from spendgate.core.block import PLAIN, Shape
from spendgate.core.bound import Quote
from spendgate.core.budget import Amounts
from spendgate.core.counters import Hold
from spendgate.core.usage import Usage

State = Literal["in_flight", "unknown", "settled", "released", "charged"]
STATES: Final[tuple[State, ...]] = get_args(State)
UNRESOLVED: Final[tuple[State, ...]] = ("in_flight", "unknown")

# From each state, the states that may follow. What is resolved stays resolved; time alone leads nowhere but to unknown.
LEGAL: Final[dict[State, tuple[State, ...]]] = {
    "in_flight": ("unknown", "settled", "released", "charged"),
    "unknown": ("settled", "released", "charged"),
    "settled": (),
    "released": (),
    "charged": (),
}

IDEMPOTENCY_KEY_LENGTH_MAX: Final = 256

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation. ``asked`` is what is held, ``actual`` what it came to once it is resolved.

    ``path`` is the leaf budget, ``holds`` one entry a budget of the path from the root down. ``deadline`` is the
    instant after which a call that is still in flight has an unknown outcome. ``unpriced`` marks a call of an
    unbudgeted path whose price nobody knows.
    """

    id: str
    state: State
    path: str
    key_name: str
    route: str
    dialect: str
    fingerprint: str
    asked: Amounts
    holds: tuple[Hold, ...]
    quotes: tuple[Quote, ...]
    created_at: datetime
    deadline: datetime
    input_tokens_max: int = 0
    output_tokens_max: int = 0
    output_cap: int = 0
    stamped: bool = False
    unpriced: bool = False
    shape: Shape = PLAIN
    idempotency_key: str | None = None
    stops_on_unknown: tuple[str, ...] = ()
    actual: Amounts | None = None
    usage: Usage | None = None
    provider: str | None = None
    model: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    resolved_at: datetime | None = None
    reason: str | None = None
    evidence: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How a reservation ends, or that its outcome is unknown. ``reason`` says why in a few words.

    ``actual`` and ``usage`` go with ``settled``; ``usage`` with ``unknown`` is a floor of what was seen, never a bill.
    """

    state: State
    reason: str
    actual: Amounts | None = None
    usage: Usage | None = None
    provider: str | None = None
    model: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    evidence: str | None = None
    by: str | None = None


def may_follow(now: State, then: State) -> bool:
    """Tell whether a reservation in state ``now`` may change to ``then``."""
    return then in LEGAL[now]


def new_id(at: datetime, randomness: bytes) -> str:
    """Return a ULID (github.com/ulid/spec): 48 bits of milliseconds and 80 random bits, sorting by time.

    ValueError unless ``randomness`` has ten bytes.
    """
    if len(randomness) != 10:
        raise ValueError("an id takes ten random bytes")
    milliseconds = int(at.timestamp() * 1000)
    number = milliseconds << 80 | int.from_bytes(randomness)
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def is_id(text: str) -> bool:
    """Tell whether a text has the form of a reservation's id."""
    return len(text) == 26 and set(text) <= set(_CROCKFORD)
