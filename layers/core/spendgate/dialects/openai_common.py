"""What all of OpenAI's wire protocols share: refusals, output caps, service tiers and the cache's lifetime."""

import json
from collections.abc import Mapping
from typing import Any, Final

from spendgate.core.usage import COUNT_MAX
from spendgate.dialects.dialect import Request
from spendgate.dialects.fields import invalid
from spendgate.dialects.openai_fields import CACHE_TTL_LONG
from spendgate.dialects.refusal import facts_document, sentence
from spendgate.errors import Refused

# "auto" is the project's own setting, as is an absent tier; answers call the fast one "priority".
_TIERS: Final = {"auto": None, "fast": "priority"}
_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "spend_limit",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}


def refusal(refused: Refused, request_id: str) -> dict[str, Any]:
    """Return the error document that OpenAI's SDKs parse; they keep ``error`` as the error's body."""
    return {
        "error": {
            "message": sentence(refused),
            "type": _ERROR_TYPES.get(refused.status, "server_error"),
            "param": refused.facts.field,
            **facts_document(refused),
            "request_id": request_id,
        }
    }


def stream_error(refused: Refused, request_id: str) -> bytes:
    """Return the refusal as an event; the blank lines before it close whatever was cut."""
    return b"\n\ndata: " + json.dumps(refusal(refused, request_id)).encode() + b"\n\n"


def output_cap(value: Any, name: str) -> int:
    """Return a cap of the output; RequestInvalid where it is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= COUNT_MAX:
        invalid(name, "a whole number of at least 1")
    return value


def count(value: Any, name: str, *, most: int) -> int:
    """Return how often something is asked for, once where nothing is said; RequestInvalid where it is no count."""
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        invalid(name, f"a whole number from 1 to {most}")
    return value


def service_tier(body: Mapping[str, Any]) -> str | None:
    """Return the tier that a request is priced by; None where it leaves the choice to the project."""
    tier = body.get("service_tier")
    return None if tier is None else _TIERS.get(tier, tier)


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Tell whether the caller of a stream asked for the frame with the usage."""
    return bool((body.get("stream_options") or {}).get("include_usage"))


def ask_for_usage(body: dict[str, Any], request: Request) -> None:
    """Let the stream that a body asks for end with its usage."""
    if request.kind is not None and not request.kind.asks_usage:
        # It sends the usage unasked, and refuses to be asked.
        body.pop("stream_options", None)
    elif request.facts.stream:
        body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}


def writes_long(options: Mapping[str, Any] | None) -> bool:
    """Tell whether cache options, or a breakpoint, ask for the long lifetime."""
    return (options or {}).get("ttl") == CACHE_TTL_LONG
