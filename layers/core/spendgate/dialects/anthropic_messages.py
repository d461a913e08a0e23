"""The dialect of Anthropic's Messages, and its free token count."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from spendgate.core.request import RequestFacts
from spendgate.core.usage import COUNT_MAX
from spendgate.dialects import anthropic_betas, anthropic_fields, anthropic_usage, fields
from spendgate.dialects.anthropic_measure import Measured
from spendgate.dialects.dialect import NO_PATH, Dialect, Free, Request
from spendgate.dialects.fields import invalid
from spendgate.dialects.json_strict import compact
from spendgate.dialects.refusal import facts_document, sentence
from spendgate.errors import Refused

NAME: Final = "anthropic"
COUNT_TOKENS_PATH: Final = "/v1/messages/count_tokens"
QUERIES: Final = ("", "beta=true")

_TIERS: Final = {"standard_only": "standard"}
_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
}
_TOP_LEVEL: Final = fields.record(
    anthropic_fields.TOP_LEVEL, required=("model", "messages", "max_tokens"), read_on=anthropic_fields.CHECKED
)
_WITHOUT_BETAS: Final = "Claude Code does with CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1"
_BETA_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def read(
    body: Mapping[str, Any], headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request; RequestInvalid or CostBoundUnknown name the field, header or block."""
    _check_query(query)
    version, betas = _protocol_headers(headers)
    for beta in betas:
        if beta not in anthropic_betas.FREE_BETAS:
            fields.unlisted(
                beta,
                place="anthropic-beta",
                checked=anthropic_betas.CHECKED,
                setting="free_betas",
                how=_WITHOUT_BETAS,
            )
    _TOP_LEVEL(body, "")
    measured = Measured()
    measured.conversation(body)
    measured.options(body)
    return Request(facts=_facts(body, measured), body=body, headers=_forwarded(version, betas), query=query)


def outgoing(request: Request, model: str, output_cap: int | None) -> bytes:
    """Return the body to send; the cap is the caller's own, and never above what was bounded (None: unbounded)."""
    cap = request.body["max_tokens"] if output_cap is None else min(request.body["max_tokens"], output_cap)
    return compact({**request.body, "model": model, "max_tokens": cap})


def read_count_tokens(
    body: Mapping[str, Any], headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request for a token count, which is free whatever it holds: only what routes it is looked at."""
    _check_query(query)
    version, betas = _protocol_headers(headers)
    fields.json_object(body, "the body")
    fields.name(body.get("model"), "model")
    facts = RequestFacts(dialect=NAME, model=body["model"], text_bytes=0)
    return Request(facts=facts, body=body, headers=_forwarded(version, betas), query=query)


def count_tokens_body(request: Request, model: str) -> bytes:
    """Return the body of a token count for a candidate's model."""
    return compact({**request.body, "model": model})


def refusal(refused: Refused, request_id: str) -> dict[str, Any]:
    """Return the error document that Anthropic's SDKs parse; they keep all of it as the error's body."""
    return {
        "type": "error",
        "error": {
            "type": _ERROR_TYPES.get(refused.status, "api_error"),
            "message": sentence(refused),
            "details": {"error_code": refused.code, **facts_document(refused)},
        },
        "request_id": request_id,
    }


def stream_error(refused: Refused, request_id: str) -> bytes:
    """Return the refusal as an event; the blank lines before it close whatever was cut."""
    return b"\n\nevent: error\ndata: " + json.dumps(refusal(refused, request_id)).encode() + b"\n\n"


def _check_query(query: str) -> None:
    if query not in QUERIES:
        invalid("the query", "empty or beta=true")


def _protocol_headers(headers: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    lower = {name.lower(): value for name, value in headers.items()}
    version = lower.get("anthropic-version", anthropic_fields.VERSION_DEFAULT).strip()
    if version not in anthropic_fields.VERSIONS:
        invalid("anthropic-version", f"one of {', '.join(sorted(anthropic_fields.VERSIONS))}")
    betas = tuple(beta.strip() for beta in lower.get("anthropic-beta", "").split(",") if beta.strip())
    if not all(_BETA_NAME.fullmatch(beta) for beta in betas):
        invalid("anthropic-beta", "names separated by commas")
    return version, betas


def _forwarded(version: str, betas: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    headers = (("anthropic-version", version),)
    return (*headers, ("anthropic-beta", ",".join(betas))) if betas else headers


def _facts(body: Mapping[str, Any], measured: Measured) -> RequestFacts:
    tier, speed = body.get("service_tier"), body.get("speed")
    output_config = body.get("output_config") or {}
    return RequestFacts(
        dialect=NAME,
        model=body["model"],
        stream=bool(body.get("stream")),
        text_bytes=measured.text,
        json_bytes=measured.json,
        parts=measured.parts,
        tools=len(body.get("tools") or []),
        structured=bool(output_config.get("format") or body.get("output_format")),
        output_cap=_cap(body["max_tokens"]),
        cache_write=measured.cache_write,
        tool_results=_tool_results(body["messages"]),
        service_tier=_TIERS.get(tier) if tier is not None else None,
        geo=body.get("inference_geo"),
        speed=speed if speed != "standard" else None,
        hidden_tokens=measured.hidden,
        media=measured.media.found(),
        demands=tuple(measured.demands),
    )


def _cap(value: Any) -> int:
    # 0 fills the cache and generates nothing.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= COUNT_MAX:
        invalid("max_tokens", "a whole number of at least 0")
    return value


def _tool_results(messages: list[dict[str, Any]]) -> int:
    """Count the tool results after the last answer: what this request brings back."""
    count = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        if isinstance(message["content"], list):
            count += sum(block["type"] == "tool_result" for block in message["content"])
    return count


COUNT_TOKENS: Final = Free(
    upstream_path=lambda _request, _model: COUNT_TOKENS_PATH,
    read=read_count_tokens,
    outgoing=count_tokens_body,
)
DIALECT: Final = Dialect(
    name=NAME,
    family="anthropic",
    upstream_path=lambda _request, _model: "/v1/messages",
    read=read,
    outgoing=outgoing,
    meter=anthropic_usage.meter,
    report=anthropic_usage.report,
    refusal=refusal,
    stream_error=stream_error,
    free=(COUNT_TOKENS,),
)
