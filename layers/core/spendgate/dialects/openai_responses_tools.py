"""The tools of OpenAI's Responses that may be sent, as data: the caller's own, and the server's searches.

Source: the types of openai-python 3.57.0 (``types/responses/*_tool_param.py``), read on 2026-11-30.
"""

from typing import Final

from spendgate.dialects import fields
from spendgate.dialects.fields import Check

IMAGE_RESULTS: Final = "image"

_TOOL: Final[dict[str, Check]] = {
    "type": fields.string,
    "name": fields.name,
    "description": fields.nullable(fields.string),
    "allowed_callers": fields.nullable(fields.each(fields.one_of("direct"))),
    # What is loaded later stands in the request all the same, and is measured. Only the server's search would read twice.
    "defer_loading": fields.nullable(fields.boolean),
}
TOOL_FORMATS: Final = {
    "text": fields.record({"type": fields.string}),
    "grammar": fields.record(
        {"type": fields.string, "definition": fields.string, "syntax": fields.string}, required=("definition", "syntax")
    ),
}
_OWN_TOOLS: Final = {
    "function": fields.record(
        _TOOL
        | {
            "parameters": fields.nullable(fields.json_object),
            "output_schema": fields.nullable(fields.json_object),
            "strict": fields.nullable(fields.boolean),
        },
        required=("name",),
    ),
    "custom": fields.record(_TOOL | {"format": fields.nullable(fields.by_type(TOOL_FORMATS))}, required=("name",)),
}


_SEARCH: Final[dict[str, Check]] = {
    "type": fields.string,
    # Guidance, and no limit: the whole context is what bounds it.
    "search_context_size": fields.nullable(fields.one_of("low", "medium", "high")),
    "search_content_types": fields.nullable(fields.each(fields.one_of("text", IMAGE_RESULTS))),
    "user_location": fields.nullable(
        fields.record(
            {
                "type": fields.nullable(fields.one_of("approximate")),
                "city": fields.nullable(fields.string),
                "country": fields.nullable(fields.string),
                "region": fields.nullable(fields.string),
                "timezone": fields.nullable(fields.string),
            }
        )
    ),
}
_WEB_SEARCH: Final = fields.record(
    _SEARCH
    | {
        "external_web_access": fields.nullable(fields.boolean),
        # "unlimited" takes what was found out of the context's hold.
        "return_token_budget": fields.nullable(fields.one_of("default")),
        "filters": fields.nullable(
            fields.record(
                dict.fromkeys(("allowed_domains", "blocked_domains"), fields.nullable(fields.each(fields.string)))
            )
        ),
    }
)
_WEB_SEARCH_PREVIEW: Final = fields.record(_SEARCH)
_FILE_SEARCH: Final = fields.record(
    {
        "type": fields.string,
        "vector_store_ids": fields.each(fields.name),
        "filters": fields.nullable(fields.json_object),
        "max_num_results": fields.nullable(fields.integer),
        "ranking_options": fields.nullable(fields.json_object),
    },
    required=("vector_store_ids",),
)
# They run at the provider, at the caller's expense; ``max_tool_calls`` says how often at most.
SERVER_TOOLS: Final[dict[str, Check]] = {
    "web_search": _WEB_SEARCH,
    "web_search_2025_08_26": _WEB_SEARCH,
    "web_search_preview": _WEB_SEARCH_PREVIEW,
    "web_search_preview_2025_03_11": _WEB_SEARCH_PREVIEW,
    "file_search": _FILE_SEARCH,
}

# All others run at the provider too, and nothing bounds them.
TOOLS: Final = (
    _OWN_TOOLS
    | SERVER_TOOLS
    | {
        "namespace": fields.record(
            {
                "type": fields.string,
                "name": fields.name,
                "description": fields.nullable(fields.string),
                "tools": fields.each(fields.by_type(_OWN_TOOLS)),
            },
            required=("name", "tools"),
        ),
        # The caller searches, and sends what was found with its next request.
        "tool_search": fields.record(
            {
                "type": fields.string,
                "execution": fields.one_of("client"),
                "description": fields.nullable(fields.string),
                "parameters": fields.nullable(fields.json_object),
            },
            required=("execution",),
        ),
    }
)

_NAMED: Final = fields.record({"type": fields.string, "name": fields.string}, required=("name",))
# Which of them has to be used; each is read with its tool.
_HOSTED: Final = fields.record({"type": fields.string})
TOOL_CHOICES: Final = dict.fromkeys(SERVER_TOOLS, _HOSTED) | {
    "function": _NAMED,
    "custom": _NAMED,
    "allowed_tools": fields.record(
        {
            "type": fields.string,
            "mode": fields.one_of("auto", "required"),
            "tools": fields.each(fields.json_object),
        },
        required=("tools",),
    ),
}
