"""What an answer of Bedrock's Converse used, in disjoint buckets: whole, or as a binary event stream."""

from collections.abc import Mapping
from typing import Any, Final

from spendgate.core.usage import COUNT_MAX, Usage, UsageReport, usable_count
from spendgate.dialects.dialect import Request
from spendgate.dialects.eventstream import Frame, FrameReader
from spendgate.dialects.json_strict import parse_answer
from spendgate.dialects.metering import HELD_BYTES_MAX, Counts, Identity, capped, identifier, usage_report

_TOTALS: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
    "total": "totalTokens",
    "cache_read": "cacheReadInputTokens",
    "cache_write": "cacheWriteInputTokens",
}
_WRITTEN: Final = {"5m": "write_short", "1h": "write_long"}
PATHS: Final = {name: (name,) for name in (*_TOTALS, *_WRITTEN.values())}
_UNREADABLE: Final = "unreadable"
_LAST: Final = "metadata"


def report(body: bytes, request: Request | None = None) -> UsageReport:
    """Read a whole answer; writes without a lifetime are long only if ``request`` asked for long ones."""
    document = parse_answer(body)
    tally = _Tally(request)
    if not isinstance(document, dict):
        return tally.report(problem="answer_unreadable", finished=False)
    tally.take(document)
    return tally.report(problem=None, finished=True)


def meter(request: Request) -> "EventStreamMeter":
    """Return the meter of a streamed answer."""
    return EventStreamMeter(request)


def buckets(counts: Counts, *, long_writes: bool) -> Usage:
    """Split the counts, which are disjoint already: a write without a lifetime has the dearest that was asked for."""
    short, long = counts.detail("write_short"), counts.detail("write_long")
    unsplit = max(0, counts.detail("cache_write") - short - long)
    fresh, read, output = (counts.detail(name) for name in ("input", "cache_read", "output"))
    said = fresh + read + short + long + unsplit
    return Usage(
        input_uncached=fresh,
        cache_read=read,
        cache_write=capped(short + (0 if long_writes else unsplit)),
        cache_write_long=capped(long + (unsplit if long_writes else 0)),
        # Whatever else the total holds is priced as output, the dearest.
        output=capped(max(output, counts.detail("total") - said)),
    )


class _Tally:
    """All that the documents of one answer said."""

    def __init__(self, request: Request | None) -> None:
        self._counts = Counts(PATHS)
        self._identity = Identity()
        self._long_writes = request is not None and request.facts.cache_write == "long"
        self._guarded = False

    def take(self, document: Mapping[str, Any]) -> None:
        """Read a whole answer, or the event that ends a stream: both have the usage in one place."""
        usage = document.get("usage")
        self._counts.take(_flat(usage) if isinstance(usage, dict) else usage)
        self._identity.service_tier = _named(document, "serviceTier", "type") or self._identity.service_tier
        self._identity.speed = _named(document, "performanceConfig", "latency") or self._identity.speed
        self._identity.model = _named(document, "trace", "promptRouter", "invokedModelId") or self._identity.model
        trace = document.get("trace")
        if isinstance(trace, dict) and trace.get("guardrail"):
            # One that the account forces on every call bills units that are in no count of tokens.
            self._guarded = True

    def report(self, *, problem: str | None, finished: bool) -> UsageReport:
        usage = buckets(self._counts, long_writes=self._long_writes) if self._counts.seen else None
        return usage_report(usage=usage, identity=self._identity, problem=problem or self._problem(), finished=finished)

    def _problem(self) -> str | None:
        if not self._counts.seen:
            return "usage_missing"
        if self._guarded:
            return "usage_guardrail"
        missing = self._counts.get("input") is None or self._counts.get("output") is None
        return "usage_unusable" if missing or self._counts.unusable else None


class EventStreamMeter:
    """The Meter of ConverseStream. The event that ends it, ``metadata``, has the usage, and is held back."""

    def __init__(self, request: Request) -> None:
        self._tally = _Tally(request)
        self._reader = FrameReader()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._last_seen = False
        self._error = False
        self._unreadable = False

    def feed(self, data: bytes) -> bytes:
        return b"".join(self._pass(frame) for frame in self._reader.feed(data))

    def end(self) -> bytes:
        # Half a frame is left out: what follows it would be read as its other half.
        held, self._held = self._held, []
        return b"".join(held)

    def interrupted(self, error: bytes) -> bytes:
        return error

    def report(self) -> UsageReport:
        finished = self._last_seen and not self._error
        return self._tally.report(problem=self._problem(finished=finished), finished=finished)

    def _problem(self, *, finished: bool) -> str | None:
        if self._error:
            return "error_in_stream"
        if self._unreadable:
            return "frame_unreadable"
        return None if finished else "stream_unfinished"

    def _pass(self, frame: Frame) -> bytes:
        self._take(frame)
        if not self._last_seen:
            return frame.raw
        if self._held_bytes + len(frame.raw) <= HELD_BYTES_MAX:
            self._held_bytes += len(frame.raw)
            self._held.append(frame.raw)
        return b""

    def _take(self, frame: Frame) -> None:
        if not frame.readable:
            # It may have been the usage.
            self._unreadable = True
        elif frame.is_error:
            self._error = True
        elif frame.kind == _LAST:
            document = parse_answer(frame.payload)
            self._last_seen = True
            if isinstance(document, dict):
                self._tally.take(document)
            else:
                self._unreadable = True


def _flat(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts by our names; several writes of one lifetime are a sum."""
    found = {name: usage.get(field) for name, field in _TOTALS.items()}
    details = usage.get("cacheDetails")
    if details is None:
        return found
    if not isinstance(details, list):
        return found | {"write_long": _UNREADABLE}
    sums: dict[str, Any] = {}
    for detail in details:
        # A lifetime that nobody knows is taken for the dearest.
        ttl = detail.get("ttl") if isinstance(detail, dict) else None
        name = _WRITTEN.get(ttl, "write_long") if isinstance(ttl, str) else "write_long"
        count = usable_count(detail.get("inputTokens")) if isinstance(detail, dict) else None
        before = sums.get(name, 0)
        sums[name] = _UNREADABLE if count is None or before == _UNREADABLE else min(before + count, COUNT_MAX)
    return found | sums


def _named(document: Mapping[str, Any], *path: str) -> str | None:
    node: Any = document
    for step in path:
        if not isinstance(node, dict):
            return None
        node = node.get(step)
    return identifier(node)
