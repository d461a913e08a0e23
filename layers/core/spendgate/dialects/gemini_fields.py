"""The fields of Gemini's ``generateContent`` that may be sent, as data; and how both of their spellings become one.

Source: the types of google-genai 3.6.1 (``types.py`` and ``models.py``), read on 2026-11-29. What is not here is refused
by name: it may cost something that the bound does not know.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spendgate.dialects import fields
from spendgate.dialects.fields import Check, invalid, unbounded, under

# The day on which the list below was last read against its source.
CHECKED: Final = "2026-11-29"

_UNDERSCORE: Final = re.compile(r"_([a-z0-9])")


@dataclass(frozen=True, slots=True)
class Message:
    """A protobuf message: every field may be written in camelCase or in snake_case, and null is no value.

    ``read_on`` is given for a request itself: the day when its fields were last read.
    """

    fields: Mapping[str, "Shape"]
    required: tuple[str, ...] = ()
    read_on: str | None = None


@dataclass(frozen=True, slots=True)
class Many:
    """A repeated field; Google's parser takes one value for a list of one."""

    of: "Shape"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map whose names are the caller's own."""

    of: "Shape"


Shape = Check | Message | Many | MapOf


def normalised(value: Any, shape: Shape, place: str) -> Any:
    """Return a value with its fields in camelCase; RequestInvalid or CostBoundUnknown name the field.

    Protobuf's JSON knows two spellings of a field and servers differ in which one wins, so only one of them leaves.
    """
    match shape:
        case Message():
            return _message(value, shape, place)
        case Many():
            items = value if isinstance(value, list) else [value]
            return [normalised(item, shape.of, under(place, index)) for index, item in enumerate(items)]
        case MapOf():
            fields.json_object(value, place)
            return {key: normalised(item, shape.of, under(place, key)) for key, item in value.items()}
        case check:
            check(value, place)
            return value


def camel(name: str) -> str:
    """Return the camelCase of a field's name."""
    return _UNDERSCORE.sub(lambda match: match[1].upper(), name)


def _message(value: Any, shape: Message, place: str) -> dict[str, Any]:
    fields.json_object(value, place)
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = camel(key)
        if name in found:
            invalid(under(place, name), "written once, not in two spellings")
        if name not in shape.fields:
            if shape.read_on is not None:
                fields.unlisted(key, place=under(place, name), checked=shape.read_on)
            unbounded(under(place, name))
        # Kept until all are read, so that a null beside a value of the other spelling is seen too.
        found[name] = None if item is None else normalised(item, shape.fields[name], under(place, name))
    for name in shape.required:
        if found.get(name) is None:
            invalid(under(place, name), "given")
    return {name: item for name, item in found.items() if item is not None}


ROLES: Final = ("user", "model", "function")

RESOLUTIONS: Final = tuple(f"MEDIA_RESOLUTION_{level}" for level in ("UNSPECIFIED", "LOW", "MEDIUM", "HIGH"))
_BLOB: Final = Message(
    {"mimeType": fields.name, "data": fields.string, "displayName": fields.string}, required=("mimeType", "data")
)
_FILE: Final = Message(
    {"mimeType": fields.string, "fileUri": fields.name, "displayName": fields.string}, required=("fileUri",)
)
# How a medium is read: within what it is bounded at. A number of tokens for it is no field that can be checked.
_MEDIA: Final[dict[str, Shape]] = {
    "inlineData": _BLOB,
    "fileData": _FILE,
    "mediaResolution": Message(
        {"level": fields.one_of(*RESOLUTIONS, "MEDIA_RESOLUTION_ULTRA_HIGH"), "numTokens": fields.absent}
    ),
    "videoMetadata": Message({"startOffset": fields.string, "endOffset": fields.string, "fps": fields.number}),
}
MEDIA_KINDS: Final = ("inlineData", "fileData")

PART: Final = Message(
    {
        **_MEDIA,
        "text": fields.string,
        "thought": fields.boolean,
        "thoughtSignature": fields.string,
        "functionCall": Message(
            {
                "id": fields.string,
                "name": fields.name,
                "args": fields.json_object,
                "partialArgs": fields.absent,
                "willContinue": fields.always(expected=False),
            },
            required=("name",),
        ),
        "functionResponse": Message(
            {
                "id": fields.string,
                "name": fields.name,
                "response": fields.json_object,
                # Media that a function gave back.
                "parts": Many(Message(_MEDIA)),
                "willContinue": fields.always(expected=False),
                "scheduling": fields.string,
            },
            required=("name", "response"),
        ),
    }
)
PART_KINDS: Final = ("text", "functionCall", "functionResponse", *MEDIA_KINDS)
CONTENT: Final = Message({"role": fields.one_of(*ROLES), "parts": Many(PART)})

