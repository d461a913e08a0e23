"""What an answer of the admin API is made of: budgets, prices, reservations and the rest, as types that say what may stand there.

``admin_view.py`` writes these. They are here and not there since a gateway, which shows budgets too, does without what turns
types into a document. Every answer in the tests is held to them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config

# Of this one since pydantic reads no other before Python 3.12.
from typing_extensions import TypedDict

from spendgate.core.alert import Kind as AlertKind
from spendgate.core.alert import Severity
from spendgate.core.budget import Mode
from spendgate.core.reservation import State
from spendgate.core.window import Measure, Window

_NUMBER = r"(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$"

Money = Annotated[str, Field(pattern=f"^{_NUMBER}", description="Exact, in USD.", examples=["0.0002825"])]
Factor = Annotated[str, Field(pattern=f"^{_NUMBER}", description="Exact.")]
Amount = Annotated[
    str, Field(pattern=f"^{_NUMBER}", description="Exact: of usd in USD, of every other measure a whole number.")
]
Signed = Annotated[
    str, Field(pattern=f"^-?{_NUMBER}", description="As an amount; a wrong counter may be below nothing.")
]
Count = Annotated[int, Field(ge=0)]
Instant = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z$",
        description="In UTC.",
        json_schema_extra={"format": "date-time"},
    ),
]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"})]
Span = Annotated[str, Field(pattern=r"^[0-9]+[hms]$", description="Hours, minutes or seconds.", examples=["24h"])]
ReservationId = Annotated[str, Field(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")]
Limits = dict[Measure, dict[Window, Amount]]

# What is not named is no part of an answer, and nothing is turned into what it should be.
closed = with_config(ConfigDict(extra="forbid", strict=True))


# --- budgets


@closed
class Stop(TypedDict):
    reason: str
    at: Instant
    by: str
    reservation: ReservationId | None


@closed
class Temporary(TypedDict):
    limits: Limits
    until: Instant
    at: Instant
    by: str
    reason: str


@closed
class Committed(TypedDict):
    day: Money
    month: Money
    life: Money


@closed
class RequestWindow(TypedDict):
    measure: Measure
    window: Literal["request"]
    maximum: Amount


@closed
class LimitWindow(TypedDict):
    measure: Measure
    window: Literal["minute", "hour", "day", "month", "life"]
    maximum: Amount
    committed: Amount
    settled: Amount
    reserved: Amount
    unknown: Amount
    free: Amount
    resets_at: Instant | None


@closed
class Runs(TypedDict, total=False):
    limits: Limits
    expire_after: Span
    elapsed_max: Span
    active_max: Span
    stop_on_unknown: bool
    stop_on_refusal: bool
    delegate: Count


@closed
class WarnAt(TypedDict):
    warn_at: list[int]


@closed
class Policy(TypedDict, total=False):
    """As in the configuration; what is left out is the default."""

    limits: Limits
    mode: Mode
    unbudgeted: bool
    failover: bool
    stop_on_unknown: bool
    allow: dict[str, Count]
    default_output_tokens: Count
    alerts: WarnAt
    runs: Runs


@closed
class Elapsed(TypedDict):
    maximum: Span
    started_at: Instant | None
    ends_at: Instant | None


@closed
class _Running(TypedDict, total=False):
    elapsed: Elapsed


@closed
class Budget(_Running):
    path: str
    rev: Count
    mode: Mode
    unbudgeted: bool
    stop: Stop | None
    expires_at: Instant | None
    reserved: Money
    unknown: Money
    committed: Committed
    windows: list[RequestWindow | LimitWindow]
    temporary: Temporary | None
    policy: Policy


# --- reservations and what they showed


@closed
class _Active(TypedDict, total=False):
    active_milliseconds: Amount


@closed
class Amounts(_Active):
    usd: Money
    requests: Amount
    tokens: Amount
    tool_calls: Amount


@closed
class Usage(TypedDict, total=False):
    """Tokens in disjoint buckets, and units of fees; those that are not empty."""

    input_uncached: Count
    cache_read: Count
    cache_write: Count
    cache_write_long: Count
    output: Count
    audio_input: Count
    audio_output: Count
    image_input: Count
    image_output: Count
    fees: dict[str, Count]


@closed
class Reservation(TypedDict):
    id: ReservationId
    state: State
    budget: str
    budgets: list[str]
    key: str
    route: str
    dialect: str
    provider: str | None
    model: str | None
    response_model: str | None
    response_id: str | None
    reserved: Amounts
    actual: Amounts | None
    usage: Usage | None
    output_cap: Count
    output_cap_stamped: bool
    input_tokens_max: Count
    prices: list[str]
    unpriced: bool
    fingerprint: str
    idempotency_key: str | None
    created_at: Instant
    deadline: Instant
    resolved_at: Instant | None
    reason: str | None
    evidence: str | None
    by: str | None


@closed
class Block(TypedDict):
    provider: str
    model: str
    feature: str
    at: Instant
    reservation: ReservationId
    budget: str
    dialect: str
    reserved: Money
    billed: Money
    features: list[str]
    stream: bool
    tools: Count
    choices: Count
    violations: Count


@closed
class Alert(TypedDict):
    kind: AlertKind
    scope: str
    severity: Severity
    at: Instant
    subject: str


@closed
class Event(TypedDict):
    """One change: ``before`` and ``after`` are what was and what is, in the shapes above, as far as it changed."""

    at: Instant
    by: str
    kind: Annotated[str, Field(pattern="^[a-z_]+$")]
    subject: str
    reason: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
