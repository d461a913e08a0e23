"""What kinds of providers there are, as data: how each authenticates, what it bills, and how it counts.

A provider names its kind, or has the plain one of its dialect. Nothing here is code of one provider's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from spendgate.core.route import Provider

BEARER: Final = ("authorization", "Bearer {}")
# Statuses of a request that was refused before any work.
_REFUSED: Final = frozenset({400, 401, 403, 404, 405, 409, 413, 415, 422, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The habits of a kind of provider.

    ``authorization`` is a header and the form of its value. ``unbilled`` are the statuses that prove that nothing was
    billed: whatever is not among them is unclear, and keeps its money.
    """

    name: str
    dialect: str
    authorization: tuple[str, str] = BEARER
    unbilled: frozenset[int] = _REFUSED


# Sources, checked 2026-11-29. Anthropic: docs api/errors, and its billing FAQ (failed requests are not charged; 529
# overloaded among them). OpenAI: by practice, and guides/flex-processing for 429. A 408, any 5xx but 529, and all that is
# not listed may come after the work: billed or not, nobody can say.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind(name="openai", dialect="openai"),
            Kind(
                name="anthropic",
                dialect="anthropic",
                authorization=("x-api-key", "{}"),
                unbilled=_REFUSED | {402, 529},
            ),
            # Billing FAQ (ai.google.dev/gemini-api/docs/billing): a request that fails with 400 or 500 is not charged. 401,
            # 403, 404, 413 by Vertex's pricing page (only a 200 is billed), 429 measured by a third party. A 402 (prepaid
            # credit used up) is known by hearsay only, and a 409 not at all; a 503 or 504 may come after the work.
            Kind(
                name="gemini",
                dialect="gemini",
                authorization=("x-goog-api-key", "{}"),
                unbilled=(_REFUSED - {409}) | {500},
            ),
        )
    }
)


def kind_of(provider: Provider) -> Kind:
    """Return a provider's kind; KeyError for one that is not known, which no configuration lets through."""
    return KINDS[provider.kind or provider.dialect]
