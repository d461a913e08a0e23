"""What a response used, whole or streamed: both are read by the same rules, however the response ended."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spendgate.core.feature import FILE_SEARCH, WEB_SEARCH
from spendgate.core.usage import Usage, UsageReport, usable_count
from spendgate.dialects import openai_usage
from spendgate.dialects.charges import Charges
from spendgate.dialects.dialect import Request
from spendgate.dialects.json_strict import parse_answer
from spendgate.dialects.metering import (
    Counts,
    Identity,
    Passage,
    StreamMeter,
    capped,
    document_of,
    identifier,
    usage_report,
)
from spendgate.dialects.openai_fields import SEARCH_TOKENS
from spendgate.dialects.sse import Frame

PATHS: Final = {
    "prompt": ("input_tokens",),
    "completion": ("output_tokens",),
    "total": ("total_tokens",),
    "cached": ("input_tokens_details", "cached_tokens"),
    "cache_write": ("input_tokens_details", "cache_write_tokens"),
    "cache_write_short": ("input_tokens_details", "cache_write_tokens_details", "ttl_30m_tokens"),
    "cache_write_long": ("input_tokens_details", "cache_write_tokens_details", "ttl_12h_tokens"),
    "reasoning": ("output_tokens_details", "reasoning_tokens"),
}
# A response that is none of these goes on, and its usage is not the last word.
FINAL: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
# Items of an output that have a fee, with the feature that asks for it, which is the kind that price rows know it by.
FEES: Final = {"web_search_call": WEB_SEARCH, "file_search_call": FILE_SEARCH}
# To open a page that was found, or to look for something in it, costs its tokens only (openai-python 3.57.0, ToolUsage).
_FREE_ACTIONS: Final = frozenset({"open_page", "find_in_page"})
# What a search finds is a fixed block of input tokens there, which no usage shows (OpenAI docs, pricing, 2026-07).
SEARCH_TOKENS_FIXED: Final = frozenset(
    {"gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4.1-mini", "gpt-4.1-mini-2025-04-14"}
)
# What an output may hold that is paid with its tokens; every other item is work of the server's own tools.
_PAID_BY_TOKENS: Final = frozenset({"message", "reasoning", "function_call", "custom_tool_call", "tool_search_call"})
_DONE: Final = b"[DONE]"


def meter(request: Request) -> StreamMeter:
    """Return the meter of a streamed answer."""
    return StreamMeter(_ResponseStream(request))


def report(body: bytes, request: Request | None = None) -> UsageReport:
    """Read a whole answer; writes whose lifetime is not told are long only if ``request`` asked for it."""
    document = parse_answer(body)
    reading = _Reading(request)
    if not isinstance(document, dict):
        return reading.report(problem="answer_unreadable", finished=False)
    reading.take(document)
    if document.get("status") in FINAL:
        return reading.report(problem=None, finished=True)
    broken = document.get("error") is not None
    return reading.report(problem="error_in_answer" if broken else "response_unfinished", finished=False)


def buckets(counts: Counts, *, long_writes: bool) -> Usage:
    """Split the inclusive counts; what is written for an unknown time is priced by the longest that was asked for."""
    short, long = counts.detail("cache_write_short"), counts.detail("cache_write_long")
    usage = openai_usage.buckets(counts, long_writes=False)
    # The parts may say more than their sum; they never take from what was read.
    written = min(max(usage.cache_write, short + long), usage.cache_write + usage.input_uncached)
    longest = written - min(short, written) if long_writes else min(long, written)
    return replace(
        usage,
        input_uncached=usage.input_uncached + usage.cache_write - written,
        cache_write=written - longest,
        cache_write_long=longest,
    )


class _Reading:
    """What was read of one response, from any of its documents in any order."""

    def __init__(self, request: Request | None) -> None:
        self._long_writes = request is not None and request.facts.cache_write == "long"
        self._counts = Counts(PATHS)
        self._charges = Charges(request)
        self._identity = Identity()
        # The fees that a use of each feature that was allowed has at most.
        demands = () if request is None else request.facts.demands
        self._allowed = {demand.feature: demand.fees_each for demand in demands}
        # Calls of tools that have a fee: where they stand in the output, with all that was said of what each did.
        self._calls: dict[tuple[int, str], set[str | None]] = {}
        # How many searches the provider says there were.
        self._searches: int | None = None
        self._other_tools = False
        # Of a stream: its last event had no usage, so what earlier ones told is a count so far.
        self.is_partial = False

    def take(self, response: Mapping[str, Any]) -> None:
        """Merge a response document: the whole answer, or what an event of a stream carries."""
        self._identity.take(response)
        self._counts.take(response.get("usage"))
        self._charges.take(response.get("usage"))
        self._take_tool_usage(response.get("tool_usage"))
        output = response.get("output")
        if isinstance(output, list):
            for index, item in enumerate(output):
                self.take_item(index, item)
        elif output is not None:
            self._other_tools = True

    def take_item(self, index: Any, item: Any) -> None:
        """Note an item of the output that tokens do not pay for."""
        kind = item.get("type") if isinstance(item, dict) else None
        if isinstance(kind, str) and kind in FEES:
            did = self._calls.setdefault((index if isinstance(index, int) else 0, FEES[kind]), set())
            action = item.get("action")
            did.add(identifier(action.get("type")) if isinstance(action, dict) else None)
        elif not isinstance(kind, str) or kind not in _PAID_BY_TOKENS:
            self._other_tools = True

    def report(self, *, problem: str | None, finished: bool) -> UsageReport:
        """Return the report; ``problem`` is what is wrong with the answer itself."""
        usage = buckets(self._counts, long_writes=self._long_writes) if self._counts.seen else None
        if usage is not None:
            fees = self._fees()
            pages = SEARCH_TOKENS * dict(fees).get(WEB_SEARCH, 0) if self._identity.model in SEARCH_TOKENS_FIXED else 0
            usage = replace(usage, fees=fees, input_uncached=capped(usage.input_uncached + pages))
        problem = problem or self._problem()
        read = usage_report(usage=usage, identity=self._identity, problem=problem, finished=finished)
        return replace(read, charge=self._charges.charge)

    def _problem(self) -> str | None:
        used = {feature for _, feature in self._calls} | ({WEB_SEARCH} if self._searches else set())
        if self._other_tools or not used <= self._allowed.keys():
            # Nobody allowed them, so no bound has counted what they cost.
            return "server_tool_used"
        return openai_usage.problem_of(self._counts) or ("usage_missing" if self.is_partial else None)

    def _take_tool_usage(self, told: Any) -> None:
        """Note what the provider says of its tools; it stands beside the tokens, and may be missing."""
        if told is None:
            return
        rest = told
        if isinstance(told, dict) and isinstance(told.get("web_search"), dict):
            searches = usable_count(told["web_search"].get("num_requests"))
            if searches is not None:
                self._searches = max(self._searches or 0, searches)
                rest = told | {"web_search": None}
        self._other_tools = self._other_tools or _is_used(rest)

    def _fees(self) -> tuple[tuple[str, int], ...]:
        """Return how often each tool with a fee was used: of what is shown and what is told the greater."""
        units = dict.fromkeys(FEES.values(), 0)
        for (_, feature), did in self._calls.items():
            known = did - {None}
            units[feature] += not known or not known <= _FREE_ACTIONS
        if self._searches is None:
            # Where it is not told, a call did all that it may.
            units[WEB_SEARCH] *= self._allowed.get(WEB_SEARCH, 1)
        units[WEB_SEARCH] = max(units[WEB_SEARCH], self._searches or 0)
        return tuple((kind, count) for kind, count in sorted(units.items()) if count)


def _is_used(numbers: Any) -> bool:
    """Tell whether a report of tools says anything but zero, or nothing that can be read."""
    if isinstance(numbers, dict):
        return any(_is_used(number) for number in numbers.values())
    return numbers is not None and usable_count(numbers) != 0


class _ResponseStream:
    """The events of one streamed response. It is finished by the event that is named for a final status."""

    def __init__(self, request: Request) -> None:
        self._reading = _Reading(request)
        self._final = False
        self._error = False
        self._unreadable = False

    def take(self, frame: Frame) -> Passage:
        if frame.readable and frame.data is not None and frame.data.strip().startswith(_DONE):
            return Passage.FLOW
        event, readable = document_of(frame)
        if event is None:
            self._unreadable = self._unreadable or not readable
            return Passage.FLOW
        return self._take_event(event, frame.event)

    def report(self, *, over: bool) -> UsageReport:  # noqa: ARG002 - the last event ends it, not the connection
        return self._reading.report(problem=self._problem(), finished=self._final)

    def _take_event(self, event: dict[str, Any], name: str) -> Passage:
        kind = event.get("type") or name
        response = event.get("response")
        if isinstance(response, dict):
            self._reading.take(response)
        if event.get("item") is not None:
            self._reading.take_item(event.get("output_index"), event["item"])
        # A response that failed has its error inside; beside it stand those of the connection.
        self._error = self._error or kind == "error" or event.get("error") is not None
        if isinstance(kind, str) and kind.startswith("response.") and kind.removeprefix("response.") in FINAL:
            self._final = True
            usage = response.get("usage") if isinstance(response, dict) else None
            self._reading.is_partial = not isinstance(usage, dict) or usage.get("output_tokens") is None
            return Passage.LAST
        return Passage.FLOW

    def _problem(self) -> str | None:
        if self._unreadable:
            return "frame_unreadable"
        if self._final:
            return None
        return "error_in_stream" if self._error else "stream_unfinished"
