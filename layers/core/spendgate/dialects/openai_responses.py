"""The dialect of OpenAI's Responses: one answer to all that the request itself holds.

What a server would add (earlier responses, conversations, stored items) stands nowhere in the request: it may fill the context,
and needs an allowance. Stored prompts, which may bring tools along, and the server's own tools are refused by name.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spendgate.core.feature import SERVER_STATE
from spendgate.core.request import Demand, RequestFacts
from spendgate.dialects import fields, openai_common, openai_responses_fields, openai_responses_usage
from spendgate.dialects.dialect import NO_PATH, Dialect, Request
from spendgate.dialects.fields import invalid, unbounded, under
from spendgate.dialects.json_strict import compact
from spendgate.dialects.measure import MediaFound, json_bytes, schema_growth, text_bytes
from spendgate.errors import Refused

NAME: Final = "openai-responses"
CAP_FIELD: Final = "max_output_tokens"

_TOP_LEVEL: Final = fields.record(
    openai_responses_fields.TOP_LEVEL, required=("model", "input"), read_on=openai_responses_fields.CHECKED
)
_WORDS: Final = fields.one_of("none", "auto", "required")


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request; RequestInvalid or CostBoundUnknown name the field."""
    if query:
        invalid("the query", "empty")
    _TOP_LEVEL(body, "")
    measured = _Measured()
    measured.input(body["input"])
    measured.options(body)
    return Request(facts=_facts(body, measured), body=body)


def outgoing(request: Request, model: str, output_cap: int | None) -> bytes:
    """Return the body to send; what is stamped is what was bounded, and None stamps nothing."""
    body = dict(request.body) | {"model": model}
    if body.get(CAP_FIELD) is None:
        # Some servers take null for "no limit".
        body.pop(CAP_FIELD, None)
    if output_cap is not None:
        # The same number by contract; a smaller bound must never go with a larger cap.
        body[CAP_FIELD] = min(body.get(CAP_FIELD, output_cap), output_cap)
    return compact(body)


def stream_error(refused: Refused, request_id: str) -> bytes:
    """Return the refusal as the protocol's own ``error`` event; SDKs raise by the ``error`` in it.

    The blank lines before it close whatever was cut.
    """
    error = openai_common.refusal(refused, request_id)["error"]
    event = {
        "type": "error",
        "code": error["code"],
        "message": error["message"],
        "param": error["param"],
        # The numbers of the events that went before are not kept.
        "sequence_number": 0,
        "error": error,
    }
    return b"\n\nevent: error\ndata: " + json.dumps(event).encode() + b"\n\n"


def _facts(body: Mapping[str, Any], measured: "_Measured") -> RequestFacts:
    cap = body.get(CAP_FIELD)
    return RequestFacts(
        dialect=NAME,
        model=body["model"],
        stream=bool(body.get("stream")),
        text_bytes=measured.text,
        json_bytes=measured.json,
        parts=measured.parts,
        tools=measured.tools,
        structured=_format(body).get("type", "text") != "text",
        output_cap=None if cap is None else openai_common.output_cap(cap, CAP_FIELD),
        # Models from gpt-5.6 on write to the cache without being asked, and bill it.
        cache_write="long" if measured.long_cache else "short",
        tool_results=measured.tool_results,
        service_tier=openai_common.service_tier(body),
        media=measured.media.found(),
        demands=measured.demands(),
    )


