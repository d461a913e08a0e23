"""The dialect of Anthropic's Messages, and its free token count."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spendgate.core.request import CacheWrite, Demand, RequestFacts
from spendgate.core.usage import COUNT_MAX
from spendgate.dialects import anthropic_fields, anthropic_usage, fields
from spendgate.dialects.dialect import NO_PATH, Dialect, Free, Request
from spendgate.dialects.fields import invalid, unbounded, under
from spendgate.dialects.json_strict import compact, shown
from spendgate.dialects.measure import MediaFound, json_bytes, schema_growth, text_bytes
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
_TOP_LEVEL: Final = fields.record(anthropic_fields.TOP_LEVEL, required=("model", "messages", "max_tokens"))
_BETA_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def read(
    body: Mapping[str, Any], headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request; RequestInvalid or CostBoundUnknown name the field, header or block."""
    _check_query(query)
    version, betas = _protocol_headers(headers)
    for beta in betas:
        if beta not in anthropic_fields.BETAS:
            unbounded("anthropic-beta", repr(shown(beta)))
    _TOP_LEVEL(body, "")
    measured = _Measured()
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


def _facts(body: Mapping[str, Any], measured: "_Measured") -> RequestFacts:
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


@dataclass(slots=True)
class _Measured:
    """The sizes found while a request is walked."""

    text: int = 0
    json: int = 0
    parts: int = 0
    cache_write: CacheWrite = "none"
    media: MediaFound = field(default_factory=MediaFound)
    demands: list[Demand] = field(default_factory=list)

    def conversation(self, body: Mapping[str, Any]) -> None:
        if not body["messages"]:
            invalid("messages", "an array with at least one message")
        if body.get("system") is not None:
            self._content(body["system"], "system", anthropic_fields.TEXT_BLOCKS)
        for index, message in enumerate(body["messages"]):
            place = under("messages", index)
            anthropic_fields.MESSAGE(message, place)
            if message["role"] not in anthropic_fields.ROLES:
                invalid(under(place, "role"), f"one of {', '.join(anthropic_fields.ROLES)}")
            self.parts += 1
            self._content(message["content"], under(place, "content"), anthropic_fields.BLOCKS)

    def options(self, body: Mapping[str, Any]) -> None:
        self._cache(body)
        for index, tool in enumerate(body.get("tools") or []):
            self._cache(tool)
            place = under("tools", index)
            if "input_schema" in tool:
                self._json_with_schema(tool, tool["input_schema"], under(place, "input_schema"))
            else:
                self._server_tool(tool, place)
        output_config = body.get("output_config") or {}
        for place, chosen in (
            ("output_config.format", output_config.get("format")),
            ("output_format", body.get("output_format")),
        ):
            if chosen is not None:
                self._json_with_schema(chosen, chosen["schema"], under(place, "schema"))
        if body.get("tool_choice") is not None:
            self.json += json_bytes(body["tool_choice"])
        self.text += sum(text_bytes(word) for word in body.get("stop_sequences") or [])

    def _content(self, content: Any, place: str, kinds: Mapping[str, fields.Check]) -> None:
        if isinstance(content, str):
            self.text += text_bytes(content)
            return
        if not isinstance(content, list):
            invalid(place, "a string or an array of blocks")
        for index, block in enumerate(content):
            self._block(block, under(place, index), kinds)

    def _block(self, block: Any, place: str, kinds: Mapping[str, fields.Check]) -> None:
        kind = fields.kind_of(block, place, kinds)
        kinds[kind](block, place)
        self.parts += 1
        self._cache(block)
        match kind:
            case "text":
                self.text += text_bytes(block["text"])
                if block.get("citations"):
                    self.json += json_bytes(block["citations"])
            case "thinking" | "redacted_thinking":
                self._thinking(block, place)
            case "tool_use" | "server_tool_use":
                self.text += text_bytes(block["name"]) + text_bytes(block["id"])
                self.json += json_bytes(block["input"])
            case "image":
                self.media.add("image", place)
            case "document":
                self._document(block, place)
            case _ if kind in anthropic_fields.SERVED_RESULTS:
                self.media.add("document", place)
            case _:
                # A tool result: ``kinds`` has no other.
                self.text += text_bytes(block["tool_use_id"])
                if block.get("content") is not None:
                    self._content(block["content"], under(place, "content"), anthropic_fields.RESULT_BLOCKS)

    def _thinking(self, block: Mapping[str, Any], place: str) -> None:
        if not block.get("thinking"):
            # A signature without its text stands for thinking that was not shown, as much as the model can do.
            self.media.add("reasoning", place)
        self.text += sum(text_bytes(block.get(name) or "") for name in ("thinking", "signature", "data"))

    def _server_tool(self, tool: Mapping[str, Any], place: str) -> None:
        self.json += json_bytes(tool)
        feature, fee = anthropic_fields.SERVED_FEATURES[tool["type"]]
        uses = tool.get("max_uses")
        if uses is not None and not 1 <= uses <= COUNT_MAX:
            invalid(under(place, "max_uses"), "a whole number of at least 1")
        if any(demand.feature == feature for demand in self.demands):
            invalid(place, "the only tool of its kind")
        self.demands.append(
            Demand(
                feature=feature,
                field=place,
                uses=uses,
                states_uses=True,
                turns=anthropic_fields.SERVER_TURNS_MAX,
                fee=fee,
            )
        )

    def _document(self, block: Mapping[str, Any], place: str) -> None:
        source = block["source"]
        self.text += text_bytes(block.get("title") or "") + text_bytes(block.get("context") or "")
        if (block.get("citations") or {}).get("enabled"):
            # It is cut into pieces with marks of their own, and nobody says how many.
            self.media.add("document", place)
        match source["type"]:
            case "text":
                self.text += text_bytes(source["data"])
            case "content":
                self._content(
                    source["content"], under(under(place, "source"), "content"), anthropic_fields.DOCUMENT_CONTENT
                )
            case _:
                self.media.add("document", place)

    def _json_with_schema(self, value: Any, schema: Any, place: str) -> None:
        """Add JSON that holds a schema, with what the schema grows by when its references are inlined."""
        self.json += json_bytes(value) + schema_growth(schema, place=place)

    def _cache(self, holder: Mapping[str, Any]) -> None:
        control = holder.get("cache_control")
        if control is None or self.cache_write == "long":
            return
        self.cache_write = "long" if control.get("ttl") == anthropic_fields.CACHE_TTL_LONG else "short"


COUNT_TOKENS: Final = Free(
    paths=(COUNT_TOKENS_PATH,),
    upstream_path=lambda _request, _model: COUNT_TOKENS_PATH,
    read=read_count_tokens,
    outgoing=count_tokens_body,
)
DIALECT: Final = Dialect(
    name=NAME,
    family="anthropic",
    paths=("/v1/messages",),
    upstream_path=lambda _request, _model: "/v1/messages",
    read=read,
    outgoing=outgoing,
    meter=anthropic_usage.meter,
    report=anthropic_usage.report,
    refusal=refusal,
    stream_error=stream_error,
    free=(COUNT_TOKENS,),
)