# ``ref`` and ``defs`` are left out: with them a schema grows, and it is this form that has no growth.
_SCHEMA: Final[dict[str, Shape]] = {
    **dict.fromkeys(
        (
            "type", "format", "title", "description", "nullable", "enum", "default", "example", "pattern",
            "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum",
            "required", "propertyOrdering", "additionalProperties",
        ),
        fields.anything,
    ),
}  # fmt: skip
SCHEMA: Final = Message(_SCHEMA)
_SCHEMA.update(items=SCHEMA, properties=MapOf(SCHEMA), anyOf=Many(SCHEMA))

FUNCTION: Final = Message(
    {
        "name": fields.name,
        "description": fields.string,
        "behavior": fields.string,
        "parameters": SCHEMA,
        "parametersJsonSchema": fields.anything,
        "response": SCHEMA,
        "responseJsonSchema": fields.anything,
    },
    required=("name",),
)
# Tools that run at the provider, which decides how often: only what an operator allows passes. Not among them: code, whose
# loop ends at a number that nobody has published, maps, files and remote tools; a search for images brings images.
SERVER_TOOLS: Final = ("googleSearch", "urlContext")
TOOL: Final = Message(
    {
        "functionDeclarations": Many(FUNCTION),
        "googleSearch": Message(
            {
                "searchTypes": Message({"webSearch": Message({})}),
                "timeRangeFilter": Message({"startTime": fields.string, "endTime": fields.string}),
                "excludeDomains": Many(fields.string),
            }
        ),
        "urlContext": Message({}),
    }
)
TOOL_CONFIG: Final = Message(
    {
        "functionCallingConfig": Message(
            {
                "mode": fields.string,
                "allowedFunctionNames": Many(fields.string),
                "streamFunctionCallArguments": fields.boolean,
            }
        ),
        "includeServerSideToolInvocations": fields.always(expected=False),
    }
)

GENERATION_CONFIG: Final = Message(
    {
        "maxOutputTokens": fields.integer,
        "candidateCount": fields.integer,
        "stopSequences": Many(fields.string),
        "temperature": fields.number,
        "topP": fields.number,
        "topK": fields.number,
        "seed": fields.integer,
        "presencePenalty": fields.number,
        "frequencyPenalty": fields.number,
        "logprobs": fields.integer,
        "responseLogprobs": fields.boolean,
        "responseMimeType": fields.string,
        "responseSchema": SCHEMA,
        "responseJsonSchema": fields.anything,
        # Images and speech have rates of their own, and no cap of their own.
        "responseModalities": Many(fields.one_of("TEXT")),
        "mediaResolution": fields.one_of(*RESOLUTIONS),
        "enableEnhancedCivicAnswers": fields.boolean,
        # Inside maxOutputTokens, measured; a thinking budget by itself is no cap.
        "thinkingConfig": Message(
            {"includeThoughts": fields.boolean, "thinkingBudget": fields.integer, "thinkingLevel": fields.string}
        ),
    }
)

SERVICE_TIERS: Final = ("unspecified", "standard", "flex", "priority")
TOP_LEVEL: Final = Message(
    {
        # The path has the model; the body may repeat it.
        "model": fields.name,
        "contents": Many(CONTENT),
        "systemInstruction": Message({"role": fields.string, "parts": Many(PART)}),
        "tools": Many(TOOL),
        "toolConfig": TOOL_CONFIG,
        "safetySettings": Many(Message(dict.fromkeys(("category", "threshold", "method"), fields.string))),
        "generationConfig": GENERATION_CONFIG,
        "labels": MapOf(fields.string),
        "serviceTier": fields.one_of(*SERVICE_TIERS),
        "store": fields.always(expected=False),
        "cachedContent": fields.name,
    },
    required=("contents",),
    read_on=CHECKED,
)

# google-genai writes ``embedContentConfig`` for its other platform only; that one wins where both are written.
EMBEDDING: Final = Message(
    {
        "model": fields.name,
        "content": Message({"role": fields.string, "parts": Many(PART)}),
        "taskType": fields.string,
        "title": fields.string,
        "outputDimensionality": fields.integer,
    },
    required=("content",),
    read_on=CHECKED,
)
BATCH: Final = Message({"model": fields.name, "requests": Many(EMBEDDING)}, required=("requests",), read_on=CHECKED)
