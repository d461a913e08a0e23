"""An SSE answer on its way to the caller: what flows, what is hidden, what waits for the settlement."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol

from spendgate.core.usage import COUNT_MAX, Usage, UsageReport, usable_count
from spendgate.dialects.json_strict import parse_answer
from spendgate.dialects.sse import Frame, SseReader

# What may follow the protocol's end and is kept for the caller; more than that is not an answer any more.
HELD_BYTES_MAX: Final = 1024 * 1024
_IDENTIFIER_CHARACTERS_MAX: Final = 256


class Passage(Enum):
    """What becomes of a frame."""

    FLOW = "flow"
    HIDE = "hide"
    LAST = "last"


class Answer(Protocol):
    """A dialect's reading of an answer, frame by frame."""

    def take(self, frame: Frame) -> Passage:
        """Read a frame; say what becomes of it."""
        ...

    def report(self, *, over: bool) -> UsageReport:
        """Report what was read; ``over`` once nothing more will come."""
        ...


class StreamMeter:
    """The Meter of every dialect that streams SSE."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._reader = SseReader()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._last_seen = False
        self._over = False

    def feed(self, data: bytes) -> bytes:
        return b"".join(self._pass(frame) for frame in self._reader.feed(data))

    def end(self) -> bytes:
        tail = b"".join(self._pass(frame) for frame in self._reader.end())
        self._over = True
        held, self._held = self._held, []
        return tail + b"".join(held)

    def interrupted(self, error: bytes) -> bytes:
        return error

    def report(self) -> UsageReport:
        return self._answer.report(over=self._over)

    def _pass(self, frame: Frame) -> bytes:
        if not frame.ended and frame.data is not None and self._is_cut(frame.data):
            # Half an event is no event to the protocol; passed on, it would swallow the error that follows it.
            return b""
        passage = self._answer.take(frame)
        self._last_seen = self._last_seen or passage is Passage.LAST
        if passage is Passage.HIDE:
            return b""
        if not self._last_seen:
            return frame.raw
        if self._held_bytes + len(frame.raw) <= HELD_BYTES_MAX:
            self._held_bytes += len(frame.raw)
            self._held.append(frame.raw)
        return b""

    @staticmethod
    def _is_cut(data: bytes) -> bool:
        return not data.startswith(b"[DONE]") and parse_answer(data) is None


def document_of(frame: Frame) -> tuple[dict[str, Any] | None, bool]:
    """Return the object that a frame carries, None for none; and whether all that it carries could be read.

    What could not be read may have been the usage: an answer with such a frame has none that can be settled by.
    """
    if not frame.readable:
        return None, False
    if frame.data is None or not frame.data.strip():
        return None, True
    document = parse_answer(frame.data)
    return (document, True) if isinstance(document, dict) else (None, False)


class Counts:
    """The raw counts of an answer, merged over its frames: per field the greatest valid value.

    Merging by the greatest does not depend on the order, and counts cumulative reports once.
    """

    def __init__(self, paths: Mapping[str, tuple[str, ...]]) -> None:
        self._paths = paths
        self._values: dict[str, int] = {}
        self.seen = False
        self.unusable = False

    def take(self, usage: Any) -> None:
        """Merge what one frame reports; null is no report."""
        if usage is None:
            return
        self.seen = True
        for name, path in self._paths.items():
            value = self._leaf(usage, path)
            if value is None:
                continue
            count = usable_count(value)
            if count is None:
                # A greater count may be hidden in what cannot be read: what is left is a floor, not a bill.
                self.unusable = True
            else:
                self._values[name] = max(count, self._values.get(name, 0))

    def get(self, name: str) -> int | None:
        """Return a count, or None where the answer never gave one."""
        return self._values.get(name)

    def detail(self, name: str) -> int:
        """Return a count that means nothing when it is missing."""
        return self._values.get(name, 0)

    def _leaf(self, usage: Any, path: tuple[str, ...]) -> Any:
        node = usage
        for step in path:
            if node is None:
                return None
            if not isinstance(node, dict):
                self.unusable = True
                return None
            node = node.get(step)
        return node


class Identity:
    """Who answered: the last that the provider said about model, tier, region, speed, and the first id."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.service_tier: str | None = None
        self.geo: str | None = None
        self.speed: str | None = None
        self.response_id: str | None = None

    def take(self, document: Mapping[str, Any]) -> None:
        """Read id, model and service tier where they stand at the top of a document."""
        self.response_id = self.response_id or identifier(document.get("id"))
        self.model = identifier(document.get("model")) or self.model
        self.take_tier(document)

    def take_tier(self, document: Mapping[str, Any]) -> None:
        """Read what decides the rate: service tier, region and speed."""
        self.service_tier = identifier(document.get("service_tier")) or self.service_tier
        self.geo = identifier(document.get("inference_geo")) or self.geo
        self.speed = identifier(document.get("speed")) or self.speed


def identifier(value: Any) -> str | None:
    """Return a provider's word if it is one that can be stored."""
    if isinstance(value, str) and 0 < len(value) <= _IDENTIFIER_CHARACTERS_MAX:
        return value
    return None


def usage_report(*, usage: Usage | None, identity: Identity, problem: str | None, finished: bool) -> UsageReport:
    """Return the report: with a problem, what was seen is only a floor."""
    sound = problem is None
    return UsageReport(
        usage=usage if sound else None,
        partial=None if sound else usage,
        finished=finished,
        problem=problem,
        model=identity.model,
        service_tier=identity.service_tier,
        geo=identity.geo,
        speed=identity.speed,
        response_id=identity.response_id,
    )


def capped(count: int) -> int:
    """Return a sum of counts as a count; saturates as all sums do."""
    return min(count, COUNT_MAX)
