"""The dialect of Bedrock's Converse and ConverseStream, as boto3 speaks it with a bearer key."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from spendgate.core.request import CacheWrite, RequestFacts
from spendgate.core.route import is_held
from spendgate.core.usage import COUNT_MAX
from spendgate.dialects import bedrock_fields, bedrock_usage, eventstream, fields
from spendgate.dialects.dialect import NO_PATH, Dialect, Request
from spendgate.dialects.fields import invalid, unbounded, under
from spendgate.dialects.json_strict import compact
from spendgate.dialects.measure import MediaFound, json_bytes, schema_growth, text_bytes
from spendgate.dialects.refusal import facts_document, sentence
from spendgate.errors import Refused

NAME: Final = "bedrock-converse"
STREAM_NAME: Final = "bedrock-converse-stream"
FAMILY: Final = "bedrock"
JSON: Final = "application/json"
# What botocore does not repeat, and knows by name; 402 is none of its statuses (service model, bedrock-runtime).
_ERRORS: Final = {
    400: (400, "ValidationException"),
    401: (403, "AccessDeniedException"),
    402: (400, "ServiceQuotaExceededException"),
    403: (403, "AccessDeniedException"),
    404: (404, "ResourceNotFoundException"),
    409: (400, "ConflictException"),
}
_FINAL: Final = (424, "ModelErrorException")
# What botocore repeats, and may.
_REPEATED: Final = {429: (429, "ThrottlingException")}
_UNAVAILABLE: Final = (503, "ServiceUnavailableException")


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
) -> Request:
    """Read a request for a whole answer; RequestInvalid or CostBoundUnknown name the field."""
    return _read(body, query, path, dialect=NAME)


def read_stream(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
) -> Request:
    """Read a request for a streamed answer."""
    request = _read(body, query, path, dialect=STREAM_NAME)
    return replace(request, facts=replace(request.facts, stream=True))


def outgoing(request: Request, _model: str, output_cap: int | None) -> bytes:
    """Return the body to send; what is stamped is what was bounded, and None stamps nothing. The path has the model."""
    config = dict(request.body.get("inferenceConfig", {}))
    if output_cap is not None:
        config["maxTokens"] = min(config.get("maxTokens", output_cap), output_cap)
    return compact({**request.body, "inferenceConfig": config})


def path_of(model: str, action: str) -> str:
    """Return the path of a call; an ARN has slashes of its own, and every colon is escaped as botocore does it."""
    return f"/model/{quote(model, safe='')}/{action}"


def status(refused: Refused) -> int:
    """Return the status of a refusal: one that botocore repeats only where that may help."""
    return _shape(refused)[0]


def refusal(refused: Refused, request_id: str) -> dict[str, Any]:
    """Return the error document that botocore parses: of what it does not model it keeps the message alone.

    The facts stand beside it for whoever reads the body itself.
    """
    told = {"__type": _shape(refused)[1], "message": _message(refused)}
    return {**told, "details": {"request_id": request_id, **facts_document(refused)}}


def refusal_headers(refused: Refused) -> tuple[tuple[str, str], ...]:
    """Return what botocore takes the error's code from, and ours, which it keeps among the answer's headers."""
    return (("x-amzn-errortype", _shape(refused)[1]), ("x-spendgate-code", refused.code))


def stream_error(refused: Refused, request_id: str) -> bytes:
    """Return the refusal as an exception of the stream, which botocore raises as an EventStreamError."""
    told = {"message": f"{_message(refused)} (request {request_id})"}
    return eventstream.exception("modelStreamErrorException", compact(told))


def is_stream(content_type: str) -> bool:
    """Tell a binary event stream."""
    return eventstream.CONTENT_TYPE in content_type


def _shape(refused: Refused) -> tuple[int, str]:
    if refused.retryable:
        return _REPEATED.get(refused.status, _UNAVAILABLE)
    return _ERRORS.get(refused.status, _FINAL)


def _message(refused: Refused) -> str:
    fits = refused.facts.fits_output_tokens
    most = "" if fits is None else f" An output of {fits} tokens would fit."
    return f"{refused.code}: {sentence(refused)}{most}"


def _read(body: Mapping[str, Any], query: str, path: Mapping[str, str], *, dialect: str) -> Request:
    if query:
        invalid("the query", "empty")
    model = path.get("model", "")
    fields.name(model, "the model in the path")
    if is_held(model):
        unbounded("modelId", "that names a prompt or a router")
    bedrock_fields.TOP_LEVEL(body, "")
    measured = _Measured()
    measured.conversation(body)
    measured.options(body)
    accept = eventstream.CONTENT_TYPE if dialect == STREAM_NAME else JSON
    return Request(facts=_facts(body, measured, dialect=dialect, model=model), body=body, headers=(("accept", accept),))


def _facts(body: Mapping[str, Any], measured: "_Measured", *, dialect: str, model: str) -> RequestFacts:
    tier = body.get("serviceTier", {}).get("type", "default")
    latency = body.get("performanceConfig", {}).get("latency", "standard")
    return RequestFacts(
        dialect=dialect,
        model=model,
        text_bytes=measured.text,
        json_bytes=measured.json,
        parts=measured.parts,
        tools=measured.tools,
        structured="textFormat" in body.get("outputConfig", {}),
        output_cap=_cap(body.get("inferenceConfig", {}).get("maxTokens")),
        cache_write=measured.cache_write,
        tool_results=_tool_results(body["messages"]),
        # An absent tier is the default one: nothing in an account changes it (service model, ServiceTier).
        service_tier=tier,
        speed=latency if latency != "standard" else None,
        media=measured.media.found(),
    )


def _cap(value: int | None) -> int | None:
    if value is not None and not 1 <= value <= COUNT_MAX:
        invalid("inferenceConfig.maxTokens", "a whole number of at least 1")
    return value


def _tool_results(messages: list[dict[str, Any]]) -> int:
    """Count the tool results after the last answer: what this request brings back."""
    count = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        count += sum("toolResult" in block for block in message["content"])
    return count


@dataclass(slots=True)
class _Measured:
    """The sizes found while a request is walked."""

    text: int = 0
    json: int = 0
    parts: int = 0
    tools: int = 0
    cache_write: CacheWrite = "none"
    media: MediaFound = field(default_factory=MediaFound)

    def conversation(self, body: Mapping[str, Any]) -> None:
        if not body["messages"]:
            invalid("messages", "an array with at least one message")
        for index, block in enumerate(body.get("system", [])):
            self._block(block, under("system", index))
        for index, message in enumerate(body["messages"]):
            self.parts += 1
            self._blocks(message["content"], under(under("messages", index), "content"))

    def options(self, body: Mapping[str, Any]) -> None:
        config = body.get("toolConfig", {})
        for index, tool in enumerate(config.get("tools", [])):
            if "cachePoint" in tool:
                self._cache(tool["cachePoint"])
                continue
            place = under(under(under("toolConfig", "tools"), index), "toolSpec")
            self.tools += 1
            spec = tool["toolSpec"]
            self.json += json_bytes(spec)
            self.json += schema_growth(spec["inputSchema"]["json"], place=under(place, "inputSchema"))
        if "toolChoice" in config:
            self.json += json_bytes(config["toolChoice"])
        if "outputConfig" in body:
            # The schema is a string of JSON, which is counted as one: laid out again it is twice as long at most.
            self.json += json_bytes(body["outputConfig"])
            self._written_schema(body["outputConfig"])
        if "additionalModelRequestFields" in body:
            self.json += json_bytes(body["additionalModelRequestFields"])
        self.text += sum(text_bytes(word) for word in body.get("inferenceConfig", {}).get("stopSequences", []))

    def _written_schema(self, config: Mapping[str, Any]) -> None:
        if "textFormat" in config:
            schema = config["textFormat"]["structure"]["jsonSchema"]["schema"]
            if any(name in schema for name in ("$ref", "$dynamicRef", "$recursiveRef")):
                unbounded("outputConfig.textFormat.structure.jsonSchema.schema", "with references")

    def _blocks(self, blocks: list[dict[str, Any]], place: str) -> None:
        for index, block in enumerate(blocks):
            self._block(block, under(place, index))

    def _block(self, block: Mapping[str, Any], place: str) -> None:
        self.parts += 1
        ((kind, value),) = block.items()
        match kind:
            case "text":
                self.text += text_bytes(value)
            case "json":
                self.json += json_bytes(value)
            case "image":
                self.media.add("image", place)
            case "document":
                self.media.add("document", place)
            case "toolUse":
                self.text += text_bytes(value["name"]) + text_bytes(value["toolUseId"])
                self.json += json_bytes(value["input"])
            case "toolResult":
                self.text += text_bytes(value["toolUseId"])
                self._blocks(value["content"], under(place, "content"))
            case "cachePoint":
                self._cache(value)
            case _:
                # reasoningContent: the check has let nothing else through.
                self._reasoning(value, place)

    def _reasoning(self, value: Mapping[str, Any], place: str) -> None:
        shown = value.get("reasoningText", {})
        if not shown.get("text"):
            # What is redacted, or only signed, stands for thinking that was not shown.
            self.media.add("reasoning", place)
        said = (shown.get("text", ""), shown.get("signature", ""), value.get("redactedContent", ""))
        self.text += sum(text_bytes(text) for text in said)

    def _cache(self, point: Mapping[str, Any]) -> None:
        if self.cache_write != "long":
            self.cache_write = "long" if point.get("ttl") == bedrock_fields.TTL_LONG else "short"


DIALECT: Final = Dialect(
    name=NAME,
    family=FAMILY,
    upstream_path=lambda _request, model: path_of(model, "converse"),
    read=read,
    outgoing=outgoing,
    meter=bedrock_usage.meter,
    report=bedrock_usage.report,
    refusal=refusal,
    stream_error=stream_error,
    is_stream=is_stream,
    status=status,
    refusal_headers=refusal_headers,
)
STREAM_DIALECT: Final = replace(
    DIALECT,
    name=STREAM_NAME,
    upstream_path=lambda _request, model: path_of(model, "converse-stream"),
    read=read_stream,
)
