"""What an Anthropic Messages answer used, in disjoint buckets, whole or streamed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from spendgate.core.feature import COMPACTION, WEB_FETCH, WEB_SEARCH
from spendgate.core.usage import BUCKETS, Usage, UsageReport, usable_count
from spendgate.dialects.anthropic_tools import filters_by_code
from spendgate.dialects.dialect import Request
from spendgate.dialects.json_strict import parse_answer
from spendgate.dialects.metering import Counts, Identity, Passage, StreamMeter, capped, document_of, usage_report
from spendgate.dialects.sse import Frame

_TOTALS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
PATHS: Final = {name: (name,) for name in _TOTALS} | {
    "write_short": ("cache_creation", "ephemeral_5m_input_tokens"),
    "write_long": ("cache_creation", "ephemeral_1h_input_tokens"),
    WEB_SEARCH: ("server_tool_use", "web_search_requests"),
}
# Counts of server tools whose cost is known: a fee a use, or their tokens only.
_CODE: Final = "code_execution"
_SERVED: Final = {
    "web_search_requests": WEB_SEARCH,
    "web_fetch_requests": WEB_FETCH,
    f"{_CODE}_requests": _CODE,
}


def meter(request: Request) -> StreamMeter:
    """Return the meter of a streamed answer."""
    return StreamMeter(_MessageStream(request))


def report(body: bytes, request: Request | None = None) -> UsageReport:
    """Read a whole answer; writes without a lifetime are long only if ``request`` asked for long ones."""
    document = parse_answer(body)
    tally = _Tally(request)
    if not isinstance(document, dict):
        return tally.report(problem="answer_unreadable", finished=False)
    tally.identity.take(document)
    tally.take(document.get("usage"))
    if document.get("type") == "error" or document.get("error") is not None:
        return tally.report(problem="error_in_answer", finished=False)
    return tally.report(problem=None, finished=True)


def buckets(counts: Counts, *, long_writes: bool) -> Usage:
    """Return the buckets; Anthropic's input excludes what it read from and wrote to the cache."""
    short, long = counts.detail("write_short"), counts.detail("write_long")
    # The split stands only in message_start; what it leaves out is taken at the dearest lifetime asked for.
    rest = max(0, counts.detail("cache_creation_input_tokens") - short - long)
    return Usage(
        input_uncached=counts.detail("input_tokens"),
        cache_read=counts.detail("cache_read_input_tokens"),
        cache_write=capped(short + (0 if long_writes else rest)),
        cache_write_long=capped(long + (rest if long_writes else 0)),
        output=counts.detail("output_tokens"),
    )


