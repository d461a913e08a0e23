"""What is logged and counted of a call that has ended; never a prompt, a completion or a key.

Beside our own names are those of OpenTelemetry's conventions for generative AI (opentelemetry.io/docs/specs/semconv/gen-ai,
"gen-ai-spans", status Development, read 2026-11), so that a team's dashboards know them.
"""

from __future__ import annotations

from typing import Any, Final

from spendgate.calls import Call, Metrics
from spendgate.core.money import usd_text
from spendgate.core.reservation import Reservation, Resolution
from spendgate.store.transactions import broke_bound

# The convention's names of operations and providers; what it has no name for keeps ours.
_OPERATIONS: Final = {
    "openai-embeddings": "embeddings",
    "gemini-embeddings": "embeddings",
    "gemini-batch-embeddings": "embeddings",
    "openai-completions": "text_completion",
    "gemini": "generate_content",
    "gemini-stream": "generate_content",
}
_PROVIDERS: Final = {
    "openai": "openai",
    "azure": "azure.ai.openai",
    "anthropic": "anthropic",
    "bedrock": "aws.bedrock",
    "bedrock-anthropic": "aws.bedrock",
    "gemini": "gcp.gemini",
    "xai": "x_ai",
    "deepseek": "deepseek",
    "groq": "groq",
    "mistral": "mistral_ai",
}


def fields_of(
    call: Call, reservation: Reservation, resolution: Resolution, *, kind: str, milliseconds: int
) -> dict[str, Any]:
    """Return the fields of the call's one line in the log."""
    fields: dict[str, Any] = {
        "request_id": call.request_id,
        "reservation": reservation.id,
        "budget": reservation.path,
        "key_name": reservation.key_name,
        "route": reservation.route,
        "provider": resolution.provider,
        "model": resolution.model,
        "state": resolution.state,
        "reason": resolution.reason,
        "reserved_usd": usd_text(reservation.asked.usd),
        "cost_usd": None if resolution.actual is None else usd_text(resolution.actual.usd),
        "milliseconds": milliseconds,
        "gen_ai.operation.name": _OPERATIONS.get(reservation.dialect, "chat"),
        "gen_ai.provider.name": _PROVIDERS.get(kind, kind),
        "gen_ai.request.model": resolution.model or reservation.route,
    }
    if resolution.response_model is not None:
        fields["gen_ai.response.model"] = resolution.response_model
    if resolution.usage is not None:
        fields["gen_ai.usage.input_tokens"] = resolution.usage.input_total
        fields["gen_ai.usage.output_tokens"] = resolution.usage.output_total
    if resolution.state not in ("settled", "charged"):
        fields["error.type"] = resolution.state
    return fields


def count(metrics: Metrics, reservation: Reservation, resolution: Resolution, *, own_milliseconds: int) -> None:
    """Count a call that has ended."""
    values: dict[str, int | str] = {"Calls": 1, "OwnLatency": own_milliseconds}
    if resolution.actual is not None:
        values["SettledUsd"] = usd_text(resolution.actual.usd)
        if broke_bound(reservation, resolution.actual):
            values["BoundViolations"] = 1
    elif resolution.state == "charged":
        values["SettledUsd"] = usd_text(reservation.asked.usd)
    metrics.add(values)
