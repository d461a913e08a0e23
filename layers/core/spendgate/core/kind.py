"""What kinds of providers there are, as data: how each authenticates, what it bills, and how it counts.

A provider names its kind, or has that of its host, or the plain one of its dialect. Nothing here is code of one
provider's own. Sources are those of docs/dialects.md, "Kinds of providers"; read on 2026-11-29 and 30.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import quote, urlsplit

from spendgate.core.money import Picodollars, usd
from spendgate.core.route import Provider

BEARER: Final = ("authorization", "Bearer {}")
# Statuses of a request that was refused before any work.
_REFUSED: Final = frozenset({400, 401, 403, 404, 405, 409, 413, 415, 422, 429})
# The paths of a request that Azure serves below a deployment; all others it serves beside them.
_DEPLOYED_PATHS: Final = frozenset({"/chat/completions", "/completions", "/embeddings"})
_KINDS_CACHED_MAX: Final = 256

NO_FEE: Final = Picodollars(0)

Charge = Literal["none", "cost", "ticks"]
Reads = Literal["answer", "generation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """Where a provider tells what became of an answer: the path for its id, and how what stands there is read."""

    path: str
    reads: Reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The habits of a kind of provider.

    ``authorization`` is a header and the form of its value. ``unbilled`` are the statuses that prove that nothing was
    billed: whatever is not among them is unclear, and keeps its money. ``unbilled_codes`` are (status, error code) that
    prove it where the status alone does not. ``credentials`` are the statuses that reject the gateway's own key.

    ``spend_statuses`` and ``spend_codes`` say that the provider's own limit of spend is reached: to try again is in
    vain until somebody acts. ``transient_codes`` look like them and pass by themselves. ``spend_messages`` are (status, first
    words of the message), for a limit that has neither.

    ``cap_field`` is the name that an output cap goes by, None where it is the dialect's own affair; ``asks_usage`` tells
    whether a stream may be asked for its usage. ``cap_includes_reasoning`` is False where reasoning may go beyond the
    cap; ``capped_models`` are then parts of the names of models that have none, or keep it inside. ``charge`` is how the
    provider says what an answer cost, which then is the truth. ``deployments`` tells that the model stands in the path.
    ``refusal_fee`` is the most, in picodollars, that a request may cost which is answered one of ``fee_statuses``.
    ``signed`` tells that, without a secret, requests are signed with the gateway's own role. ``caps_tool_calls`` tells that
    Responses' ``max_tool_calls`` is kept to, and that its tools cost what the price rows say. ``look_ups`` are by the
    gateway's dialect.
    """

    name: str
    dialect: str
    hosts: tuple[str, ...] = ()
    authorization: tuple[str, str] = BEARER
    unbilled: frozenset[int] = _REFUSED
    unbilled_codes: frozenset[tuple[int, str]] = frozenset()
    credentials: frozenset[int] = frozenset({401, 403})
    spend_statuses: frozenset[int] = frozenset()
    spend_codes: frozenset[str] = frozenset()
    transient_codes: frozenset[str] = frozenset()
    spend_messages: tuple[tuple[int, str], ...] = ()
    cap_field: str | None = None
    asks_usage: bool = True
    cap_includes_reasoning: bool = True
    capped_models: tuple[str, ...] = ()
    charge: Charge = "none"
    deployments: bool = False
    signed: bool = False
    refusal_fee: Picodollars = NO_FEE
    fee_statuses: frozenset[int] = frozenset()
    caps_tool_calls: bool = False
    look_ups: tuple[tuple[str, LookUp], ...] = ()

    def look_up(self, dialect: str) -> LookUp | None:
        """Return where to ask about an answer in one of the gateway's dialects."""
        return dict(self.look_ups).get(dialect)


# OpenAI: guides/spend-limits, and the codes that its own clients stop at; insufficient_quota is a type and a code.
_OPENAI_SPEND: Final = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "project_spend_limit_exceeded",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "billing_hard_limit_reached",
        "usage_limit_reached",
        "usage_not_included",
    }
)
# What Azure's validation says before any work. Its FAQ (2026-09-11): a 400 by the content filter is billed where it
# was worked for, and so is a 408; 401 and 429 are not. So a 400 counts as unbilled by these codes only.
_AZURE_INVALID: Final = frozenset(
    {
        "context_length_exceeded",
        "invalid_type",
        "invalid_value",
        "missing_required_parameter",
        "string_above_max_length",
        "unknown_parameter",
        "unrecognized_parameter",
        "unsupported_parameter",
        "unsupported_value",
    }
)

