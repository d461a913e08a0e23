"""What an OpenAI-shaped answer used, in disjoint buckets, whole or streamed."""

from dataclasses import replace
from typing import Any, Final

from spendgate.core.feature import loop_of
from spendgate.core.usage import Usage, UsageReport, usable_count
from spendgate.dialects.charges import Charges
from spendgate.dialects.dialect import Request
from spendgate.dialects.json_strict import parse_answer
from spendgate.dialects.metering import Counts, Identity, Passage, StreamMeter, capped, document_of, usage_report
from spendgate.dialects.openai_fields import SEARCH_TOKENS_FREE
from spendgate.dialects.sse import Frame

PATHS: Final = {
    "prompt": ("prompt_tokens",),
    "completion": ("completion_tokens",),
    "total": ("total_tokens",),
    "cached": ("prompt_tokens_details", "cached_tokens"),
    # DeepSeek's names: hits and misses are the whole prompt.
    "cache_hit": ("prompt_cache_hit_tokens",),
    "cache_miss": ("prompt_cache_miss_tokens",),
    "cache_write": ("prompt_tokens_details", "cache_write_tokens"),
    "audio_input": ("prompt_tokens_details", "audio_tokens"),
    "image_input": ("prompt_tokens_details", "image_tokens"),
    "reasoning": ("completion_tokens_details", "reasoning_tokens"),
    "audio_output": ("completion_tokens_details", "audio_tokens"),
    "image_output": ("completion_tokens_details", "image_tokens"),
}
_DONE: Final = b"[DONE]"


def meter(request: Request) -> StreamMeter:
    """Return the meter of a streamed answer."""
    return StreamMeter(_ChatStream(request))


def report(body: bytes, request: Request | None = None) -> UsageReport:
    """Read a whole answer; cache writes are of the long lifetime only if ``request`` asked for it."""
    document = parse_answer(body)
    counts, identity, charges = Counts(PATHS), Identity(), Charges(request)
    problem = None
    if not isinstance(document, dict):
        problem = "answer_unreadable"
    else:
        identity.take(document)
        counts.take(document.get("usage"))
        charges.take(document.get("usage"))
        problem = "error_in_answer" if document.get("error") is not None else problem_of(counts)
    usage = buckets(counts, long_writes=_long_writes(request)) if counts.seen else None
    usage = _searched(usage, request, identity.model)
    finished = problem not in {"answer_unreadable", "error_in_answer"}
    read = usage_report(usage=usage, identity=identity, problem=problem, finished=finished)
    return replace(read, charge=charges.charge)


def problem_of(counts: Counts) -> str | None:
    """Name what is wrong with the counts; a missing total is as bad as a wrong one."""
    if not counts.seen:
        return "usage_missing"
    prompt = _prompt(counts)
    if counts.unusable or prompt is None or counts.get("completion") is None:
        return "usage_unusable"
    # Here the cache is inside the prompt: more than that is another convention, or a lie. Which, nobody can tell; and a
    # prompt that all came from the cache is the cheapest that there is.
    return "usage_unusable" if max(_read(counts), counts.detail("cache_write")) > prompt else None


def buckets(counts: Counts, *, long_writes: bool) -> Usage:
    """Split the inclusive counts; details never add to a total that contains them."""
    prompt = capped(_prompt(counts) or 0)
    output = capped(_output(counts, prompt))
    # Details may overlap in compatible servers: each takes what the dearer ones left.
    write = min(counts.detail("cache_write"), prompt)
    read = min(_read(counts), prompt - write)
    audio_input = min(counts.detail("audio_input"), prompt - write - read)
    image_input = min(counts.detail("image_input"), prompt - write - read - audio_input)
    audio_output = min(counts.detail("audio_output"), output)
    image_output = min(counts.detail("image_output"), output - audio_output)
    return Usage(
        input_uncached=prompt - write - read - audio_input - image_input,
        cache_read=read,
        cache_write=0 if long_writes else write,
        cache_write_long=write if long_writes else 0,
        audio_input=audio_input,
        image_input=image_input,
        output=output - audio_output - image_output,
        audio_output=audio_output,
        image_output=image_output,
    )


