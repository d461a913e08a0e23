"""The dialect of OpenAI's embeddings: numbers come back, and no tokens."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spendgate.core.request import RequestFacts
from spendgate.core.usage import Usage, UsageReport
from spendgate.dialects import fields, openai_common, openai_prompts, openai_usage
from spendgate.dialects.charges import Charges
from spendgate.dialects.dialect import NO_PATH, Dialect, Request
from spendgate.dialects.fields import invalid
from spendgate.dialects.json_strict import compact, parse_answer
from spendgate.dialects.metering import Counts, Identity, StreamMeter, capped, usage_report

NAME: Final = "openai-embeddings"

CHECKED: Final = "2026-11-30"
# Source: openai-python 3.57.0 (``types/embedding_create_params.py``), read on that day.
_TOP_LEVEL: Final = fields.record(
    {
        "model": fields.name,
        "input": fields.anything,
        "dimensions": fields.nullable(fields.integer),
        "encoding_format": fields.nullable(fields.one_of("float", "base64")),
        "user": fields.nullable(fields.string),
    },
    required=("model", "input"),
    read_on=CHECKED,
)


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request; RequestInvalid or CostBoundUnknown name the field."""
    if query:
        invalid("the query", "empty")
    _TOP_LEVEL(body, "")
    sizes = openai_prompts.sizes(body["input"], "input")
    facts = RequestFacts(
        dialect=NAME,
        model=body["model"],
        text_bytes=sum(sizes),
        parts=len(sizes),
        inputs=len(sizes),
        output_cap=0,
        has_output=False,
    )
    return Request(facts=facts, body=body)


def outgoing(request: Request, model: str, _output_cap: int | None) -> bytes:
    """Return the body to send; there is no output to be capped."""
    return compact(dict(request.body) | {"model": model})


def report(body: bytes, request: Request | None = None) -> UsageReport:
    """Read a whole answer. Only here, where nothing is put out, a missing count of output is 0."""
    document = parse_answer(body)
    counts, identity, charges = Counts(openai_usage.PATHS), Identity(), Charges(request)
    if not isinstance(document, dict):
        return usage_report(usage=None, identity=identity, problem="answer_unreadable", finished=False)
    identity.take(document)
    counts.take(document.get("usage"))
    charges.take(document.get("usage"))
    usage = _usage(counts) if counts.seen else None
    if document.get("error") is not None:
        return usage_report(usage=usage, identity=identity, problem="error_in_answer", finished=False)
    read = usage_report(usage=usage, identity=identity, problem=_problem_of(counts), finished=True)
    return replace(read, charge=charges.charge)


def _usage(counts: Counts) -> Usage:
    # What the total holds beside the prompt can only have been read.
    output = counts.detail("completion")
    return Usage(input_uncached=max(counts.detail("prompt"), counts.detail("total") - output), output=capped(output))


def _problem_of(counts: Counts) -> str | None:
    if not counts.seen:
        return "usage_missing"
    known = counts.get("prompt") is not None or counts.get("total") is not None
    return None if known and not counts.unusable else "usage_unusable"


def _meter(request: Request) -> StreamMeter:
    # Nobody streams embeddings. Should one answer so, it is read as what it looks like, and no end of it is known.
    return openai_usage.meter(request)


DIALECT: Final = Dialect(
    name=NAME,
    family="openai",
    upstream_path=lambda _request, _model: "/embeddings",
    read=read,
    outgoing=outgoing,
    meter=_meter,
    report=report,
    refusal=openai_common.refusal,
    stream_error=openai_common.stream_error,
)
