"""The fields of OpenAI's Responses that may be sent, as data.

Source: the types of openai-python 3.57.0 (``types/responses``), read on 2026-11-30. A field, an item or a tool that is not
here is refused by name: it may cost something that the bound does not know.
"""

from typing import Final

from spendgate.core.media import MediaKind
from spendgate.dialects import fields, openai_responses_tools
from spendgate.dialects.fields import Check
from spendgate.dialects.openai_fields import CACHE_TTLS

# The day on which the list below was last read against its source.
CHECKED: Final = "2026-11-30"

_CACHE_BREAKPOINT: Final = fields.nullable(
    fields.record({"mode": fields.one_of("explicit"), "ttl": fields.one_of(*CACHE_TTLS)})
)
# A program's calls are work of the server; a caller who is named is the model itself.
_CALLER: Final = fields.nullable(fields.by_type({"direct": fields.record({"type": fields.string})}))
_TEXT: Final[dict[str, Check]] = {"type": fields.string, "text": fields.string}

# The texts of messages and of tools' results; ``text`` or ``refusal`` is what is measured.
PARTS: Final = {
    "input_text": fields.record(_TEXT | {"prompt_cache_breakpoint": _CACHE_BREAKPOINT}, required=("text",)),
    "output_text": fields.record(
        _TEXT | {"annotations": fields.nullable(fields.array), "logprobs": fields.nullable(fields.array)},
        required=("text",),
    ),
    "refusal": fields.record({"type": fields.string, "refusal": fields.string}, required=("refusal",)),
}
# Their bytes are not measured: what they cost is a matter of tables (core/media.py).
_FILE: Final[dict[str, Check]] = dict.fromkeys(
    ("file_id", "file_data", "file_url", "filename"), fields.nullable(fields.string)
)
_MEDIA_PART: Final[dict[str, Check]] = {"type": fields.string, "prompt_cache_breakpoint": _CACHE_BREAKPOINT}
MEDIA_PARTS: Final = {
    "input_image": fields.record(
        _MEDIA_PART
        | {
            "image_url": fields.nullable(fields.string),
            "file_id": fields.nullable(fields.string),
            "detail": fields.nullable(fields.one_of("auto", "low", "high", "original")),
        }
    ),
    "input_file": fields.record(
        _MEDIA_PART | _FILE | {"detail": fields.nullable(fields.one_of("auto", "low", "high"))}
    ),
    "input_audio": fields.record(
        _MEDIA_PART
        | {
            "input_audio": fields.record({"data": fields.string, "format": fields.string}, required=("data", "format")),
        },
        required=("input_audio",),
    ),
}
MEDIA_KINDS: Final[dict[str, MediaKind]] = {"input_image": "image", "input_file": "document", "input_audio": "audio"}
MESSAGE_PARTS: Final = PARTS | MEDIA_PARTS
RESULT_PARTS: Final = {
    "input_text": PARTS["input_text"],
    "input_image": MEDIA_PARTS["input_image"],
    "input_file": MEDIA_PARTS["input_file"],
}
SUMMARY_PARTS: Final = {"summary_text": fields.record(_TEXT, required=("text",))}
REASONING_PARTS: Final = {"reasoning_text": fields.record(_TEXT, required=("text",))}

_ITEM: Final[dict[str, Check]] = {
    "type": fields.string,
    "id": fields.nullable(fields.string),
    "status": fields.nullable(fields.string),
}
_CALL: Final[dict[str, Check]] = _ITEM | {
    "call_id": fields.string,
    "name": fields.string,
    "namespace": fields.nullable(fields.string),
    "caller": _CALLER,
}
_RESULT: Final[dict[str, Check]] = _CALL | {"output": fields.anything, "name": fields.nullable(fields.string)}
# ``content`` and ``output`` are read by the dialect itself, which measures them.
_PLAIN_ITEMS: Final = {
    "message": fields.record(
        _ITEM
        | {
            "role": fields.one_of("user", "assistant", "system", "developer"),
            "content": fields.anything,
            "phase": fields.nullable(fields.string),
        },
        required=("role", "content"),
    ),
    "function_call": fields.record(_CALL | {"arguments": fields.string}, required=("call_id", "name", "arguments")),
    "function_call_output": fields.record(_RESULT, required=("call_id", "output")),
    "custom_tool_call": fields.record(_CALL | {"input": fields.string}, required=("call_id", "name", "input")),
    "custom_tool_call_output": fields.record(_RESULT, required=("call_id", "output")),
    "computer_call": fields.record(
        _ITEM
        | {
            "call_id": fields.string,
            "action": fields.nullable(fields.json_object),
            "actions": fields.nullable(fields.each(fields.json_object)),
            "pending_safety_checks": fields.nullable(fields.array),
        },
        required=("call_id",),
    ),
    "computer_call_output": fields.record(
        _ITEM
        | {
            "call_id": fields.string,
            "output": fields.record(
                {
                    "type": fields.one_of("computer_screenshot"),
                    "image_url": fields.nullable(fields.string),
                    "file_id": fields.nullable(fields.string),
                },
                required=("type",),
            ),
            "acknowledged_safety_checks": fields.nullable(fields.array),
        },
        required=("call_id", "output"),
    ),
    # What the server holds under an id: an operator allows so many of them.
    "item_reference": fields.record({"type": fields.nullable(fields.string), "id": fields.name}, required=("id",)),
    # What a server's tool did in an earlier turn; what it found is not in it.
    "web_search_call": fields.record(_ITEM | {"action": fields.nullable(fields.json_object)}),
    "file_search_call": fields.record(
        _ITEM
        | {
            "queries": fields.nullable(fields.each(fields.string)),
            "results": fields.nullable(fields.each(fields.json_object)),
        }
    ),
    "tool_search_call": fields.record(
        _ITEM
        | {
            "call_id": fields.nullable(fields.string),
            "execution": fields.one_of("client"),
            "arguments": fields.anything,
        },
        required=("execution", "arguments"),
    ),
    "reasoning": fields.record(
        _ITEM
        | {
            "summary": fields.nullable(fields.each(fields.by_type(SUMMARY_PARTS))),
            "content": fields.nullable(fields.each(fields.by_type(REASONING_PARTS))),
            "encrypted_content": fields.nullable(fields.string),
        }
    ),
}
SERVER_CALLS: Final = frozenset({"web_search_call", "file_search_call"})
CALLS: Final = SERVER_CALLS | {"function_call", "custom_tool_call", "computer_call", "tool_search_call"}
RESULTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "computer_call_output", "tool_search_output"}
)