def _prompt(counts: Counts) -> int | None:
    hits, misses = counts.get("cache_hit"), counts.get("cache_miss")
    both = None if hits is None or misses is None else hits + misses
    return max((count for count in (counts.get("prompt"), both) if count is not None), default=None)


def _read(counts: Counts) -> int:
    return max(counts.detail("cached"), counts.detail("cache_hit"))


def _output(counts: Counts, prompt: int) -> int:
    completion, reasoning = counts.detail("completion"), counts.detail("reasoning")
    total = counts.get("total")
    if total is not None:
        # Some servers count reasoning only in the total; whatever else the total holds is priced as output too.
        return max(completion, reasoning, total - prompt)
    # Reasoning that is larger than the completion cannot be inside it.
    return completion + reasoning if reasoning > completion else completion


def _long_writes(request: Request | None) -> bool:
    return request is not None and request.facts.cache_write == "long"


def _searched(usage: Usage | None, request: Request | None, model: str | None) -> Usage | None:
    """Add the searches that were allowed: an answer does not count them, nor the pages that were read."""
    if usage is None or request is None or not request.facts.demands:
        return usage
    loop = loop_of(request.facts)
    pages = 0 if model in SEARCH_TOKENS_FREE else loop.tokens
    return replace(usage, input_uncached=capped(usage.input_uncached + pages), fees=loop.fees)


class _ChatStream:
    """The chunks of one streamed completion.

    It is finished when ``[DONE]`` was seen, or when it is over after a chunk that carries usage and no choices (the
    protocol's last but one). Usage beside choices may be a count so far, so it does not end a stream; and what comes after the
    last usage is in none.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._wants_usage = request.wants_usage
        self._long_writes = _long_writes(request)
        self._counts = Counts(PATHS)
        self._charges = Charges(request)
        self._identity = Identity()
        self._done = False
        self._closing_usage = False
        self._uncounted = False
        self._error = False
        self._unreadable = False

    def take(self, frame: Frame) -> Passage:
        if frame.readable and frame.data is not None and frame.data.strip().startswith(_DONE):
            self._done = True
            return Passage.LAST
        chunk, readable = document_of(frame)
        if chunk is None:
            self._unreadable = self._unreadable or not readable
            return Passage.FLOW
        self._error = self._error or frame.event == "error"
        return self._take_chunk(chunk)

    def report(self, *, over: bool) -> UsageReport:
        finished = (self._done or (over and self._closing_usage)) and not self._error
        usage = buckets(self._counts, long_writes=self._long_writes) if self._counts.seen else None
        usage = _searched(usage, self._request, self._identity.model)
        read = usage_report(
            usage=usage,
            identity=self._identity,
            problem=self._problem(finished=finished),
            finished=finished,
        )
        return replace(read, charge=self._charges.charge)

    def _take_chunk(self, chunk: dict[str, Any]) -> Passage:
        if chunk.get("error") is not None:
            self._error = True
        self._identity.take(chunk)
        usage = chunk.get("usage")
        self._counts.take(usage)
        self._charges.take(usage)
        # Groq says it there too, and older models there only.
        groq = chunk.get("x_groq")
        beside = groq.get("usage") if isinstance(groq, dict) else None
        self._counts.take(beside)
        self._uncounted = not (_is_told(usage) or _is_told(beside)) and (self._uncounted or _says(chunk.get("choices")))
        if usage is None or chunk.get("choices"):
            return Passage.FLOW
        self._closing_usage = True
        return Passage.FLOW if self._wants_usage or self._error else Passage.HIDE

    def _problem(self, *, finished: bool) -> str | None:
        if self._error:
            return "error_in_stream"
        if self._unreadable:
            return "frame_unreadable"
        if not finished:
            return "stream_unfinished"
        return problem_of(self._counts) or ("usage_missing" if self._uncounted else None)


def _is_told(usage: Any) -> bool:
    """Tell a usage that says what was put out."""
    names = ("completion_tokens", "total_tokens")
    return isinstance(usage, dict) and any(usable_count(usage.get(name)) is not None for name in names)


def _says(choices: Any) -> bool:
    """Tell whether a chunk has anything that was put out; one that only ends its choice has not."""
    if not isinstance(choices, list):
        return False
    return any(isinstance(one, dict) and (one.get("text") or _anything(one.get("delta"))) for one in choices)


def _anything(delta: Any) -> bool:
    return isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")
