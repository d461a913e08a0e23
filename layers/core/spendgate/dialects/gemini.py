"""The dialect of Gemini's generateContent and streamGenerateContent, and its free token count."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from spendgate.core.feature import SERVER_STATE
from spendgate.core.request import RequestFacts
from spendgate.core.usage import COUNT_MAX
from spendgate.dialects import fields, gemini_fields, gemini_usage
from spendgate.dialects.dialect import NO_PATH, Dialect, Free, Request
from spendgate.dialects.fields import invalid, under
from spendgate.dialects.gemini_fields import normalised
from spendgate.dialects.gemini_measure import Measured
from spendgate.dialects.json_strict import compact
from spendgate.dialects.refusal import facts_document, sentence
from spendgate.errors import Refused

NAME: Final = "gemini"
STREAM_NAME: Final = "gemini-stream"
KEY_QUERY: Final = "key"
_EVENTS: Final = "alt=sse"
_CHOICES_MAX: Final = 128
MODELS: Final = "models/"
_PLAIN_TEXT: Final = "text/plain"
_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
) -> Request:
    """Read a request for a whole answer; RequestInvalid or CostBoundUnknown name the field."""
    if query:
        invalid("the query", "empty, or the key")
    return _read(body, path, dialect=NAME)


def read_stream(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
) -> Request:
    """Read a request for a streamed answer: events with ``alt=sse``, else one JSON array."""
    if query not in ("", _EVENTS):
        invalid("the query", "empty, the key, or alt=sse")
    request = _read(body, path, dialect=STREAM_NAME)
    return replace(request, facts=replace(request.facts, stream=True), query=query)


def outgoing(request: Request, _model: str, output_cap: int | None) -> bytes:
    """Return the body to send; what is stamped is what was bounded, and None stamps nothing. The path has the model."""
    config = dict(request.body.get("generationConfig", {}))
    if output_cap is not None:
        config["maxOutputTokens"] = min(config.get("maxOutputTokens", output_cap), output_cap)
    return compact({**request.body, "generationConfig": config})


def read_count_tokens(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
) -> Request:
    """Read a request for a token count, which is free whatever it holds: only what routes it is looked at."""
    if query:
        invalid("the query", "empty, or the key")
    model = model_of(path)
    found = dict(body)
    check_model(found.pop("model", None), model, "model")
    for name in ("generateContentRequest", "generate_content_request"):
        if name in found:
            fields.json_object(found[name], name)
            check_model(found[name].get("model"), model, under(name, "model"))
    return Request(facts=RequestFacts(dialect=NAME, model=model, text_bytes=0), body=found)


def count_tokens_body(request: Request, model: str) -> bytes:
    """Return the body of a token count for a candidate's model."""
    body = dict(request.body)
    for name in ("generateContentRequest", "generate_content_request"):
        if name in body:
            body[name] = {**body[name], "model": f"{MODELS}{model}"}
    return compact(body)


def refusal(refused: Refused, request_id: str) -> dict[str, Any]:
    """Return the error document that Google's SDKs parse; they keep all of it as the error's details."""
    facts = {"@type": "spendgate.refusal", "request_id": request_id, **facts_document(refused)}
    status = _STATUSES.get(refused.status, "UNAVAILABLE")
    return {"error": {"code": refused.status, "status": status, "message": sentence(refused), "details": [facts]}}


def stream_error(refused: Refused, request_id: str) -> bytes:
    """Return the refusal as a document; the answer's meter says how it stands in the stream."""
    return compact(refusal(refused, request_id))


def _read(body: Mapping[str, Any], path: Mapping[str, str], *, dialect: str) -> Request:
    model = model_of(path)
    found = normalised(body, gemini_fields.TOP_LEVEL, "")
    check_model(found.pop("model", None), model, "model")
    measured = Measured()
    measured.conversation(found)
    measured.options(found)
    return Request(facts=_facts(found, measured, dialect=dialect, model=model), body=found)


def model_of(path: Mapping[str, str]) -> str:
    """Return the model that the path names."""
    model = path.get("model", "")
    fields.name(model, "the model in the path")
    return model


def check_model(value: Any, model: str, place: str) -> None:
    """Refuse a body that names another model than the path: only one of them is priced."""
    if value is None:
        return
    fields.string(value, place)
    if value.removeprefix(MODELS) != model:
        invalid(place, "left out, or the model of the path")


def _facts(body: Mapping[str, Any], measured: Measured, *, dialect: str, model: str) -> RequestFacts:
    config = body.get("generationConfig", {})
    tier = body.get("serviceTier", "unspecified")
    mime_type = config.get("responseMimeType", _PLAIN_TEXT)
    choices = _within(config.get("candidateCount"), "generationConfig.candidateCount", _CHOICES_MAX) or 1
    if choices > 1 and any(demand.feature != SERVER_STATE for demand in measured.demands):
        # Nobody says whether each of them searches by itself.
        fields.unbounded("generationConfig.candidateCount", f"above 1 with {measured.demands[0].field}")
    schemas = [config[name] for name in ("responseSchema", "responseJsonSchema") if name in config]
    return RequestFacts(
        dialect=dialect,
        model=model,
        text_bytes=measured.text,
        json_bytes=measured.json,
        parts=measured.parts,
        tools=measured.tools,
        structured=bool(schemas) or mime_type != _PLAIN_TEXT,
        output_cap=_within(config.get("maxOutputTokens"), "generationConfig.maxOutputTokens", COUNT_MAX),
        choices=choices,
        tool_results=_tool_results(body["contents"]),
        service_tier=tier if tier != "unspecified" else None,
        media=measured.media.found(),
        demands=tuple(measured.demands),
    )


def _within(value: int | None, place: str, most: int) -> int | None:
    if value is not None and not 1 <= value <= most:
        invalid(place, f"a whole number from 1 to {most}")
    return value


def _tool_results(contents: list[dict[str, Any]]) -> int:
    """Count the function responses after the last answer: what this request brings back."""
    count = 0
    for content in reversed(contents):
        if content.get("role") == "model":
            break
        count += sum("functionResponse" in part for part in content.get("parts", []))
    return count


def upstream(action: str, model: str) -> str:
    """Return the provider's path of an action."""
    return f"/v1beta/{MODELS}{quote(model)}:{action}"


COUNT_TOKENS: Final = Free(
    upstream_path=lambda _request, model: upstream("countTokens", model),
    read=read_count_tokens,
    outgoing=count_tokens_body,
)
DIALECT: Final = Dialect(
    name=NAME,
    family="gemini",
    upstream_path=lambda _request, model: upstream("generateContent", model),
    read=read,
    outgoing=outgoing,
    meter=gemini_usage.meter,
    report=gemini_usage.report,
    refusal=refusal,
    stream_error=stream_error,
    key_query=KEY_QUERY,
    free=(COUNT_TOKENS,),
)
STREAM_DIALECT: Final = replace(
    DIALECT,
    name=STREAM_NAME,
    upstream_path=lambda _request, model: upstream("streamGenerateContent", model),
    read=read_stream,
    # An array is a stream too, whatever its content type; what is neither has no end, and stays reserved.
    is_stream=lambda _content_type: True,
    free=(),
)
