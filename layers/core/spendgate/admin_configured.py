"""What an operator configures, as answers of the admin API show it: keys, providers, routes, prices, and a plan's changes to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

# Of this one since pydantic reads no other before Python 3.12.
from typing_extensions import TypedDict

from spendgate.admin_plan import Action
from spendgate.admin_records import Count, Factor, Instant, Money, Policy, closed

# --- keys, providers, routes


@closed
class Key(TypedDict):
    name: str
    id: Annotated[str, Field(pattern="^[0-9a-f]{12}$", description="The start of the secret's SHA-256.")]
    budget: str
    models: list[str]
    expires_at: Instant | None
    revoked_at: Instant | None
    state: Literal["live", "expired", "revoked"]


@closed
class _KeyOptions(TypedDict, total=False):
    models: list[str]
    expires: Instant


@closed
class KeyPolicy(_KeyOptions):
    budget: str


@closed
class Framing(TypedDict):
    request: Count
    tooling: Count
    tool: Count
    part: Count
    output_overshoot: Count


@closed
class _ProviderOptions(TypedDict, total=False):
    secret: Annotated[str, Field(pattern="^(env|secretsmanager):", description="A reference, never the secret itself.")]
    service_tier: str
    geo: str
    speed: str
    residency: str
    prices: str
    kind: str
    api_version: str
    cap_includes_reasoning: bool
    free_fields: list[str]
    free_betas: list[str]
    private_network: bool
    framing: Framing


@closed
class Provider(_ProviderOptions):
    dialect: str
    base_url: str


@closed
class Candidate(TypedDict):
    provider: str
    model: str


@closed
class _RouteOptions(TypedDict, total=False):
    allow: dict[str, Count]


@closed
class Route(_RouteOptions):
    candidates: list[Candidate]


# --- prices


@closed
class _Modalities(TypedDict, total=False):
    audio_input: Money
    audio_output: Money
    image_input: Money
    image_output: Money


@closed
class Rates(_Modalities):
    """In USD per million tokens."""

    input: Money
    cache_read: Money
    cache_write: Money
    cache_write_long: Money
    output: Money


@closed
class Tier(Rates):
    above: Count
    inclusive: bool


@closed
class _Tiers(TypedDict, total=False):
    tiers: list[Tier]


@closed
class RateCard(Rates, _Tiers):
    """The rates of a service tier, and those of long contexts."""


_From = TypedDict("_From", {"from": Instant})


@closed
class _PriceOptions(TypedDict, total=False):
    service: dict[str, RateCard]
    factors: dict[str, Factor]
    fees: dict[str, Money]
    context_tokens: Count
    output_tokens_max: Count
    image_tokens_max: Count
    aliases: list[str]


@closed
class Price(_From, RateCard, _PriceOptions):
    """A price row, in USD per million tokens; it counts from an instant on and never changes."""


# --- what applying a file changes


@closed
class _Change(TypedDict):
    name: str
    action: Action
    note: str | None


@closed
class BudgetChange(_Change):
    kind: Literal["budget"]
    before: Policy | None
    after: Policy | None


@closed
class PriceChange(_Change):
    kind: Literal["price"]
    before: Price | None
    after: Price | None


@closed
class Shipped(TypedDict):
    shipped_prices: Count


@closed
class CatalogueChange(_Change):
    kind: Literal["catalogue"]
    before: None
    after: Shipped | None


@closed
class ProviderChange(_Change):
    kind: Literal["provider"]
    before: Provider | None
    after: Provider | None


@closed
class RouteChange(_Change):
    kind: Literal["route"]
    before: Route | None
    after: Route | None


@closed
class KeyChange(_Change):
    kind: Literal["key"]
    before: KeyPolicy | None
    after: KeyPolicy | None


@closed
class AlertPolicy(TypedDict):
    warn_at: list[int]
    slack: bool


@closed
class AlertsChange(_Change):
    kind: Literal["alerts"]
    before: AlertPolicy | None
    after: AlertPolicy | None


Change = Annotated[
    BudgetChange | PriceChange | CatalogueChange | ProviderChange | RouteChange | KeyChange | AlertsChange,
    Field(discriminator="kind"),
]
