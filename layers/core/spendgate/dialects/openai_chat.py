"""The dialect of OpenAI's chat completions, which most compatible servers speak too."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spendgate.core.feature import WEB_SEARCH
from spendgate.core.request import Demand, RequestFacts
from spendgate.dialects import fields, openai_common, openai_fields, openai_usage
from spendgate.dialects.dialect import NO_PATH, Dialect, Request
from spendgate.dialects.fields import invalid, under
from spendgate.dialects.json_strict import compact
from spendgate.dialects.measure import MediaFound, json_bytes, schema_growth, text_bytes

NAME: Final = "openai"
CAP_FIELDS: Final = ("max_completion_tokens", "max_tokens")
# What an absent cap is stamped as: reasoning models refuse the older name.
STAMPED_CAP_FIELD: Final = "max_completion_tokens"
CHOICES_MAX: Final = 128

# The request says nothing of how often, so what an operator allows is both the bound and the bill.
_SEARCH: Final = Demand(
    feature=WEB_SEARCH, field="web_search_options", fee=WEB_SEARCH, tokens_each=openai_fields.SEARCH_TOKENS
)
_TOP_LEVEL: Final = fields.record(
    openai_fields.TOP_LEVEL, required=("model", "messages"), read_on=openai_fields.CHECKED
)


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request; RequestInvalid or CostBoundUnknown name the field."""
    if query:
        invalid("the query", "empty")
    _TOP_LEVEL(body, "")
    measured = _Measured()
    measured.conversation(body["messages"])
    measured.options(body)
    return Request(facts=_facts(body, measured), body=body, wants_usage=openai_common.wants_usage(body))


def outgoing(request: Request, model: str, output_cap: int | None) -> bytes:
    """Return the body to send; what is stamped is what was bounded, and None stamps nothing."""
    body = dict(request.body)
    body["model"] = model
    for name in CAP_FIELDS:
        if body.get(name) is not None:
            # The same number by contract; a smaller bound must never go with a larger cap.
            body[name] = body[name] if output_cap is None else min(body[name], output_cap)
        else:
            # Some servers take null for "no limit".
            body.pop(name, None)
    cap_field = _cap_field(request)
    if request.facts.output_cap is None and output_cap is not None:
        body[cap_field] = output_cap
    elif cap_field == "max_tokens" and "max_tokens" not in body and "max_completion_tokens" in body:
        # A server that does not know the newer name may ignore it, and then nothing would limit its output.
        body[cap_field] = body.pop("max_completion_tokens")
    openai_common.ask_for_usage(body, request)
    return compact(body)


def _facts(body: Mapping[str, Any], measured: "_Measured") -> RequestFacts:
    return RequestFacts(
        dialect=NAME,
        model=body["model"],
        stream=bool(body.get("stream")),
        text_bytes=measured.text,
        json_bytes=measured.json,
        parts=measured.parts,
        tools=len(body.get("tools") or []) + len(body.get("functions") or []),
        structured=(body.get("response_format") or {"type": "text"})["type"] != "text",
        output_cap=_output_cap(body),
        choices=openai_common.count(body.get("n"), "n", most=CHOICES_MAX),
        # Models from gpt-5.6 on write to the cache without being asked, and bill it.
        cache_write="long" if measured.long_cache else "short",
        tool_results=_tool_results(body["messages"]),
        service_tier=openai_common.service_tier(body),
        media=measured.media.found(),
        demands=() if body.get("web_search_options") is None else (_SEARCH,),
    )


def _cap_field(request: Request) -> str:
    named = None if request.kind is None else request.kind.cap_field
    return named or STAMPED_CAP_FIELD


def _output_cap(body: Mapping[str, Any]) -> int | None:
    """Return the caller's cap; of two the larger, since servers differ in which one wins."""
    caps = [openai_common.output_cap(body[name], name) for name in CAP_FIELDS if body.get(name) is not None]
    return max(caps, default=None)


def _tool_results(messages: list[dict[str, Any]]) -> int:
    """Count the tool results after the last answer: what this request brings back."""
    count = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        count += message["role"] in {"tool", "function"}
    return count


