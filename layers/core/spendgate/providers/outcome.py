"""What an answer's status and error code say: worked for, proven unbilled, the provider's own limit, or unclear.

Which statuses and codes prove it is data of ``core/kind``. An error's message is read by nobody: its words change.
"""

from dataclasses import dataclass
from typing import Any, Final

from spendgate.core.kind import NO_FEE, Kind
from spendgate.core.money import Picodollars
from spendgate.dialects.json_strict import parse_answer

# Of the unbilled ones, what says that another provider may do better with the very same request.
_ELSEWHERE: Final = frozenset({401, 402, 403, 404, 429, 502, 503, 529})
# Where the providers put their codes: OpenAI and those like it, Anthropic, OpenRouter, Azure, Amazon.
_CODES: Final = (
    ("code",),
    ("type",),
    ("details", "error_code"),
    ("limit_source",),
    ("metadata", "limit_source"),
    ("innererror", "code"),
    ("__type",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an error proves. ``spend_limit`` is the code, or the status, of a limit of the provider's own.

    ``fee`` is the most that it costs, where that is known though it is not nothing.
    """

    unbilled: bool
    fee: Picodollars = NO_FEE
    credentials: bool = False
    elsewhere: bool = False
    spend_limit: str | None = None


UNCLEAR: Final = Verdict(unbilled=False)


def is_answer(status: int) -> bool:
    """Tell an answer that was worked for (2xx) from an error."""
    return 200 <= status < 300


def may_be_unbilled(kind: Kind, status: int) -> bool:
    """Tell whether a status proves that nothing, or a fee at most, is billed, or may do so together with the body."""
    proving = kind.unbilled | kind.fee_statuses
    return status in proving or any(status == one for one, _ in kind.unbilled_codes)


def verdict(kind: Kind, status: int, body: bytes, *, named: str | None = None) -> Verdict:
    """Return what an error proves; ``named`` is the code that Amazon puts into a header."""
    codes = error_codes(body) + (() if named is None else (named.partition(":")[0],))
    if status not in kind.unbilled and not any((status, code) in kind.unbilled_codes for code in codes):
        if status not in kind.fee_statuses:
            return UNCLEAR
        # Not to be tried elsewhere: what is held may be needed for the fee.
        return Verdict(unbilled=False, fee=kind.refusal_fee, credentials=status in kind.credentials)
    limit = _spend_limit(kind, status, codes) or _told_limit(kind, status, body)
    return Verdict(
        unbilled=True,
        credentials=status in kind.credentials,
        elsewhere=status in _ELSEWHERE or limit is not None,
        spend_limit=limit,
    )


def error_codes(body: bytes) -> tuple[str, ...]:
    """Return the codes of an error document, as its ``error`` or at its top."""
    document = parse_answer(body)
    if not isinstance(document, dict):
        return ()
    error = document.get("error")
    found = [_leaf(place, path) for place in (error, document) for path in _CODES]
    return tuple(code for code in found if isinstance(code, str))


def _spend_limit(kind: Kind, status: int, codes: tuple[str, ...]) -> str | None:
    if any(code in kind.transient_codes for code in codes):
        return None
    known = next((code for code in codes if code in kind.spend_codes), None)
    return known or (str(status) if status in kind.spend_statuses else None)


def _told_limit(kind: Kind, status: int, body: bytes) -> str | None:
    """Return the name of a limit that only the message of an error tells."""
    if not any(status == one for one, _ in kind.spend_messages):
        return None
    message = _leaf(parse_answer(body), ("error", "message"))
    if not isinstance(message, str):
        return None
    told = any(message.startswith(words) for one, words in kind.spend_messages if one == status)
    return "specified_usage_limits" if told else None


def _leaf(node: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(node, dict):
            return None
        node = node.get(step)
    return node
