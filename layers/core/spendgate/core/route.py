"""Providers, candidates and routes: what a caller's model name can reach."""

from dataclasses import dataclass
from typing import Final

CANDIDATES_MAX: Final = 8
# Parts of ARNs of Bedrock: a prompt has text and settings of its own, a router chooses the model.
_HELD: Final = (":prompt/", ":prompt-router/", ":default-prompt-router/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """Hidden tokens that a provider adds to a request, and what it may put out beyond the cap.

    The defaults are an upper bound for hosts that publish nothing (measured values and their sources:
    docs/pricing.md, "Framing"): a request's preamble, tools or structured output once, each tool, each message or part.
    """

    request: int = 1024
    tooling: int = 1024
    tool: int = 64
    part: int = 16
    output_overshoot: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An endpoint that speaks a dialect, where its secret is, and its habits of counting.

    ``kind`` is a name of ``core/kind.KINDS``; None is that of the host, or the plain one of the dialect. ``secret`` is a
    reference (``env:NAME``, ``secretsmanager:NAME``), never a value; None where the host wants none.
    ``service_tier``, ``geo``, ``speed`` declare what an absent field means at this account, ``residency`` where its
    project's data stays (``none``: nowhere in particular); undeclared is the dearest. ``prices`` is the shipped
    catalogue whose prices are this provider's; None is the one of its name. ``api_version`` is Azure's, where its
    deployments stand in the path. ``cap_includes_reasoning`` declares what the kind does not know of this host.
    ``free_fields`` and ``free_betas`` are fields of a request and beta names that no list knows yet, and of which an operator
    knows that they cost nothing. ``private_network`` lets the host be within a private network, as a model is that a team
    hosts itself.
    """

    name: str
    dialect: str
    base_url: str
    secret: str | None = None
    framing: Framing = Framing()
    service_tier: str | None = None
    geo: str | None = None
    speed: str | None = None
    residency: str | None = None
    prices: str | None = None
    kind: str | None = None
    api_version: str | None = None
    cap_includes_reasoning: bool | None = None
    free_fields: tuple[str, ...] = ()
    free_betas: tuple[str, ...] = ()
    private_network: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One (provider, model) that a route can reach."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A name that a caller may ask for, and what it can reach, in order; all of one dialect.

    ``allow`` says how often a call of it may use a feature (``core/feature.py``) of which no budget says anything.
    """

    name: str
    candidates: tuple[Candidate, ...]
    allow: tuple[tuple[str, int], ...] = ()


def is_held(model: str) -> bool:
    """Tell a name behind which Bedrock holds the prompt or picks the model, so that nothing bounds it."""
    return any(part in model for part in _HELD)