_BEDROCK_REFUSED: Final = frozenset({400, 401, 403, 404, 413, 415, 429})
_BEDROCK_SPEND: Final = frozenset({"ServiceQuotaExceededException"})

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            # Unbilled: by practice, and guides/flex-processing for 429. A 408, any 5xx, and all that is not listed may
            # come after the work: billed or not, nobody can say.
            Kind(
                name="openai",
                dialect="openai",
                hosts=("api.openai.com", "*.api.openai.com"),
                spend_codes=_OPENAI_SPEND,
                cap_field="max_completion_tokens",
                # openai-python 3.57.0, response_create_params: a further attempt is ignored. Nobody else says so, and Azure
                # searches with Bing, at prices of its own.
                caps_tool_calls=True,
                # Only what was stored is found, which is the default; anything else is a 404, which proves nothing.
                look_ups=(("openai-responses", LookUp(path="/responses/{id}", reads="answer")),),
            ),
            Kind(
                name="azure",
                dialect="openai",
                hosts=("*.openai.azure.com",),
                authorization=("api-key", "{}"),
                unbilled=_REFUSED - {400},
                unbilled_codes=frozenset((400, code) for code in _AZURE_INVALID),
                spend_codes=_OPENAI_SPEND,
                cap_field="max_completion_tokens",
                deployments=True,
            ),
            # docs api/errors, api/rate-limits, and the billing FAQ (failed requests are not charged; 529 overloaded among
            # them). One spend limit is told by the message of a 400 alone (api/rate-limits, 2026-08), which no caller's text can
            # begin: it is known by its first words. It adds a flag and changes no money.
            Kind(
                name="anthropic",
                dialect="anthropic",
                hosts=("api.anthropic.com",),
                authorization=("x-api-key", "{}"),
                unbilled=_REFUSED | {402, 529},
                spend_statuses=frozenset({402}),
                spend_codes=frozenset(
                    {
                        "billing_error",
                        "enforced_spend_limit_reached",
                        "contract_spend_limit_reached",
                        "linked_organization_spend_limit_reached",
                    }
                ),
                transient_codes=frozenset({"ramp_limit_exceeded"}),
                spend_messages=(
                    (400, "You have reached your specified API usage limits"),
                    (400, "You have reached your specified workspace API usage limits"),
                ),
            ),
            # errors-and-debugging: before the first token the statuses are real, 502 and 503 among them.
            # usage-accounting: cost is what is charged. The generation endpoint is exact, a few seconds later.
            Kind(
                name="openrouter",
                dialect="openai",
                hosts=("openrouter.ai", "*.openrouter.ai"),
                unbilled=_REFUSED | {402, 502, 503},
                spend_statuses=frozenset({402}),
                spend_codes=frozenset({"openrouter_credits", "openrouter_key_limit"}),
                transient_codes=frozenset({"openrouter_in_flight_budget"}),
                cap_field="max_tokens",
                charge="cost",
                look_ups=(
                    ("openai", LookUp(path="/generation?id={id}", reads="generation")),
                    ("openai-responses", LookUp(path="/generation?id={id}", reads="generation")),
                ),
            ),
            # developers/cost-tracking: the ticks are what is billed, after discounts, with tools. That max_tokens holds
            # reasoning is not confirmed.
            Kind(
                name="xai",
                dialect="openai",
                hosts=("api.x.ai", "*.api.x.ai"),
                # Its documents of 2025 charge a request that is refused for its content 0.05 USD; those of 2026 neither
                # repeat nor revoke it. Such a 403 has the code of a missing permission (seen as "permission-denied" and in
                # words: github.com/UKGovernmentBEIS/inspect_ai/pull/2267, github.com/Wei-Shaw/sub2api/pull/5359), and for a
                # 400 no code is documented, so that none of the two proves that nothing is billed.
                unbilled=_REFUSED - {400, 403},
                refusal_fee=usd("0.05"),
                fee_statuses=frozenset({400, 403}),
                cap_field="max_tokens",
                cap_includes_reasoning=False,
                charge="ticks",
            ),
            # console.groq.com/docs/spend-limits: a 400 with this code.
            Kind(
                name="groq",
                dialect="openai",
                hosts=("api.groq.com",),
                spend_codes=frozenset({"blocked_api_access"}),
                cap_field="max_tokens",
            ),
            # It refuses stream_options (422), and sends the usage of a stream unasked.
            Kind(
                name="mistral",
                dialect="openai",
                hosts=("api.mistral.ai",),
                unbilled=_REFUSED | {402},
                spend_statuses=frozenset({402}),
                cap_field="max_tokens",
                asks_usage=False,
            ),
            Kind(
                name="deepseek",
                dialect="openai",
                hosts=("api.deepseek.com",),
                unbilled=_REFUSED | {402},
                spend_statuses=frozenset({402}),
                cap_field="max_tokens",
            ),
            # docs/error-codes: 402 is its spending limit, and 403 says that input and cap exceed the context.
            Kind(
                name="together",
                dialect="openai",
                hosts=("api.together.xyz", "api.together.ai"),
                unbilled=_REFUSED | {402},
                credentials=frozenset({401}),
                spend_statuses=frozenset({402}),
                cap_field="max_tokens",
            ),
            # guides/inference-error-codes: 402 is no paid plan, or its limit.
            Kind(
                name="fireworks",
                dialect="openai",
                hosts=("api.fireworks.ai",),
                unbilled=_REFUSED | {402},
                spend_statuses=frozenset({402}),
                cap_field="max_tokens",
            ),
            # Billing FAQ (ai.google.dev/gemini-api/docs/billing): a request that fails with 400 or 500 is not charged. 401,
            # 403, 404, 413 by Vertex's pricing page (only a 200 is billed), 429 measured by a third party. A 402 (prepaid
            # credit used up) is known by hearsay only, and a 409 not at all; a 503 or 504 may come after the work.
            Kind(
                name="gemini",
                dialect="gemini",
                hosts=("generativelanguage.googleapis.com",),
                authorization=("x-goog-api-key", "{}"),
                # G5: a 5xx may come after the work, and keeps its money whatever an FAQ says of it.
                unbilled=_REFUSED - {409},
            ),
            # Service model bedrock-runtime (botocore 1.43.106): ValidationException, AccessDenied, ResourceNotFound,
            # Throttling and ModelNotReady come before any work. ModelTimeout (408) and ModelError (424) come after it.
            Kind(
                name="bedrock",
                dialect="bedrock",
                hosts=("bedrock-runtime.*",),
                unbilled=_BEDROCK_REFUSED,
                spend_codes=_BEDROCK_SPEND,
                # Only Claude's docs say that maxTokens holds reasoning; of the others, these do not reason.
                cap_includes_reasoning=False,
                capped_models=(
                    "anthropic.claude-",
                    "amazon.nova-micro-v1",
                    "amazon.nova-lite-v1",
                    "amazon.nova-pro-v1",
                    "amazon.nova-premier-v1",
                    "meta.llama",
                    "cohere.command",
                    "ai21.",
                    "mistral.mistral-large-2402",
                    "mistral.mistral-large-2407",
                    "mistral.mistral-7b",
                    "mistral.mixtral-8x7b",
                    "mistral.pixtral",
                ),
                signed=True,
            ),
            # Claude at Bedrock by InvokeModel, for callers of Anthropic's Messages.
            Kind(
                name="bedrock-anthropic",
                dialect="anthropic",
                hosts=("bedrock-runtime.*",),
                unbilled=_BEDROCK_REFUSED,
                spend_codes=_BEDROCK_SPEND,
                signed=True,
            ),
            # Any other host that speaks OpenAI's protocol: max_tokens is the name that all of them know.
            Kind(name="compatible", dialect="openai", cap_field="max_tokens"),
        )
    }
)