def _format(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (body.get("text") or {}).get("format") or {}
    return found


@dataclass(slots=True)
class _Measured:
    """The sizes found while a request is walked."""

    text: int = 0
    json: int = 0
    parts: int = 0
    tools: int = 0
    # Those after the last item that the model made.
    tool_results: int = 0
    long_cache: bool = False
    media: MediaFound = field(default_factory=MediaFound)
    # Where the request names what the server holds.
    references: list[str] = field(default_factory=list)

    def demands(self) -> tuple[Demand, ...]:
        """Return what an operator has to allow: each reference is one use, and all of them are read once."""
        if not self.references:
            return ()
        return (Demand(feature=SERVER_STATE, field=self.references[0], uses=len(self.references), turns=1),)

    def input(self, given: Any) -> None:
        if isinstance(given, str):
            self.text += text_bytes(given)
            self.parts += 1
            return
        if not isinstance(given, list) or not given:
            invalid("input", "a string or an array with at least one item")
        for index, item in enumerate(given):
            self._item(item, under("input", index))

    def options(self, body: Mapping[str, Any]) -> None:
        self.text += text_bytes(body.get("instructions") or "")
        self.parts += body.get("instructions") is not None
        for index, tool in enumerate(body.get("tools") or []):
            self._tool(tool, under("tools", index))
        written = _format(body)
        if written:
            self.json += json_bytes(written)
            self._schema(written.get("schema"), "text.format.schema")
        self._choice(body.get("tool_choice"))
        self._cache(body.get("prompt_cache_options"))
        if body.get("previous_response_id") is not None:
            self._reference("previous_response_id")
        if body.get("conversation") is not None:
            openai_responses_fields.conversation(body["conversation"], "conversation")
            self._reference("conversation")

    def _reference(self, place: str) -> None:
        self.references.append(place)
        # What is held there may have pages and images, which some models bill beside their context.
        self.media.add("document", place)

    def _item(self, item: Any, place: str) -> None:
        kind = _kind_of(item, place)
        openai_responses_fields.ITEMS[kind](item, place)
        self.parts += 1
        if kind in openai_responses_fields.RESULTS:
            self.tool_results += 1
        elif kind in openai_responses_fields.CALLS or kind == "reasoning" or item.get("role") == "assistant":
            self.tool_results = 0
        match kind:
            case "message":
                self._content(item["content"], openai_responses_fields.MESSAGE_PARTS, under(place, "content"))
            case "reasoning":
                self._reasoning(item, place)
            case "item_reference":
                self._reference(place)
            case "computer_call_output":
                # A picture of a screen is looked at as it is.
                self.media.add("image", under(place, "output"), detail="original")
                self.json += json_bytes(item | {"output": None})
            case "function_call" | "custom_tool_call" | "computer_call" | "tool_search_call":
                self.json += json_bytes(item)
            case "additional_tools" | "tool_search_output":
                for index, tool in enumerate(item["tools"]):
                    self._tool(tool, under(under(place, "tools"), index))
            case _:
                self._content(item["output"], openai_responses_fields.RESULT_PARTS, under(place, "output"))
                self.text += sum(text_bytes(item.get(name) or "") for name in ("call_id", "name", "namespace"))

    def _content(self, content: Any, kinds: Mapping[str, fields.Check], place: str) -> None:
        if isinstance(content, str):
            self.text += text_bytes(content)
            return
        if not isinstance(content, list):
            invalid(place, "a string or an array of parts")
        for index, part in enumerate(content):
            kind = fields.kind_of(part, under(place, index), kinds)
            kinds[kind](part, under(place, index))
            self.parts += 1
            if kind in openai_responses_fields.MEDIA_KINDS:
                self.media.add(
                    openai_responses_fields.MEDIA_KINDS[kind], under(place, index), detail=part.get("detail")
                )
                self.text += text_bytes(part.get("filename") or "")
            else:
                self.text += text_bytes(part["refusal" if kind == "refusal" else "text"])
            self.json += sum(json_bytes(part[name]) for name in ("annotations", "logprobs") if part.get(name))
            self._cache(part.get("prompt_cache_breakpoint"))

    def _reasoning(self, item: Mapping[str, Any], place: str) -> None:
        texts = [part["text"] for name in ("summary", "content") for part in item.get(name) or []]
        sealed = item.get("encrypted_content") or ""
        if not sealed and not item.get("content"):
            # A summary is not what the model reads: that is kept at the server, under the item's id.
            unbounded(place, "of type 'reasoning' without its encrypted_content")
        if not any(texts):
            # It stands for reasoning that is not shown, as much as the model can do.
            self.media.add("reasoning", place)
        self.parts += len(texts)
        self.text += sum(text_bytes(text) for text in (*texts, sealed))

    def _tool(self, tool: Mapping[str, Any], place: str) -> None:
        self.json += json_bytes(tool)
        self._schemas(tool, place)
        # Those of a namespace are printed within it.
        for index, inner in enumerate(tool.get("tools") or []):
            self._schemas(inner, under(under(place, "tools"), index))

    def _schemas(self, tool: Mapping[str, Any], place: str) -> None:
        self.tools += 1
        for name in ("parameters", "output_schema"):
            self._schema(tool.get(name), under(place, name))

    def _schema(self, schema: Any, place: str) -> None:
        """Add what a schema grows by when its references are inlined; the schema itself is counted already."""
        if schema:
            self.json += schema_growth(schema, place=place)

    def _choice(self, choice: Any) -> None:
        if choice is None:
            return
        if isinstance(choice, str):
            _WORDS(choice, "tool_choice")
        else:
            fields.by_type(openai_responses_fields.TOOL_CHOICES)(choice, "tool_choice")
        self.json += json_bytes(choice)

    def _cache(self, options: Mapping[str, Any] | None) -> None:
        self.long_cache = self.long_cache or openai_common.writes_long(options)


def _kind_of(item: Any, place: str) -> str:
    """Return an item's type; messages may leave theirs out, and so may references to what the server holds."""
    fields.json_object(item, place)
    if item.get("type") is None:
        return "message" if "role" in item else "item_reference"
    return fields.kind_of(item, place, openai_responses_fields.ITEMS)


DIALECT: Final = Dialect(
    name=NAME,
    family="openai",
    paths=("/v1/responses",),
    upstream_path=lambda _request, _model: "/responses",
    read=read,
    outgoing=outgoing,
    meter=openai_responses_usage.meter,
    report=openai_responses_usage.report,
    refusal=openai_common.refusal,
    stream_error=stream_error,
)
