"""What a status says of an answer: worked for, proven unbilled, or unclear. Which statuses prove it is ``core/kind``'s."""

from typing import Final

from spendgate.core.kind import Kind

# Of the unbilled ones, what says that another provider may do better with the very same request.
ELSEWHERE: Final = frozenset({401, 402, 403, 404, 429, 529})
# The provider rejects the gateway's own credentials: nothing that the caller could mend, and the text may name a key.
CREDENTIALS: Final = frozenset({401, 403})


def is_answer(status: int) -> bool:
    """Tell an answer that was worked for (2xx) from an error."""
    return 200 <= status < 300


def is_unbilled(kind: Kind, status: int) -> bool:
    """Tell whether a status proves that the provider bills nothing for the request."""
    return status in kind.unbilled
