"""What a Gemini request holds, found by walking it: text, JSON, media, and tools that run at the provider."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spendgate.core.feature import SERVER_STATE, WEB_FETCH, WEB_SEARCH
from spendgate.core.media import MediaKind
from spendgate.core.request import Demand
from spendgate.dialects import gemini_fields
from spendgate.dialects.fields import invalid, under
from spendgate.dialects.measure import MediaFound, json_bytes, schema_growth, text_bytes

# Those that Google documents as images (ai.google.dev/gemini-api/docs/image-understanding).
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_STILL_BRANDS: Final = (b"heic", b"heix", b"heim", b"heis", b"mif1")
_HEAD_CHARACTERS: Final = 16
_STANDARD_ALPHABET: Final = str.maketrans("-_", "+/")
# A tool, what an operator allows it as, and the fee of the price row; a page that is read costs its tokens only.
_FEATURES: Final = {"googleSearch": (WEB_SEARCH, "web_search"), "urlContext": (WEB_FETCH, None)}


@dataclass(slots=True)
class Measured:
    """The sizes found while a request is walked."""

    text: int = 0
    json: int = 0
    parts: int = 0
    tools: int = 0
    media: MediaFound = field(default_factory=MediaFound)
    demands: list[Demand] = field(default_factory=list)

    def conversation(self, body: Mapping[str, Any]) -> None:
        """Walk what is said."""
        if not body["contents"]:
            invalid("contents", "an array with at least one content")
        if "systemInstruction" in body:
            self.content(body["systemInstruction"], "systemInstruction")
        for index, content in enumerate(body["contents"]):
            self.content(content, under("contents", index))

    def options(self, body: Mapping[str, Any]) -> None:
        """Walk what is said beside it: tools, schemas, what the provider has stored."""
        for index, tool in enumerate(body.get("tools", [])):
            self._tool(tool, under("tools", index))
        config = body.get("generationConfig", {})
        for name in ("responseSchema", "responseJsonSchema"):
            if name in config:
                self._json_with_schemas({name: config[name]}, "generationConfig", name)
        if "toolConfig" in body:
            self.json += json_bytes(body["toolConfig"])
        self.text += sum(text_bytes(word) for word in config.get("stopSequences", []))
        if "cachedContent" in body:
            # Nobody here knows what was stored: any number of tokens of any kind, read once with the rest.
            self.media.add("file", "cachedContent")
            self.demands.append(Demand(feature=SERVER_STATE, field="cachedContent", uses=1, turns=1))

    def content(self, content: Mapping[str, Any], place: str) -> None:
        """Walk one content."""
        self.parts += 1
        for index, part in enumerate(content.get("parts", [])):
            self._part(part, under(under(place, "parts"), index))

    def _tool(self, tool: Mapping[str, Any], place: str) -> None:
        for number, function in enumerate(tool.get("functionDeclarations", [])):
            self.tools += 1
            where = under(under(place, "functionDeclarations"), number)
            self._json_with_schemas(function, where, "parametersJsonSchema", "responseJsonSchema")
        for name in gemini_fields.SERVER_TOOLS:
            feature, fee = _FEATURES[name]
            if name in tool:
                self.tools += 1
                self.json += json_bytes(tool[name])
                if all(demand.feature != feature for demand in self.demands):
                    self.demands.append(Demand(feature=feature, field=under(place, name), fee=fee))

    def _part(self, part: Mapping[str, Any], place: str) -> None:
        kinds = [kind for kind in gemini_fields.PART_KINDS if kind in part]
        signature = part.get("thoughtSignature", "")
        if signature and kinds in ([], ["text"]) and not part.get("text"):
            # It stands for thinking that was not shown, as much as the model can do; streams end with such a part.
            self.media.add("reasoning", under(place, "thoughtSignature"))
        elif len(kinds) != 1:
            invalid(place, f"one of {', '.join(gemini_fields.PART_KINDS)}")
        self.parts += 1
        self.text += text_bytes(signature) + text_bytes(part.get("text", ""))
        self._media(part, place)
        for kind, value in (("functionCall", "args"), ("functionResponse", "response")):
            if kind in part:
                called = part[kind]
                self.text += text_bytes(called["name"]) + text_bytes(called.get("id", ""))
                self.json += json_bytes(called.get(value, {}))
        for index, inner in enumerate(part.get("functionResponse", {}).get("parts", [])):
            where = under(under(under(place, "functionResponse"), "parts"), index)
            if sum(kind in inner for kind in gemini_fields.MEDIA_KINDS) != 1:
                invalid(where, f"one of {', '.join(gemini_fields.MEDIA_KINDS)}")
            self.parts += 1
            self._media(inner, where)

    def _media(self, part: Mapping[str, Any], place: str) -> None:
        """Count the medium of a part; its bytes are no measure of it, and are in no other count."""
        if "inlineData" in part:
            self.media.add(_kind_of(part["inlineData"]), under(place, "inlineData"))
        if "fileData" in part:
            # What stands at an address is what is there when it is read, whatever the request calls it.
            self.media.add("file", under(place, "fileData"))
        for kind in gemini_fields.MEDIA_KINDS:
            labels = part.get(kind, {})
            self.text += sum(text_bytes(labels.get(name, "")) for name in ("mimeType", "displayName", "fileUri"))

    def _json_with_schemas(self, value: Mapping[str, Any], place: str, *schemas: str) -> None:
        """Add JSON that holds schemas, with what they grow by when their references are inlined."""
        self.json += json_bytes(value)
        self.json += sum(schema_growth(value[name], place=under(place, name)) for name in schemas if name in value)


def _kind_of(blob: Mapping[str, Any]) -> MediaKind:
    """Return what inline data is at most: an image only where both its name and its first bytes say so."""
    mime_type = blob["mimeType"].partition(";")[0].strip().lower()
    if mime_type in _IMAGES and _is_image(blob["data"]):
        return "image"
    if mime_type == "application/pdf":
        return "document"
    return "audio" if mime_type.startswith("audio/") else "file"


def _is_image(data: str) -> bool:
    try:
        head = base64.b64decode(data[:_HEAD_CHARACTERS].translate(_STANDARD_ALPHABET), validate=True)
    except (binascii.Error, ValueError):
        return False
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff")):
        return True
    if head.startswith(b"RIFF"):
        return head[8:12] == b"WEBP"
    return head[4:8] == b"ftyp" and head[8:12] in _STILL_BRANDS
