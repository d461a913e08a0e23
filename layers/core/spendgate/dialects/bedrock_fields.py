"""The fields of Bedrock's Converse that may be sent, as data.

Source: botocore 1.43.106, service model bedrock-runtime 2023-09-30 (ConverseRequest), read on 2026-11-30. What is not here
is refused by name: it may cost something that the bound does not know. Refused among the known: guardrailConfig and
guardContent (a guardrail bills text units of its own), promptVariables (text that the server holds), systemTool and
server_tool_use (run at the provider), video and audio (their length is not known), s3Location (so is their content).
"""

from collections.abc import Mapping
from typing import Any, Final

from spendgate.dialects import anthropic_fields, fields
from spendgate.dialects.fields import Check, invalid, unbounded, under

ROLES: Final = ("user", "assistant")
TTL_LONG: Final = "1h"


def union(kinds: Mapping[str, Check]) -> Check:
    """Return the check for a tagged union: an object with exactly one member; another member is not bounded yet."""

    def checked(value: Any, place: str) -> None:
        fields.json_object(value, place)
        for key, item in value.items():
            if key not in kinds:
                unbounded(under(place, key))
            kinds[key](item, under(place, key))
        if len(value) != 1:
            invalid(place, f"an object with one of {', '.join(kinds)}")

    return checked


_BYTES: Final = union({"bytes": fields.string})
_EMPTY: Final = fields.record({})
CACHE_POINT: Final = fields.record(
    {"type": fields.one_of("default"), "ttl": fields.one_of("5m", TTL_LONG)}, required=("type",)
)
_TEXT: Final = union({"text": fields.string})
_IMAGE: Final = fields.record({"format": fields.string, "source": _BYTES}, required=("format", "source"))
_DOCUMENT: Final = fields.record(
    {
        "format": fields.string,
        "name": fields.string,
        "source": union({"bytes": fields.string, "text": fields.string, "content": fields.each(_TEXT)}),
        "context": fields.string,
        "citations": fields.record({"enabled": fields.boolean}),
    },
    required=("name", "source"),
)
_RESULT_CONTENT: Final = union({"json": fields.anything, "text": fields.string, "image": _IMAGE, "document": _DOCUMENT})
_TOOL_USE: Final = fields.record(
    # A type says that the tool ran at the provider.
    {"toolUseId": fields.string, "name": fields.string, "input": fields.anything, "type": fields.absent},
    required=("toolUseId", "name", "input"),
)
_TOOL_RESULT: Final = fields.record(
    {
        "toolUseId": fields.string,
        "content": fields.each(_RESULT_CONTENT),
        "status": fields.one_of("success", "error"),
        "type": fields.absent,
    },
    required=("toolUseId", "content"),
)
_REASONING: Final = union(
    {
        "reasoningText": fields.record({"text": fields.string, "signature": fields.string}),
        "redactedContent": fields.string,
    }
)
BLOCK: Final = union(
    {
        "text": fields.string,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "toolUse": _TOOL_USE,
        "toolResult": _TOOL_RESULT,
        "cachePoint": CACHE_POINT,
        "reasoningContent": _REASONING,
    }
)
_MESSAGE: Final = fields.record(
    {"role": fields.one_of(*ROLES), "content": fields.each(BLOCK)}, required=("role", "content")
)
_SYSTEM: Final = union({"text": fields.string, "cachePoint": CACHE_POINT})
_TOOL_SPEC: Final = fields.record(
    {
        "name": fields.name,
        "description": fields.string,
        "inputSchema": union({"json": fields.json_object}),
        "strict": fields.boolean,
    },
    required=("name", "inputSchema"),
)
_TOOL: Final = union({"toolSpec": _TOOL_SPEC, "cachePoint": CACHE_POINT})
_TOOL_CHOICE: Final = union(
    {"auto": _EMPTY, "any": _EMPTY, "tool": fields.record({"name": fields.name}, required=("name",))}
)
_JSON_SCHEMA: Final = fields.record(
    {"schema": fields.string, "name": fields.string, "description": fields.string}, required=("schema",)
)
_OUTPUT_FORMAT: Final = fields.record(
    {"type": fields.one_of("json_schema"), "structure": union({"jsonSchema": _JSON_SCHEMA})},
    required=("type", "structure"),
)
# Fields of the vendor's own, of which only those are known to be harmless (2026-11-30): Claude's thinking is inside
# maxTokens (Claude docs, extended thinking), and a smaller choice of words costs nothing.
_ADDITIONAL: Final = fields.record({"thinking": fields.by_type(anthropic_fields.THINKING), "top_k": fields.integer})

TOP_LEVEL: Final = fields.record(
    {
        "messages": fields.each(_MESSAGE),
        "system": fields.each(_SYSTEM),
        "inferenceConfig": fields.record(
            {
                "maxTokens": fields.integer,
                "temperature": fields.number,
                "topP": fields.number,
                "stopSequences": fields.each(fields.string),
            }
        ),
        "toolConfig": fields.record({"tools": fields.each(_TOOL), "toolChoice": _TOOL_CHOICE}, required=("tools",)),
        "additionalModelRequestFields": _ADDITIONAL,
        # What of the model's own answer is shown beside the common form.
        "additionalModelResponseFieldPaths": fields.each(fields.string),
        "requestMetadata": fields.mapping_of(fields.string),
        "performanceConfig": fields.record({"latency": fields.one_of("standard", "optimized")}),
        # Reserved capacity has no price a token.
        "serviceTier": fields.record({"type": fields.one_of("priority", "default", "flex")}, required=("type",)),
        "outputConfig": fields.record({"textFormat": _OUTPUT_FORMAT, "effort": fields.string}),
    },
    required=("messages",),
)