@dataclass(slots=True)
class _Measured:
    """The sizes found while a request is walked."""

    text: int = 0
    json: int = 0
    parts: int = 0
    long_cache: bool = False
    media: MediaFound = field(default_factory=MediaFound)

    def conversation(self, messages: list[Any]) -> None:
        if not messages:
            invalid("messages", "an array with at least one message")
        for index, message in enumerate(messages):
            self._message(message, under("messages", index))

    def options(self, body: Mapping[str, Any]) -> None:
        for index, tool in enumerate(body.get("tools") or []):
            self._function(tool, tool.get("function") or {}, under("tools", index))
        for index, function in enumerate(body.get("functions") or []):
            self._function(function, function, under("functions", index))
        self._response_format(body.get("response_format"))
        self._choice(body.get("tool_choice"), "tool_choice", ("none", "auto", "required"))
        self._choice(body.get("function_call"), "function_call", ("none", "auto"))
        self._stop(body.get("stop"))
        if body.get("web_search_options") is not None:
            self.json += json_bytes(body["web_search_options"])
        if body.get("prediction") is not None:
            self._content(body["prediction"]["content"], "prediction.content", openai_fields.TEXT_PARTS)
        self._cache_ttl(body.get("prompt_cache_options"))

    def _message(self, message: Any, place: str) -> None:
        fields.json_object(message, place)
        role = message.get("role")
        fields.string(role, under(place, "role"))
        if role not in openai_fields.MESSAGES:
            invalid(under(place, "role"), f"one of {', '.join(openai_fields.MESSAGES)}")
        openai_fields.MESSAGES[role](message, place)
        self.parts += 1
        if message.get("content") is None and role not in {"assistant", "function"}:
            invalid(under(place, "content"), "a string or an array of parts")
        self._content(message.get("content"), under(place, "content"))
        for name in ("name", "tool_call_id", "refusal", "reasoning_content"):
            self.text += text_bytes(message.get(name) or "")
        for name in ("tool_calls", "function_call", "annotations"):
            if message.get(name):
                self.json += json_bytes(message[name])
        self.parts += len(message.get("tool_calls") or [])

    def _content(self, content: Any, place: str, kinds: Mapping[str, fields.Check] = openai_fields.PARTS) -> None:
        if content is None:
            return
        if isinstance(content, str):
            self.text += text_bytes(content)
            return
        if not isinstance(content, list):
            invalid(place, "a string or an array of parts")
        for index, part in enumerate(content):
            self._part(part, under(place, index), kinds)

    def _part(self, part: Any, place: str, kinds: Mapping[str, fields.Check]) -> None:
        kind = fields.kind_of(part, place, kinds)
        kinds[kind](part, place)
        self.parts += 1
        if kind in openai_fields.MEDIA_KINDS:
            self.media.add(openai_fields.MEDIA_KINDS[kind], place, detail=part[kind].get("detail"))
            self.text += text_bytes(part[kind].get("filename") or "")
        else:
            self.text += text_bytes(part[kind])
        self._cache_ttl(part.get("prompt_cache_breakpoint"))

    def _function(self, tool: Mapping[str, Any], function: Mapping[str, Any], place: str) -> None:
        self.json += json_bytes(tool)
        self._schema(function.get("parameters"), under(place, "parameters"))

    def _schema(self, schema: Any, place: str) -> None:
        """Add what a schema grows by when its references are inlined; the schema itself is counted already."""
        if schema:
            self.json += schema_growth(schema, place=place)

    def _response_format(self, response_format: Any) -> None:
        if response_format is not None:
            self.json += json_bytes(response_format)
            schema = (response_format.get("json_schema") or {}).get("schema")
            self._schema(schema, "response_format.json_schema.schema")

    def _choice(self, choice: Any, place: str, words: tuple[str, ...]) -> None:
        if choice is None:
            return
        if isinstance(choice, str):
            fields.one_of(*words)(choice, place)
        elif place == "function_call":
            fields.record({"name": fields.string}, required=("name",))(choice, place)
        else:
            fields.by_type(openai_fields.TOOL_CHOICES)(choice, place)
        self.json += json_bytes(choice)

    def _stop(self, stop: Any) -> None:
        if stop is None:
            return
        words = [stop] if isinstance(stop, str) else stop
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            invalid("stop", "a string or an array of strings")
        self.text += sum(text_bytes(word) for word in words)

    def _cache_ttl(self, options: Mapping[str, Any] | None) -> None:
        self.long_cache = self.long_cache or openai_common.writes_long(options)


DIALECT: Final = Dialect(
    name=NAME,
    family="openai",
    upstream_path=lambda _request, _model: "/chat/completions",
    read=read,
    outgoing=outgoing,
    meter=openai_usage.meter,
    report=openai_usage.report,
    refusal=openai_common.refusal,
    stream_error=openai_common.stream_error,
)
