"""The dialect of OpenAI's Responses: one answer to all that the request itself holds.

What a server would add (earlier responses, conversations, stored items) stands nowhere in the request: it may fill the context,
and needs an allowance. So do the server's own searches, as often as ``max_tool_calls`` says. Stored prompts, which may bring tools
along, and all other tools of the server are refused by name.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from spendgate.core.feature import uses_to_stamp
from spendgate.core.request import RequestFacts
from spendgate.dialects import fields, openai_common, openai_responses_fields, openai_responses_usage
from spendgate.dialects.dialect import NO_PATH, Dialect, Request
from spendgate.dialects.fields import invalid
from spendgate.dialects.json_strict import compact
from spendgate.dialects.openai_responses_measure import CALLS_FIELD, Measured, written_format
from spendgate.errors import Refused

NAME: Final = "openai-responses"
CAP_FIELD: Final = "max_output_tokens"

_TOP_LEVEL: Final = fields.record(
    openai_responses_fields.TOP_LEVEL, required=("model", "input"), read_on=openai_responses_fields.CHECKED
)


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request; RequestInvalid or CostBoundUnknown name the field."""
    if query:
        invalid("the query", "empty")
    _TOP_LEVEL(body, "")
    measured = Measured()
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
    calls = uses_to_stamp(request.facts)
    if calls is not None:
        # It holds for all of the server's tools together.
        stated = body.get(CALLS_FIELD)
        body[CALLS_FIELD] = calls if stated is None else min(stated, calls)
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


def _facts(body: Mapping[str, Any], measured: "Measured") -> RequestFacts:
    cap = body.get(CAP_FIELD)
    return RequestFacts(
        dialect=NAME,
        model=body["model"],
        stream=bool(body.get("stream")),
        text_bytes=measured.text,
        json_bytes=measured.json,
        parts=measured.parts,
        tools=measured.tools,
        structured=written_format(body).get("type", "text") != "text",
        output_cap=None if cap is None else openai_common.output_cap(cap, CAP_FIELD),
        # Models from gpt-5.6 on write to the cache without being asked, and bill it.
        cache_write="long" if measured.long_cache else "short",
        tool_results=measured.tool_results,
        service_tier=openai_common.service_tier(body),
        media=measured.media.found(),
        demands=measured.demands(body.get(CALLS_FIELD)),
    )


DIALECT: Final = Dialect(
    name=NAME,
    family="openai",
    upstream_path=lambda _request, _model: "/responses",
    read=read,
    outgoing=outgoing,
    meter=openai_responses_usage.meter,
    report=openai_responses_usage.report,
    refusal=openai_common.refusal,
    stream_error=stream_error,
)
