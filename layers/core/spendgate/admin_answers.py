"""What each endpoint of the admin API answers, and how each error is told: one definition, from which the document is made.

Where an endpoint answers anything else, a test fails: ``tests/answers.py`` holds every answer of every test to these.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

# Of this one since pydantic reads no other before Python 3.12.
from typing_extensions import TypedDict

from spendgate.admin_configured import Change, Key, Price
from spendgate.admin_records import (
    Alert,
    Block,
    Budget,
    Count,
    Day,
    Event,
    Instant,
    Reservation,
    Signed,
    closed,
)

# --- the configuration file


@closed
class Plan(TypedDict):
    plan_id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    changes: list[Change]
    writes: Annotated[int, Field(ge=0, description="How many of the changes are written.")]
    warnings: list[str]


@closed
class Applied(Plan):
    keys: Annotated[dict[str, str], Field(description="The secrets of new keys by their names, this once.")]
    complete: bool
    failure: Annotated[str | None, Field(description="What ended it early; the keys above are there all the same.")]


# --- budgets, keys, reservations


@closed
class Blocks(TypedDict):
    blocks: list[Block]


@closed
class Budgets(Blocks):
    at: Instant
    budgets: list[Budget]


@closed
class Keys(TypedDict):
    keys: list[Key]


@closed
class NewKey(TypedDict):
    key: Key
    secret: Annotated[str, Field(pattern="^sg-", description="Shown this once.")]


@closed
class Reservations(TypedDict):
    reservations: list[Reservation]


@closed
class _Asked(TypedDict, total=False):
    unproven: Annotated[str | None, Field(description="Of ask: why the provider's record proves nothing.")]


@closed
class Reconciled(_Asked):
    reservation: Reservation
    exceeds_reserved: bool


@closed
class Lifted(TypedDict):
    lifted: Block


# --- prices


@closed
class ShownPrice(TypedDict):
    id: str
    provider: str
    model: str
    state: Literal["in_force", "coming", "past", "not_loaded"]
    origin: Literal["shipped", "changed", "own"]
    routes: list[str]
    price: Price | None
    source: str | None
    checked: Day | None
    shipped: Price | None


@closed
class Prices(TypedDict):
    at: Instant
    prices: list[ShownPrice]


@closed
class AddedPrice(Price):
    """A price row that was added."""

    id: str
    provider: str
    model: str


@closed
class AddedPrices(TypedDict):
    added: list[AddedPrice]
    kept: Annotated[list[str], Field(description="Ids of rows that were there already.")]


@closed
class PricedProvider(TypedDict):
    provider: str
    rows: Count
    models_priced: Count
    oldest_check: Day | None
    newest_check: Day | None
    without_source: Count


@closed
class Unpriced(TypedDict):
    route: str
    provider: str
    model: str
    first: Annotated[Instant | None, Field(description="When it will have a price.")]
    problem: str


@closed
class StalePrice(TypedDict):
    id: str
    checked: Day | None
    fresh_days: Count


@closed
class CheckedPrices(TypedDict):
    clean: bool
    at: Instant
    rows: Count
    providers: list[PricedProvider]
    unpriced: list[Unpriced]
    stale: list[StalePrice]


@closed
class Load(TypedDict):
    at: Instant
    by: str
    subject: str
    rows: Count


@closed
class Catalogue(TypedDict):
    at: Instant
    rows: Count
    shipped: Count
    missing: Count
    changed: Count
    oldest_check: Day | None
    newest_check: Day | None
    stale: Count
    fresh_days: Count
    last_load: Load | None


# --- proof, trail, alerts


@closed
class Difference(TypedDict):
    budget: str
    counter: str
    expected: Signed
    found: Signed


@closed
class Audit(TypedDict):
    clean: bool
    budgets: Count
    reservations: Count
    differences: list[Difference]


@closed
class Events(TypedDict):
    events: list[Event]


@closed
class ToldAlert(Alert):
    told_at: Instant


@closed
class Alerts(TypedDict):
    waiting: list[Alert]
    alerts: list[ToldAlert]


@closed
class TestedAlerts(TypedDict):
    published: Count
    failed: Count


@closed
class Document(TypedDict):
    """An OpenAPI 3.1 document."""

    openapi: str
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    security: list[dict[str, Any]]
    paths: dict[str, Any]
    components: dict[str, Any]


# --- errors


@closed
class Problem(TypedDict):
    place: str
    message: str
    line: int | None


@closed
class _Where(TypedDict, total=False):
    field: str
    problems: list[Problem]


@closed
class Told(_Where):
    code: Annotated[str, Field(description="A stable word.")]
    message: Annotated[str, Field(description="A sentence for a person.")]


@closed
class Error(TypedDict):
    error: Told


class Elsewhere(TypedDict, total=False):
    """What API Gateway itself answers, in its own words."""

    message: str
    Message: str
