"""The dialects of Gemini's embeddings, one content or several: numbers come back, and no tokens."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spendgate.core.request import RequestFacts
from spendgate.core.usage import Usage, UsageReport, usable_count
from spendgate.dialects import fields, gemini, gemini_fields, gemini_usage
from spendgate.dialects.dialect import NO_PATH, Dialect, Meter, Request
from spendgate.dialects.fields import invalid, under
from spendgate.dialects.gemini_measure import Measured
from spendgate.dialects.json_strict import compact, parse_answer
from spendgate.dialects.measure import text_bytes
from spendgate.dialects.metering import Counts, Identity, capped, usage_report

NAME: Final = "gemini-embeddings"
BATCH_NAME: Final = "gemini-batch-embeddings"
# Film and pages have rates of their own, which no price row holds.
_MEDIA: Final = frozenset({"image", "audio"})
_COUNTS: Final = {name: (name,) for name in ("prompt", "total", "audio", "image")}
# Only embeddings spell the first so (python-genai#2658, pydantic-ai#6781).
_DETAILS: Final = ("promptTokenDetails", "promptTokensDetails")
_VECTORS: Final = ("embedding", "embeddings")


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
) -> Request:
    """Read a request for one embedding; RequestInvalid or CostBoundUnknown name the field."""
    model = _model(query, path)
    found = gemini_fields.normalised(body, gemini_fields.EMBEDDING, "")
    return Request(facts=_facts([_entry(found, model, "")], dialect=NAME, model=model), body=found)


def read_batch(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
) -> Request:
    """Read a request for several; RequestInvalid or CostBoundUnknown name the field."""
    model = _model(query, path)
    found = gemini_fields.normalised(body, gemini_fields.BATCH, "")
    gemini.check_model(found.pop("model", None), model, "model")
    if not found["requests"]:
        invalid("requests", "an array with at least one request")
    entries = [_entry(one, model, under("requests", index)) for index, one in enumerate(found["requests"])]
    return Request(facts=_facts(entries, dialect=BATCH_NAME, model=model), body=found)


def outgoing(request: Request, model: str, _output_cap: int | None) -> bytes:
    """Return the body to send, each of its requests for the candidate's model; there is no output to be capped."""
    named = {"model": f"{gemini.MODELS}{model}"}
    if "requests" not in request.body:
        return compact({**request.body, **named})
    return compact({"requests": [{**one, **named} for one in request.body["requests"]]})


def report(body: bytes, request: Request | None = None) -> UsageReport:
    """Read an answer. One without a word of its usage is charged in full: older models never say it."""
    document = parse_answer(body)
    counts, identity = Counts(_COUNTS), Identity()
    if not isinstance(document, dict):
        return usage_report(usage=None, identity=identity, problem="answer_unreadable", finished=False)
    counts.take(_told(document))
    usage = _usage(counts) if counts.seen else None
    if document.get("error") is not None:
        return usage_report(usage=usage, identity=identity, problem="error_in_answer", finished=False)
    if not any(document.get(name) for name in _VECTORS):
        return usage_report(usage=usage, identity=identity, problem="answer_unreadable", finished=False)
    problem = _problem(counts, request)
    read_ = usage_report(usage=usage, identity=identity, problem=problem, finished=True)
    return replace(read_, in_full=problem in ("usage_missing", "usage_without_modalities"))


def _model(query: str, path: Mapping[str, str]) -> str:
    if query:
        invalid("the query", "empty, or the key")
    return gemini.model_of(path)


def _entry(found: dict[str, Any], model: str, place: str) -> Measured:
    """Measure one content to embed; its model is the path's, and is put in again when it leaves."""
    gemini.check_model(found.pop("model", None), model, under(place, "model"))
    measured = Measured()
    measured.content(found["content"], under(place, "content"))
    measured.text += text_bytes(found.get("title", ""))
    for item in measured.media.found():
        if item.kind not in _MEDIA:
            fields.unbounded(item.field, "in an embedding")
    return measured


def _facts(entries: list[Measured], *, dialect: str, model: str) -> RequestFacts:
    return RequestFacts(
        dialect=dialect,
        model=model,
        text_bytes=sum(one.text for one in entries),
        json_bytes=sum(one.json for one in entries),
        parts=sum(one.parts for one in entries),
        media=tuple(item for one in entries for item in one.media.found()),
        inputs=len(entries),
        output_cap=0,
        has_output=False,
    )


def _told(document: Mapping[str, Any]) -> Any:
    """Return the counts of an answer by our names; None where it has none."""
    usage = document.get("usageMetadata")
    if not usage:
        # An empty object is no count either.
        return None if usage in (None, {}) else usage
    if not isinstance(usage, dict):
        return usage
    told: dict[str, Any] = {"prompt": usage.get("promptTokenCount"), "total": usage.get("totalTokenCount")}
    for details in _DETAILS:
        for modality, count in gemini_usage.modal(usage.get(details)):
            before, more = usable_count(told.get(modality, 0)), usable_count(count)
            told[modality] = count if before is None or more is None else capped(before + more)
    return told


def _usage(counts: Counts) -> Usage:
    # What the total holds beside the prompt can only have been read.
    prompt = max(counts.detail("prompt"), counts.detail("total"))
    audio = min(counts.detail("audio"), prompt)
    image = min(counts.detail("image"), prompt - audio)
    return Usage(input_uncached=prompt - audio - image, audio_input=audio, image_input=image)


def _problem(counts: Counts, request: Request | None) -> str | None:
    if not counts.seen:
        return "usage_missing"
    if counts.unusable or (counts.get("prompt") is None and counts.get("total") is None):
        return "usage_unusable"
    media = {item.kind for item in request.facts.media} if request is not None else set()
    if any(counts.get(kind) is None for kind in media):
        # The dearer kinds may be in the count that is priced as text.
        return "usage_without_modalities"
    return None


def _meter(request: Request) -> Meter:
    # Nobody streams embeddings. Should one answer so, it is read as what it looks like, and no end of it is known.
    return gemini_usage.meter(request)


DIALECT: Final = replace(
    gemini.DIALECT,
    name=NAME,
    upstream_path=lambda _request, model: gemini.upstream("embedContent", model),
    read=read,
    outgoing=outgoing,
    meter=_meter,
    report=report,
    free=(),
)
BATCH_DIALECT: Final[Dialect] = replace(
    DIALECT,
    name=BATCH_NAME,
    upstream_path=lambda _request, model: gemini.upstream("batchEmbedContents", model),
    read=read_batch,
)