class _Tally:
    """All that the usage objects of one answer said."""

    def __init__(self, request: Request | None) -> None:
        self.identity = Identity()
        self._allowed = set[str]() if request is None else {one.feature for one in request.facts.demands}
        if request is not None and filters_by_code(request.body.get("tools")):
            # The container that runs it is free beside these web tools.
            self._allowed.add(_CODE)
        self._long_writes = request is not None and request.facts.cache_write == "long"
        self._counts = Counts(PATHS)
        self._tools_used = False
        self._iterations: list[Any] = []

    def take(self, usage: Any) -> None:
        self._counts.take(usage)
        if not isinstance(usage, dict):
            return
        self.identity.take_tier(usage)
        if _anything_used(usage.get("server_tool_use"), but=self._allowed):
            self._tools_used = True
        iterations = usage.get("iterations")
        if iterations is not None:
            self._iterations.append(iterations)

    def report(self, *, problem: str | None, finished: bool) -> UsageReport:
        usage = buckets(self._counts, long_writes=self._long_writes) if self._counts.seen else None
        if usage is not None:
            # Several lists are reports of one and the same work: of each count the greatest.
            usage = _sum((usage, _greatest(self._compacted(iterations) for iterations in self._iterations)))
        searches = self._counts.detail(WEB_SEARCH)
        if usage is not None and searches:
            usage = replace(usage, fees=((WEB_SEARCH, searches),))
        return usage_report(
            usage=usage,
            identity=self.identity,
            problem=problem or self._problem(),
            finished=finished,
        )

    def _problem(self) -> str | None:
        if not self._counts.seen:
            return "usage_missing"
        if any(not self._covered(iterations) for iterations in self._iterations):
            return "usage_iterations"
        if self._tools_used:
            return "usage_server_tools"
        missing = self._counts.get("input_tokens") is None or self._counts.get("output_tokens") is None
        return "usage_unusable" if missing or self._counts.unusable else None

    def _covered(self, iterations: Any) -> bool:
        """Tell whether iterations only repeat the top level: no other model, nothing that it leaves out."""
        if not isinstance(iterations, list):
            return False
        if not all(isinstance(entry, dict) and self._own(entry) for entry in iterations):
            return False
        turns = [entry for entry in iterations if entry["type"] == "message"]
        return all(
            sum(usable_count(entry.get(name)) or 0 for entry in turns) <= self._counts.detail(name) for name in _TOTALS
        )

    def _own(self, entry: Mapping[str, Any]) -> bool:
        if entry.get("model") not in (None, self.identity.model):
            return False
        kind = entry.get("type")
        return kind == "message" or (
            kind == COMPACTION and COMPACTION in self._allowed and self._usage_of(entry) is not None
        )

    def _compacted(self, iterations: Any) -> Usage:
        """Return what summing up used, which the top level leaves out."""
        if not isinstance(iterations, list):
            return Usage()
        found = (self._usage_of(one) for one in iterations if isinstance(one, dict) and one.get("type") == COMPACTION)
        return _sum(usage for usage in found if usage is not None)

    def _usage_of(self, entry: Mapping[str, Any]) -> Usage | None:
        counts = Counts(PATHS)
        counts.take(entry)
        if counts.unusable or any(counts.get(name) is None for name in _TOTALS):
            return None
        return buckets(counts, long_writes=self._long_writes)


class _MessageStream:
    """The events of one streamed message; it is finished with ``message_stop`` and not before."""

    def __init__(self, request: Request) -> None:
        self._tally = _Tally(request)
        self._stopped = False
        self._output_final = False
        self._error = False
        self._unreadable = False

    def take(self, frame: Frame) -> Passage:
        event, readable = document_of(frame)
        if event is None:
            self._unreadable = self._unreadable or not readable
            return Passage.FLOW
        return self._take_event(event, kind=event.get("type") or frame.event)

    def report(self, *, over: bool) -> UsageReport:  # noqa: ARG002 - a message that is over without its end is cut
        finished = self._stopped and not self._error
        return self._tally.report(problem=self._problem(finished=finished), finished=finished)

    def _take_event(self, event: dict[str, Any], *, kind: Any) -> Passage:
        match kind:
            case "message_start":
                message = event.get("message")
                if isinstance(message, dict):
                    self._tally.identity.take(message)
                    self._tally.take(message.get("usage"))
            case "message_delta":
                usage = event.get("usage")
                self._tally.take(usage)
                # message_start has a placeholder; only this is the output.
                if isinstance(usage, dict) and usage.get("output_tokens") is not None:
                    self._output_final = True
            case "content_block_delta":
                # What is put out after that is in no count.
                self._output_final = False
            case "message_stop":
                self._stopped = True
                return Passage.LAST
            case "error":
                self._error = True
        return Passage.FLOW

    def _problem(self, *, finished: bool) -> str | None:
        if self._error:
            return "error_in_stream"
        if self._unreadable:
            return "frame_unreadable"
        if not finished:
            return "stream_unfinished"
        return None if self._output_final else "usage_missing"


def _sum(usages: Iterable[Usage]) -> Usage:
    several = tuple(usages)
    counts: dict[str, Any] = {name: capped(sum(getattr(usage, name) for usage in several)) for name in BUCKETS}
    return Usage(**counts)


def _greatest(usages: Iterable[Usage]) -> Usage:
    several = tuple(usages)
    counts: dict[str, Any] = {name: max((getattr(usage, name) for usage in several), default=0) for name in BUCKETS}
    return Usage(**counts)


def _anything_used(counts: Any, *, but: Collection[str]) -> bool:
    """Tell whether a server tool ran that was not asked for; an odd count is taken for one that did."""
    if counts is None:
        return False
    if not isinstance(counts, dict):
        return True
    return any(
        value is not None and usable_count(value) != 0 for name, value in counts.items() if _SERVED.get(name) not in but
    )