ITEMS: Final = _PLAIN_ITEMS | {
    # Tools that are not among ``tools``, and are measured as those.
    "additional_tools": fields.record(
        _ITEM
        | {"role": fields.one_of("developer"), "tools": fields.each(fields.by_type(openai_responses_tools.TOOLS))},
        required=("role", "tools"),
    ),
    "tool_search_output": fields.record(
        _ITEM
        | {
            "call_id": fields.nullable(fields.string),
            "execution": fields.one_of("client"),
            "tools": fields.each(fields.by_type(openai_responses_tools.TOOLS)),
        },
        required=("execution", "tools"),
    ),
}

TEXT_FORMATS: Final = {
    "text": fields.record({"type": fields.string}),
    "json_object": fields.record({"type": fields.string}),
    "json_schema": fields.record(
        {
            "type": fields.string,
            "name": fields.name,
            "description": fields.nullable(fields.string),
            "schema": fields.nullable(fields.json_object),
            "strict": fields.nullable(fields.boolean),
        },
        required=("name",),
    ),
}

# They ask for more of the answer to be written down; none of it is a token.
INCLUDES: Final = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)


def conversation(value: object, place: str) -> None:
    """Check the name of a conversation: an id, or an object with one."""
    if isinstance(value, str):
        fields.name(value, place)
    else:
        fields.record({"id": fields.name}, required=("id",))(value, place)


# Fields that cost nothing beside what is measured of them, and at the end those that say nothing unless they are null.
TOP_LEVEL: Final[dict[str, Check]] = {
    "model": fields.name,
    "input": fields.anything,
    "instructions": fields.nullable(fields.string),
    "max_output_tokens": fields.anything,
    "max_tool_calls": fields.nullable(fields.integer),
    "stream": fields.nullable(fields.boolean),
    "stream_options": fields.nullable(fields.record({"include_obfuscation": fields.boolean})),
    "include": fields.nullable(fields.each(fields.one_of(*INCLUDES))),
    "metadata": fields.nullable(fields.mapping_of(fields.string)),
    # What Codex says of itself (0.171.0, seen 2026-11-30): beside the input, as metadata is.
    "client_metadata": fields.nullable(fields.mapping_of(fields.string)),
    "parallel_tool_calls": fields.nullable(fields.boolean),
    "prompt_cache_key": fields.nullable(fields.string),
    "prompt_cache_options": fields.nullable(
        fields.record({"mode": fields.one_of("implicit", "explicit"), "ttl": fields.one_of(*CACHE_TTLS)})
    ),
    "prompt_cache_retention": fields.nullable(fields.one_of("in_memory", "24h")),
    "reasoning": fields.nullable(
        fields.record(
            {
                "context": fields.nullable(fields.one_of("auto", "current_turn", "all_turns")),
                "effort": fields.nullable(fields.string),
                "generate_summary": fields.nullable(fields.string),
                # "pro" bills the sum of several models' work, and no cap covers it.
                "mode": fields.nullable(fields.one_of("standard")),
                "summary": fields.nullable(fields.string),
            }
        )
    ),
    "safety_identifier": fields.nullable(fields.string),
    "service_tier": fields.nullable(fields.one_of("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")),
    # Keeping an answer is free.
    "store": fields.nullable(fields.boolean),
    "temperature": fields.nullable(fields.number),
    "text": fields.nullable(
        fields.record(
            {
                "format": fields.nullable(fields.by_type(TEXT_FORMATS)),
                "verbosity": fields.nullable(fields.string),
            }
        )
    ),
    "tool_choice": fields.anything,
    "tools": fields.nullable(fields.each(fields.by_type(openai_responses_tools.TOOLS))),
    "top_logprobs": fields.nullable(fields.integer),
    "top_p": fields.nullable(fields.number),
    "truncation": fields.nullable(fields.one_of("auto", "disabled")),
    "user": fields.nullable(fields.string),
    "background": fields.nullable(fields.always(False)),  # noqa: FBT003 - the value that is harmless
    "background_options": fields.absent,
    "context_management": fields.absent,
    "conversation": fields.anything,
    "moderation": fields.absent,
    "multi_agent": fields.absent,
    "previous_response_id": fields.nullable(fields.name),
    "prompt": fields.absent,
}
