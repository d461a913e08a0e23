"""Which answers of a provider prove that nothing was billed. Whatever is not listed is unclear, and keeps its money.

Sources: Anthropic: docs api/errors, and its billing FAQ (failed requests are not charged; 529 overloaded among them);
OpenAI: by practice, and guides/flex-processing for 429. A 408, any 5xx but 529, and all that is not listed may come
after the work: billed or not, nobody can say. Azure bills some 400s: it is not one of these dialects' plain hosts.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_REFUSED: Final = frozenset({400, 401, 403, 404, 405, 409, 413, 415, 422, 429})

# checked 2026-11-29
UNBILLED: Final[Mapping[str, frozenset[int]]] = MappingProxyType(
    {
        "openai": _REFUSED,
        "anthropic": _REFUSED | {402, 529},
    }
)

# Of these, what says that another provider may do better with the very same request.
ELSEWHERE: Final = frozenset({401, 402, 403, 404, 429, 529})
# The provider rejects the gateway's own credentials: nothing that the caller could mend, and the text may name a key.
CREDENTIALS: Final = frozenset({401, 403})


def is_answer(status: int) -> bool:
    """Tell an answer that was worked for (2xx) from an error."""
    return 200 <= status < 300


def is_unbilled(dialect: str, status: int) -> bool:
    """Tell whether a status proves that the provider bills nothing for the request."""
    return status in UNBILLED.get(dialect, frozenset())
