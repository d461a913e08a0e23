"""The sizes of an OpenAI Responses request, and what it demands of the provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spendgate.core.feature import FILE_SEARCH, SERVER_STATE, WEB_SEARCH
from spendgate.core.request import Demand
from spendgate.core.usage import COUNT_MAX
from spendgate.dialects import fields, openai_common, openai_responses_fields, openai_responses_tools
from spendgate.dialects.fields import invalid, unbounded, under
from spendgate.dialects.measure import MediaFound, json_bytes, schema_growth, text_bytes
from spendgate.dialects.openai_fields import SEARCH_TOKENS

CALLS_FIELD: Final = "max_tool_calls"
# What the program that offers a search by default does without it.
_SEARCH_HINT: Final = 'Codex does with web_search = "disabled" in its config.toml'
_WORDS: Final = fields.one_of("none", "auto", "required")


@dataclass(slots=True)
class Measured:
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
    # The server's tools: of each feature where it stands first, and what a use of it costs in fees at most.
    searches: dict[str, tuple[str, int]] = field(default_factory=dict)

    def demands(self, calls: Any) -> tuple[Demand, ...]:
        """Return what an operator has to allow: each reference is one use, and all of them are read once.

        Any of the ``calls`` of tools may be of each tool.
        """
        if self.searches and calls is not None:
            calls = openai_common.count(calls, CALLS_FIELD, most=COUNT_MAX)
        found = [
            Demand(
                feature=feature,
                field=place,
                uses=calls,
                uses_field=CALLS_FIELD,
                stamps_uses=True,
                fee=feature,
                fees_each=fees,
                tokens_each=SEARCH_TOKENS if feature == WEB_SEARCH else 0,
                hint=_SEARCH_HINT if feature == WEB_SEARCH else "",
            )
            for feature, (place, fees) in self.searches.items()
        ]
        if self.references:
            found.append(Demand(feature=SERVER_STATE, field=self.references[0], uses=len(self.references), turns=1))
        return tuple(found)

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
        written = written_format(body)
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
            case _ if kind in openai_responses_fields.CALLS:
                self._call(item, kind, place)
            case "additional_tools" | "tool_search_output":
                for index, tool in enumerate(item["tools"]):
                    self._tool(tool, under(under(place, "tools"), index))
            case _:
                self._content(item["output"], openai_responses_fields.RESULT_PARTS, under(place, "output"))
                self.text += sum(text_bytes(item.get(name) or "") for name in ("call_id", "name", "namespace"))

    def _call(self, item: Mapping[str, Any], kind: str, place: str) -> None:
        self.json += json_bytes(item)
        if kind in openai_responses_fields.SERVER_CALLS:
            # What was found then is not in it, and may be read again from wherever the server keeps it.
            self.media.add("document", place)

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
        if tool["type"] in openai_responses_tools.SERVER_TOOLS:
            self._server_tool(tool, place)
        self._schemas(tool, place)
        # Those of a namespace are printed within it.
        for index, inner in enumerate(tool.get("tools") or []):
            self._schemas(inner, under(under(place, "tools"), index))

    def _server_tool(self, tool: Mapping[str, Any], place: str) -> None:
        feature = FILE_SEARCH if tool["type"] == FILE_SEARCH else WEB_SEARCH
        first, fees = self.searches.get(feature, (place, 1))
        if openai_responses_tools.IMAGE_RESULTS in (tool.get("search_content_types") or ()):
            # A search for images costs as much as one for text (OpenAI docs, pricing, 2026-07), and one call may do both.
            fees = 2
            # Images that are found are billed beside the context at some models, like those of pages.
            self.media.add("document", place)
        self.searches[feature] = (first, fees)

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
            fields.by_type(openai_responses_tools.TOOL_CHOICES)(choice, "tool_choice")
            if choice["type"] in openai_responses_tools.SERVER_TOOLS and not self.searches:
                unbounded("tool_choice", "of a tool that the request does not have")
        self.json += json_bytes(choice)

    def _cache(self, options: Mapping[str, Any] | None) -> None:
        self.long_cache = self.long_cache or openai_common.writes_long(options)


def written_format(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the format that the text of an answer is asked in."""
    found: Mapping[str, Any] = (body.get("text") or {}).get("format") or {}
    return found


def _kind_of(item: Any, place: str) -> str:
    """Return an item's type; messages may leave theirs out, and so may references to what the server holds."""
    fields.json_object(item, place)
    if item.get("type") is None:
        return "message" if "role" in item else "item_reference"
    return fields.kind_of(item, place, openai_responses_fields.ITEMS)