# The kind of a host that no kind names, where it is not that of the dialect's own name.
PLAIN: Final[Mapping[str, str]] = MappingProxyType({"openai": "compatible"})


@lru_cache(maxsize=_KINDS_CACHED_MAX)
def kind_of(provider: Provider) -> Kind:
    """Return a provider's kind; KeyError for one that is not known, which no configuration lets through."""
    if provider.kind is not None:
        return KINDS[provider.kind]
    host = urlsplit(provider.base_url).hostname or ""
    named = (kind for kind in KINDS.values() if kind.dialect == provider.dialect and _is_host(host, kind.hosts))
    plain = PLAIN.get(provider.dialect, provider.dialect)
    return next(named, None) or KINDS[plain]


def caps_reasoning(provider: Provider, model: str = "") -> bool:
    """Tell whether an output cap holds reasoning too: as the provider's entry declares, else as its kind does."""
    if provider.cap_includes_reasoning is not None:
        return provider.cap_includes_reasoning
    kind = kind_of(provider)
    return kind.cap_includes_reasoning or any(part in model for part in kind.capped_models)


def url_of(provider: Provider, *, path: str, model: str) -> str:
    """Return where a request goes: the base URL and the dialect's path, with the deployment where a kind has them."""
    base = provider.base_url.rstrip("/")
    if not kind_of(provider).deployments:
        return base + path
    if provider.api_version is None:
        return (base if urlsplit(base).path else f"{base}/openai/v1") + path
    if not urlsplit(base).path:
        base += "/openai"
    bare, _, query = path.partition("?")
    deployment = f"/deployments/{quote(model, safe='')}" if bare in _DEPLOYED_PATHS else ""
    version = f"api-version={quote(provider.api_version, safe='')}"
    return f"{base}{deployment}{bare}?{version}{'&' if query else ''}{query}"


def _is_host(host: str, patterns: tuple[str, ...]) -> bool:
    return any(
        host == pattern
        or (pattern[0] == "*" and host.endswith(pattern[1:]))
        or (pattern[-1] == "*" and host.startswith(pattern[:-1]))
        for pattern in patterns
    )
