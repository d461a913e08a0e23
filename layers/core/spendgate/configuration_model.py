"""The shape of ``spendgate.yaml``: each entry as a pydantic model.

Fields are checked one by one here; what one entry says about another is checked in ``configuration_reader.py``. No message
repeats a value, since any of them may be a secret that was pasted into the wrong line.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from spendgate.configuration_scalars import (
    EPOCH,
    ApiVersion,
    CatalogueName,
    Count,
    DateText,
    Delegation,
    Factor,
    FieldName,
    Instant,
    ModelName,
    Percent,
    Positive,
    Rate,
    Span,
    Text,
    Usd,
    Uses,
    base_url,
)
from spendgate.configuration_sentences import did_you_mean
from spendgate.core.budget import Mode
from spendgate.core.feature import FEATURES
from spendgate.core.key import is_well_formed
from spendgate.core.kind import KINDS
from spendgate.core.price import STANDARD_TIER_NAMES
from spendgate.dialects.registry import FAMILIES

_SECRET_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]{0,255}|secretsmanager:[A-Za-z0-9/_+=.@:-]{1,2048}", re.ASCII)


class Entry(BaseModel):
    """Anything that the file may hold: what is not named is an error."""

    # No field may be null: a null in the file is refused before, so None means "left out" everywhere.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class FramingEntry(Entry):
    request: Count | None = None
    tooling: Count | None = None
    tool: Count | None = None
    part: Count | None = None
    output_overshoot: Count | None = None


class ProviderEntry(Entry):
    dialect: str
    # Before the address, which is judged by it.
    private_network: bool = False
    base_url: str
    secret: str | None = None
    framing: FramingEntry = FramingEntry()
    service_tier: Text | None = None
    geo: Text | None = None
    speed: Text | None = None
    residency: Text | None = None
    prices: CatalogueName | None = None
    kind: str | None = None
    api_version: ApiVersion | None = None
    cap_includes_reasoning: bool | None = None
    free_fields: Annotated[list[FieldName], Field(max_length=64)] = []
    free_betas: Annotated[list[FieldName], Field(max_length=64)] = []

    @field_validator("kind")
    @classmethod
    def _habits(cls, value: str) -> str:
        if value not in KINDS:
            raise ValueError(f"is no kind of provider that is known here{did_you_mean(value, KINDS)}")
        return value

    @field_validator("dialect")
    @classmethod
    def _spoken(cls, value: str) -> str:
        if value not in FAMILIES:
            raise ValueError(f"is no dialect that is spoken here{did_you_mean(value, FAMILIES)}")
        return value

    @field_validator("base_url")
    @classmethod
    def _address(cls, value: str, info: ValidationInfo) -> str:
        local = bool((info.context or {}).get("loopback_http"))
        return base_url(value, loopback_http=local, private_network=info.data.get("private_network", False))

    @field_validator("secret")
    @classmethod
    def _reference(cls, value: str | None) -> str | None:
        # Said to be none is as if it were left out.
        if value is not None and _SECRET_REFERENCE.fullmatch(value) is None:
            raise ValueError("must be a reference, env:NAME or secretsmanager:NAME, never the secret itself")
        return value


class RatesEntry(Entry):
    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    cache_write_long: Rate | None = None
    audio_input: Rate | None = None
    audio_output: Rate | None = None
    image_input: Rate | None = None
    image_output: Rate | None = None


class TierEntry(RatesEntry):
    above: Positive
    inclusive: bool = False


class CardEntry(RatesEntry):
    tiers: list[TierEntry] | None = None

    @field_validator("tiers")
    @classmethod
    def _rising(cls, tiers: list[TierEntry] | None) -> list[TierEntry] | None:
        thresholds = [tier.above for tier in tiers or []]
        if sorted(set(thresholds)) != thresholds:
            raise ValueError("must be in the order of rising `above`, each once")
        return tiers


class FactorsEntry(Entry):
    geo: dict[str, Factor] = {}
    speed: dict[str, Factor] = {}
    residency: dict[str, Factor] = {}


class PriceEntry(CardEntry):
    provider: str
    model: ModelName
    valid_from: Annotated[Instant, Field(alias="from")] = EPOCH
    service: dict[str, CardEntry] = {}
    factors: FactorsEntry = FactorsEntry()
    fees: dict[str, Usd] = {}
    context_tokens: Positive | None = None
    output_tokens_max: Positive | None = None
    image_tokens_max: Positive | None = None
    # One write a name: with its event, a row goes into one transaction.
    aliases: Annotated[list[ModelName], Field(max_length=64)] = []
    source: Text = ""
    checked: DateText = ""

    @field_validator("service")
    @classmethod
    def _beside_standard(cls, service: dict[str, CardEntry]) -> dict[str, CardEntry]:
        if STANDARD_TIER_NAMES.intersection(service):
            raise ValueError(
                f"has a name of the standard tier ({', '.join(sorted(STANDARD_TIER_NAMES))}): that is the row itself"
            )
        return service


def _known_features(value: dict[str, int]) -> dict[str, int]:
    for name in value:
        if name not in FEATURES:
            raise ValueError(f"has a feature that cannot be allowed{did_you_mean(name, FEATURES)}")
    return value


Allow = Annotated[dict[str, Uses], AfterValidator(_known_features)]


class CandidateEntry(Entry):
    provider: str
    model: ModelName


class RouteEntry(Entry):
    """A route that says more than its candidates; they are read one by one, as those of a plain list are."""

    candidates: Any
    allow: Allow = {}


class UsdWindows(Entry):
    request: Usd | None = None
    minute: Usd | None = None
    hour: Usd | None = None
    day: Usd | None = None
    month: Usd | None = None
    life: Usd | None = None


class CountWindows(Entry):
    request: Count | None = None
    minute: Count | None = None
    hour: Count | None = None
    day: Count | None = None
    month: Count | None = None
    life: Count | None = None


class LimitsEntry(Entry):
    usd: UsdWindows | None = None
    requests: CountWindows | None = None
    tokens: CountWindows | None = None
    tool_calls: CountWindows | None = None


class RunsEntry(Entry):
    limits: LimitsEntry = LimitsEntry()
    expire_after: Span | None = None
    elapsed_max: Span | None = None
    active_max: Span | None = None
    stop_on_unknown: bool = False
    stop_on_refusal: bool = False
    delegate: Delegation = 0


class BudgetAlertsEntry(Entry):
    warn_at: list[Percent]


class BudgetEntry(Entry):
    limits: LimitsEntry = LimitsEntry()
    mode: Mode = "enforce"
    unbudgeted: bool = False
    default_output_tokens: Positive | None = None
    failover: bool = False
    runs: RunsEntry | None = None
    allow: Allow = {}
    alerts: BudgetAlertsEntry | None = None


class KeyEntry(Entry):
    budget: str
    models: Annotated[list[ModelName], Field(min_length=1)] | None = None
    expires: Instant | None = None
    secret: str | None = None

    @field_validator("secret")
    @classmethod
    def _local_only(cls, value: str, info: ValidationInfo) -> str:
        if not (info.context or {}).get("loopback_http"):
            raise ValueError("is for local runs only: leave it out, and the key is made and shown once")
        if not is_well_formed(value):
            raise ValueError("must be sg- and 4 to 128 letters, digits, '.', '_' or '-'")
        return value


class AlertsEntry(Entry):
    warn_at: list[Percent] = [80]
    slack: bool = True
