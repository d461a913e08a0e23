"""What a Gemini answer used, in disjoint buckets: whole, as server-sent events, or as one JSON array."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from spendgate.core.usage import Usage, UsageReport, usable_count
from spendgate.dialects.dialect import Meter, Request
from spendgate.dialects.gemini_array import ArrayReader
from spendgate.dialects.gemini_grounding import Grounding
from spendgate.dialects.json_strict import parse_answer
from spendgate.dialects.metering import (
    HELD_BYTES_MAX,
    Counts,
    Identity,
    Passage,
    StreamMeter,
    capped,
    document_of,
    identifier,
    usage_report,
)
from spendgate.dialects.sse import Frame

_TOTALS: Final = {
    "prompt": "promptTokenCount",
    "cached": "cachedContentTokenCount",
    "candidates": "candidatesTokenCount",
    "thoughts": "thoughtsTokenCount",
    "tool_use": "toolUsePromptTokenCount",
    "total": "totalTokenCount",
}
# Lists of {modality, tokenCount}, each a part of the count of its name.
_DETAILS: Final = {
    "prompt": "promptTokensDetails",
    "cached": "cacheTokensDetails",
    "candidates": "candidatesTokensDetails",
    "tool_use": "toolUsePromptTokensDetails",
}
# The modalities that may have a rate of their own; text, documents and video have that of text.
_MODALITIES: Final = ("audio", "image")
_UNREADABLE: Final = ""
PATHS: Final = {name: (name,) for name in (*_TOTALS, *(f"{of}_{kind}" for of in _DETAILS for kind in _MODALITIES))}


def report(body: bytes, request: Request | None = None) -> UsageReport:
    """Read a whole answer."""
    document = parse_answer(body)
    tally = _Tally(request)
    if not isinstance(document, dict):
        return tally.report(problem="answer_unreadable", finished=False)
    tally.take(document)
    if document.get("error") is not None:
        return tally.report(problem="error_in_answer", finished=False)
    return tally.report(problem=None, finished=True)


def meter(request: Request) -> Meter:
    """Return the meter of a streamed answer: events where the request asked for them, else an array."""
    answer = _AnswerStream(request)
    return EventMeter(answer) if request.query else ArrayMeter(answer)


def buckets(counts: Counts) -> Usage:
    """Split the counts: the cache is inside the prompt, thoughts and the prompts of tools are outside of theirs."""
    prompt, cached = counts.detail("prompt"), min(counts.detail("cached"), counts.detail("prompt"))
    tool_use = counts.detail("tool_use")
    fresh = prompt - cached
    # Sound that was read from the cache costs more than text from there, and less than sound: it is priced as sound. Where
    # nobody says what of the sound was in the cache, it is what had no room beside it.
    named = min(counts.detail("cached_audio"), cached)
    sound = min(max(counts.detail("prompt_audio"), named), prompt)
    cached_sound = max(named, sound - fresh)
    # What was read from the cache is taken out first; what is left goes to images as far as they were named.
    image = min(counts.detail("prompt_image"), fresh - (sound - cached_sound))
    tool_audio = min(counts.detail("tool_use_audio"), tool_use)
    tool_image = min(counts.detail("tool_use_image"), tool_use - tool_audio)
    output = capped(_output(counts, prompt + tool_use))
    audio_output = min(counts.detail("candidates_audio"), output)
    image_output = min(counts.detail("candidates_image"), output - audio_output)
    return Usage(
        input_uncached=capped(fresh - (sound - cached_sound) - image + tool_use - tool_audio - tool_image),
        cache_read=cached - cached_sound,
        audio_input=capped(sound + tool_audio),
        image_input=capped(image + tool_image),
        output=output - audio_output - image_output,
        audio_output=audio_output,
        image_output=image_output,
    )


def _output(counts: Counts, inputs: int) -> int:
    visible = counts.detail("candidates") + counts.detail("thoughts")
    total = counts.get("total")
    # Whatever else the total holds is priced as output, the dearest.
    return visible if total is None else max(visible, total - inputs)


class _Tally:
    """All that the documents of one answer said."""

    def __init__(self, request: Request | None) -> None:
        self.counts = Counts(PATHS)
        self.identity = Identity()
        self._grounding = Grounding(request)

    def take(self, document: Mapping[str, Any]) -> None:
        """Read one document, a whole answer or a chunk."""
        usage = document.get("usageMetadata")
        self.counts.take(_flat(usage) if isinstance(usage, dict) else usage)
        identity = self.identity
        identity.response_id = identity.response_id or identifier(document.get("responseId"))
        identity.model = identifier(document.get("modelVersion")) or identity.model
        if isinstance(usage, dict):
            tier = identifier(usage.get("serviceTier"))
            identity.service_tier = identity.service_tier if tier is None else tier.lower()
        for candidate in candidates(document):
            self._grounding.take(candidate)

    def report(self, *, problem: str | None, finished: bool) -> UsageReport:
        usage = None
        if self.counts.seen:
            usage = replace(buckets(self.counts), fees=self._grounding.fees(self.identity.model))
        return usage_report(usage=usage, identity=self.identity, problem=problem or self._problem(), finished=finished)

    def _problem(self) -> str | None:
        if not self.counts.seen:
            return "usage_missing"
        if self._grounding.unclear:
            return "usage_grounding"
        # Nothing visible has no count of candidates; then only the total tells what was put out.
        silent = self.counts.get("candidates") is None and self.counts.get("total") is None
        # The cache is inside the prompt: more than that is another convention, or a lie.
        beyond = self.counts.detail("cached") > self.counts.detail("prompt")
        unusable = self.counts.unusable or self.counts.get("prompt") is None or silent or beyond
        return "usage_unusable" if unusable else None


class _AnswerStream:
    """The chunks of one streamed answer.

    No frame says that the stream is over, so it is finished when it is over, every choice has its ``finishReason`` (or
    the prompt was blocked), and a whole usage came with that chunk or after it: an earlier one is a count so far. The chunk that completes this is held back
    until the call is settled, and what follows it; earlier ones are not delayed, since more must come after them.
    """

    def __init__(self, request: Request) -> None:
        self._tally = _Tally(request)
        self._choices = request.facts.choices
        self._seen: set[Any] = set()
        self._ended: set[Any] = set()
        self._blocked = False
        self._usage_after = False
        self._error = False
        self._unreadable = False

    def take(self, frame: Frame) -> Passage:
        chunk, readable = document_of(frame)
        if chunk is None:
            self._unreadable = self._unreadable or not readable
            return Passage.FLOW
        self._error = self._error or chunk.get("error") is not None or frame.event == "error"
        self._tally.take(chunk)
        self._take_reasons(chunk)
        self._usage_after = self._complete and (self._usage_after or _is_whole(chunk.get("usageMetadata")))
        return Passage.LAST if self._complete else Passage.FLOW

    def report(self, *, over: bool) -> UsageReport:
        finished = over and self._complete and not self._error and not self._unreadable
        return self._tally.report(problem=self._problem(finished=finished), finished=finished)

    @property
    def _complete(self) -> bool:
        return self._blocked or (len(self._ended) >= self._choices and self._seen <= self._ended)

    def _take_reasons(self, chunk: Mapping[str, Any]) -> None:
        feedback = chunk.get("promptFeedback")
        self._blocked = self._blocked or (isinstance(feedback, dict) and bool(feedback.get("blockReason")))
        for candidate in candidates(chunk):
            index = usable_count(candidate.get("index", 0))
            self._seen.add(index)
            if candidate.get("finishReason"):
                self._ended.add(index)

    def _problem(self, *, finished: bool) -> str | None:
        if self._error:
            return "error_in_stream"
        if self._unreadable:
            return "frame_unreadable"
        if not finished:
            return "stream_unfinished"
        return None if self._usage_after else "usage_missing"


class EventMeter(StreamMeter):
    """The Meter of a stream of server-sent events."""

    def interrupted(self, error: bytes) -> bytes:
        """Return the error as an event; the blank lines before it close whatever was cut."""
        return b"\n\ndata: " + error + b"\n\n"


class ArrayMeter:
    """The Meter of a stream that is one JSON array. Its closing bracket waits, so that an error can come before it."""

    def __init__(self, answer: _AnswerStream) -> None:
        self._answer = answer
        self._reader = ArrayReader()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._closing = b""
        self._last_seen = False
        self._passed = False
        self._over = False

    def feed(self, data: bytes) -> bytes:
        return b"".join(self._pass(frame) for frame in self._reader.feed(data))

    def end(self) -> bytes:
        for frame in self._reader.end():
            if frame.ended:
                self._closing = frame.raw
            else:
                # Half an object is none to the caller; to the answer it is one that cannot be read.
                self._answer.take(frame)
        self._over = True
        report = self.report()
        if report.finished or report.problem == "error_in_stream":
            return b"".join((*self._held, self._closing))
        # Not whole: what was held goes out before the error.
        return b""

    def interrupted(self, error: bytes) -> bytes:
        """Return the error as the array's next and last element."""
        held = b"".join(self._held)
        return held + (b"\n," if self._passed or held else b"[") + error + b"\n]"

    def report(self) -> UsageReport:
        # An array that was never closed was cut: what was missing may have been the greater usage.
        return self._answer.report(over=self._over and self._reader.closed)

    def _pass(self, frame: Frame) -> bytes:
        passage = self._answer.take(frame)
        self._last_seen = self._last_seen or passage is Passage.LAST
        if not self._last_seen:
            self._passed = True
            return frame.raw
        if self._held_bytes + len(frame.raw) <= HELD_BYTES_MAX:
            self._held_bytes += len(frame.raw)
            self._held.append(frame.raw)
        return b""


