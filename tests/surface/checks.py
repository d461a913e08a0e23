"""What every answer of either surface is held to, whoever made up its request: its type, its code, its headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from spendgate.admin_endpoints import ENDPOINTS
from spendgate.admin_records import Budget, Reservation
from tests import answers
from tools.gateway_answers import REFUSALS, Budgets, GeminiModels, Health, Minted, Models
from tools.gateway_openapi import codes_of

JSON: Final = "application/json"
_OWN: Final[Mapping[tuple[str, str], Any]] = {
    ("GET", "/v1/models"): Models,
    ("GET", "/v1beta/models"): GeminiModels,
    ("GET", "/v1/budget"): Budgets,
    ("POST", "/v1/runs"): Minted,
    ("DELETE", "/v1/runs/{run}"): Budget,
    ("GET", "/v1/reservations/{id}"): Reservation,
    ("GET", "/healthz"): Health,
}
# Of a refusal that may pass, when it is worth another try.
_WAITED_FOR: Final = {"budget_busy", "rate_limited", "ledger_unavailable", "provider_unreachable"}

# Called with method and path of the operation, and status, headers (by small letters) and document of its answer.
Check = Callable[[str, str, int, Mapping[str, str], Any], None]


def gateway_answer(method: str, path: str, status: int, headers: Mapping[str, str], document: Any) -> None:
    """Raise where an answer of the gateway's own is not what its document says; a provider's is passed on as it came."""
    if "x-spendgate-provider" in headers:
        return
    assert headers["content-type"] == JSON, headers
    if status < 300:
        reader(_OWN[method, path]).validate_python(document)
        return
    families = tuple(REFUSALS) if (method, path) in _OWN else (family_of(path),)
    family = next(one for one in families if one == families[-1] or fits(one, document))
    reader(REFUSALS[family]).validate_python(document)
    code = code_of(document)
    assert code in codes_of(family)[status], (code, status)
    assert headers["x-should-retry"] in ("true", "false")
    assert code not in _WAITED_FOR or headers["retry-after"].isdecimal(), (code, headers)


def admin_answer(method: str, path: str, status: int, headers: Mapping[str, str], document: Any) -> None:
    """Raise where an answer of the admin API is not what its document says."""
    assert (headers["content-type"], headers["cache-control"]) == (JSON, "no-store")
    endpoint = next(one for one in ENDPOINTS if (one.method, f"/admin{one.path}") == (method, path))
    if status == 200:
        answers.check(endpoint, document)
    else:
        answers.check_error(endpoint, status, document)


def family_of(path: str) -> str:
    """Return whose shape a refusal on a path of a call has."""
    if path.startswith("/model/"):
        return "bedrock"
    if path.startswith("/v1/messages"):
        return "anthropic"
    return "gemini" if "/models/" in path else "openai"


def fits(family: str, document: Any) -> bool:
    """Tell whether a refusal is in a family's shape."""
    error = document.get("error")
    if family == "bedrock":
        return error is None
    if family == "anthropic":
        return bool(document.get("type") == "error")
    return isinstance(error, dict) and isinstance(error.get("code"), int) == (family == "gemini")


def code_of(document: Any) -> str:
    """Return a refusal's code, wherever its family has it."""
    error = document.get("error", document)
    details = error.get("details", error)
    return str((details[0] if isinstance(details, list) else details)["code"])


@cache
def reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
