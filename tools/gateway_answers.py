"""What the gateway itself answers, as types: its own documents, and a refusal in each family's shape with the same facts in all.

``tests/surface`` holds every answer to these. What a provider answers is passed on, and is the provider's to describe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from spendgate.admin_records import Amount, Budget, Count, Instant, ReservationId, closed
from spendgate.core.reservation import State
from spendgate.core.window import Measure, Window

# --- refusals

Code = Literal[
    "over_budget",
    "budget_busy",
    "request_too_expensive",
    "rate_limited",
    "budget_stopped",
    "price_unknown",
    "cost_bound_unknown",
    "request_conflict",
    "duplicate_request",
    "model_not_allowed",
    "key_invalid",
    "request_invalid",
    "not_found",
    "ledger_unavailable",
    "provider_unreachable",
    "provider_refused_us",
    "outcome_unknown",
    "internal_fault",
]


@closed
class Limit(TypedDict):
    measure: Measure
    window: Window
    maximum: Amount


@closed
class Fits(TypedDict):
    max_output_tokens: Count


@closed
class _Where(TypedDict, total=False):
    reservation: ReservationId
    state: State
    field: str


@closed
class Facts(_Where):
    """What a refusal tells in every family's shape: docs/errors.md."""

    code: Code
    retryable: bool
    budget: str | None
    limit: Limit | None
    settled: Amount | None
    reserved: Amount | None
    unknown: Amount | None
    asked: Amount | None
    resets_at: Instant | None
    fits: Fits | None
    next_action: str | None


@closed
class OpenAIError(Facts):
    message: str
    type: str
    param: str | None
    request_id: str


@closed
class OpenAIRefusal(TypedDict):
    error: OpenAIError


@closed
class AnthropicDetails(Facts):
    error_code: Code


@closed
class AnthropicError(TypedDict):
    type: str
    message: str
    details: AnthropicDetails


@closed
class AnthropicRefusal(TypedDict):
    type: Literal["error"]
    error: AnthropicError
    request_id: str


_Typed = TypedDict("_Typed", {"@type": Literal["spendgate.refusal"]})


@closed
class GeminiDetails(_Typed, Facts):
    request_id: str


@closed
class GeminiError(TypedDict):
    code: Annotated[int, Field(ge=400, le=599)]
    status: Annotated[str, Field(pattern="^[A-Z_]+$")]
    message: str
    details: Annotated[list[GeminiDetails], Field(min_length=1, max_length=1)]


@closed
class GeminiRefusal(TypedDict):
    error: GeminiError


@closed
class BedrockDetails(Facts):
    request_id: str


_Shaped = TypedDict("_Shaped", {"__type": str})


@closed
class BedrockRefusal(_Shaped):
    message: str
    details: BedrockDetails


REFUSALS: Final[Mapping[str, Any]] = {
    "openai": OpenAIRefusal,
    "anthropic": AnthropicRefusal,
    "gemini": GeminiRefusal,
    "bedrock": BedrockRefusal,
}

# --- the gateway's own answers


@closed
class Model(TypedDict):
    """A route, in members that every SDK reads as its own."""

    id: str
    object: Literal["model"]
    type: Literal["model"]
    created: int
    created_at: Instant
    owned_by: Literal["spendgate"]
    display_name: str


@closed
class GeminiModel(TypedDict):
    name: Annotated[str, Field(pattern="^models/")]
    displayName: str
    supportedGenerationMethods: list[str]


@closed
class GeminiModels(TypedDict):
    models: list[GeminiModel]


@closed
class Models(GeminiModels):
    object: Literal["list"]
    data: list[Model]
    has_more: Literal[False]
    first_id: str | None
    last_id: str | None


@closed
class Budgets(TypedDict):
    """Every budget of the key's path, the root first; ``budget`` is the last."""

    budget: str
    budgets: Annotated[list[Budget], Field(min_length=1)]


@closed
class Minted(TypedDict):
    key: Annotated[str, Field(pattern="^sg-", description="Shown this once.")]
    run: str
    budget: str
    expires_at: Instant | None
    models: list[str]
    delegate: Count


@closed
class Health(TypedDict):
    status: Literal["ok"]
