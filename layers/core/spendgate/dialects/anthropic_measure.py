"""The sizes of an Anthropic request: its text, its JSON and its media, wherever they stand in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spendgate.core.feature import COMPACTION
from spendgate.core.request import CacheWrite, Demand
from spendgate.core.usage import COUNT_MAX
from spendgate.dialects import anthropic_fields, anthropic_tools, fields
from spendgate.dialects.fields import invalid, under
from spendgate.dialects.measure import MediaFound, json_bytes, schema_growth, text_bytes


@dataclass(slots=True)
class Measured:
    """The sizes found while a request is walked, and what it demands of the provider."""

    text: int = 0
    json: int = 0
    parts: int = 0
    hidden: int = 0
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
            elif tool["type"] in anthropic_tools.CLIENT_TOOLS:
                self.json += json_bytes(tool)
                self.hidden += anthropic_tools.HIDDEN_TOKENS[tool["type"]]
            else:
                self._server_tool(tool, place)
        self._edits((body.get("context_management") or {}).get("edits") or [])
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
                self.text += text_bytes(block.get("toolset_name") or "")
                self.text += text_bytes((block.get("caller") or {}).get("tool_id", ""))
                self.json += json_bytes(block["input"])
            case "image":
                self.media.add("image", place)
            case "document":
                self._document(block, place)
            case _ if kind in anthropic_fields.UNMEASURED:
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
        feature, fee = anthropic_tools.feature_of(tool["type"])
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
                turns=anthropic_tools.SERVER_TURNS_MAX,
                fee=fee,
                uses_field="max_uses",
            )
        )

    def _edits(self, edits: Sequence[Mapping[str, Any]]) -> None:
        for index, edit in enumerate(edits):
            if edit["type"] != anthropic_fields.COMPACTION_EDIT:
                continue
            place = f"context_management.edits[{index}]"
            if any(demand.feature == COMPACTION for demand in self.demands):
                invalid(place, "the only edit of its kind")
            self.text += text_bytes(edit.get("instructions") or "")
            turns = max((demand.turns or 1 for demand in self.demands), default=1)
            # At most once before and once after each turn of the model: nobody says less. max_tokens does not cap its summary.
            self.demands.append(Demand(feature=COMPACTION, field=place, uses=turns + 1, uncapped=True))

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
        self.cache_write = "long" if control.get("ttl") == anthropic_tools.CACHE_TTL_LONG else "short"