def candidates(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the candidates of a document that are objects."""
    found = document.get("candidates")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _is_whole(usage: Any) -> bool:
    """Tell a usage that says what was read and what was put out, and not only that it is one."""
    if not isinstance(usage, dict):
        return False
    prompt, *output = (usable_count(usage.get(_TOTALS[name])) for name in ("prompt", "candidates", "total"))
    return prompt is not None and any(count is not None for count in output)


def _flat(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of one usage by our names; what cannot be read stays, so that it is seen to be unusable."""
    flat = {name: usage.get(field) for name, field in _TOTALS.items()}
    for of, field in _DETAILS.items():
        for modality, count in modal(usage.get(field)):
            name = f"{of}_{modality}"
            before, more = usable_count(flat.get(name, 0)), usable_count(count)
            if before is not None:
                flat[name] = count if more is None else capped(before + more)
    return flat


def modal(details: Any) -> Iterator[tuple[str, Any]]:
    """Yield (modality, count) of the modalities with a rate of their own; what cannot be read is no count of one."""
    if details is not None and not isinstance(details, list):
        yield _MODALITIES[0], _UNREADABLE
        return
    for entry in details or ():
        if not isinstance(entry, dict):
            yield _MODALITIES[0], _UNREADABLE
            continue
        modality, count = str(entry.get("modality", "")).lower(), entry.get("tokenCount")
        if modality in _MODALITIES:
            yield modality, 0 if count is None else count
