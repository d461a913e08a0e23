"""Cases of media, of streams, of providers that fail or lie, and of gateways that end in the middle."""

import contextlib
import threading
from typing import Any, Final

from spendgate.local.conformance.bill import Terms
from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.provider import Manner

_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
_SLOW_FRAMES: Final = Manner(between_seconds=0.03)
# Ends of money that the books may say is spent: a provider that says this is not believed.
_ODD_USAGE: Final = (
    "null",
    "{}",
    "[]",
    "true",
    '"100"',
    '{"prompt_tokens": "6", "completion_tokens": "100"}',
    '{"prompt_tokens": null, "completion_tokens": null}',
    '{"prompt_tokens": NaN, "completion_tokens": NaN}',
    '{"prompt_tokens": 1e400, "completion_tokens": 1e400}',
    '{"prompt_tokens": true, "completion_tokens": false}',
    '{"prompt_tokens": 6}',
    '{"prompt_tokens": 6, "completion_tokens": 0.5}',
)


def _parts(*parts: dict[str, Any]) -> Any:
    def play(stand: Stand) -> None:
        content = [{"type": "text", "text": "what is this?"}, *parts]
        stand.spend(stand.body(messages=[{"role": "user", "content": content}]), most=20)

    return play


def _hidden(stand: Stand) -> None:
    stand.spend(stand.body(max_tokens=None, max_completion_tokens=1000, stream=True), most=20)


def _cached(stand: Stand) -> None:
    part = {"type": "text", "text": "seven " * 1334, "cache_control": {"type": "ephemeral"}}
    stand.spend(stand.body(messages=[{"role": "user", "content": [part]}]), most=20)


def _stream(stand: Stand) -> None:
    stand.spend(stand.body(stream=True), most=24)


def _whole(stand: Stand) -> None:
    stand.spend(most=24)


def _leave(stand: Stand) -> None:
    for _ in range(14):
        stand.leave(stand.body(stream=True))
    stand.spend(most=30)


def _leave_before(stand: Stand) -> None:
    for _ in range(14):
        stand.call(seconds=0.15)
    stand.provider.manner = Manner()
    stand.spend(most=30)


def _no_usage_wanted(stand: Stand) -> None:
    stand.spend(stand.body(stream=True, stream_options={"include_usage": False}), most=24)


def _each_frame(stand: Stand) -> None:
    _stream(stand)
    books = stand.session.books()
    settled = books.booked - (books.held or 0)
    if settled * 100 > stand.provider.billed * 101:
        raise Missed(
            f"the totals of each frame were added up: {settled} booked for {stand.provider.billed} picodollars"
        )


def _unbilled(stand: Stand) -> None:
    stand.provider.tell(*[Manner(name="error", status=429, unbilled=True)] * 12)
    for _ in range(12):
        stand.call()
    stand.spend(most=60)
    served = sum(answer.served for answer in stand.answers)
    if served < 8 and stand.answers[-1].refused:
        raise Missed(f"after 12 calls that the provider refused unbilled, {served} of 9 were answered")


def _hang(stand: Stand) -> None:
    stand.burst([stand.body()] * 14, seconds=1.0)
    stand.provider.manner = Manner()
    stand.spend(most=30)


def _killed(stand: Stand, body: dict[str, Any]) -> None:
    """Kill the gateway with six calls at the provider, then spend what it thinks is left."""
    with contextlib.ExitStack() as stack:
        threads = [threading.Thread(target=stand.call, args=(body,), daemon=True) for _ in range(6)]
        for thread in threads:
            thread.start()
            stack.callback(thread.join, 30)
        arrived = stand.until(lambda: stand.provider.hits >= 6, 10)
        stand.session.restart(kill=True)
    if not arrived:
        raise Missed(f"{stand.provider.hits} of 6 calls reached the provider before the kill")
    stand.provider.manner = Manner()
    stand.spend(most=30)


def _kill(stand: Stand) -> None:
    _killed(stand, stand.body())


def _kill_streams(stand: Stand) -> None:
    _killed(stand, stand.body(stream=True))


def _restart(stand: Stand) -> None:
    stand.spend(most=5)
    stand.session.restart(kill=False)
    stand.spend(most=30)


def _restart_by_kill(stand: Stand) -> None:
    stand.spend(most=5)
    stand.session.restart(kill=True)
    stand.spend(most=30)


def _odd_usage(stand: Stand) -> None:
    stand.provider.tell(*(Manner(usage_text=text) for text in _ODD_USAGE))
    stand.spend(most=24)


def _odd_usage_streamed(stand: Stand) -> None:
    stand.provider.tell(*(Manner(usage_text=text) for text in _ODD_USAGE))
    stand.spend(stand.body(stream=True), most=24)


CASES: Final = (
    Case(
        name="image by address",
        group="media and hidden tokens",
        title="an image of 1105 tokens behind a short URL",
        play=_parts({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}}),
        limit="0.04",
        sends=False,
    ),
    Case(
        name="image in the body",
        group="media and hidden tokens",
        title="an image of 1105 tokens in a hundred bytes of base64",
        play=_parts({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}", "detail": "high"}}),
        limit="0.04",
        sends=False,
    ),
    Case(
        name="sound",
        group="media and hidden tokens",
        title="a sound of 3000 tokens in a hundred bytes of base64",
        play=_parts({"type": "input_audio", "input_audio": {"data": _PIXEL, "format": "wav"}}),
        limit="0.08",
        sends=False,
    ),
    Case(
        name="file",
        group="media and hidden tokens",
        title="a file of 3000 tokens in a hundred bytes of base64",
        play=_parts(
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{_PIXEL}"}}
        ),
        limit="0.08",
        sends=False,
    ),
    Case(
        name="reasoning unseen",
        group="media and hidden tokens",
        title="1000 tokens billed and one shown, with the usage in the stream",
        play=_hidden,
        limit="0.045",
        terms=Terms(to_the_cap=True, hidden=True),
    ),
    Case(
        name="reasoning unseen and unsaid",
        group="media and hidden tokens",
        title="1000 tokens billed and one shown, in a stream without usage",
        play=_hidden,
        limit="0.045",
        terms=Terms(to_the_cap=True, hidden=True),
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="write to the cache",
        group="media and hidden tokens",
        title="2000 tokens written to Anthropic's cache, counted beside the input and dearer than it",
        play=_cached,
        limit="0.205",
        dialect="anthropic",
        terms=Terms(cached=True),
    ),
    Case(
        name="leaving a stream",
        group="streams and disconnects",
        title="the caller goes after the first bytes, 14 times; the provider bills the whole",
        play=_leave,
        manner=_SLOW_FRAMES,
    ),
    Case(
        name="leaving early",
        group="streams and disconnects",
        title="the caller goes before the answer comes, 14 times",
        play=_leave_before,
        manner=Manner(delay_seconds=0.5),
    ),
    Case(
        name="stream without usage",
        group="streams and disconnects",
        title="the provider never says what a stream used",
        play=_stream,
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="answer without usage",
        group="streams and disconnects",
        title="the provider never says what an answer used",
        play=_whole,
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="usage not wanted",
        group="streams and disconnects",
        title="the caller asks for a stream without usage",
        play=_no_usage_wanted,
        sends=False,
    ),
    Case(
        name="stream cut",
        group="streams and disconnects",
        title="the connection breaks after three frames; the whole is billed",
        play=_stream,
        manner=Manner(name="cut"),
    ),
    Case(
        name="error within a stream",
        group="streams and disconnects",
        title="three frames, then an error in place of the rest; the whole is billed",
        play=_stream,
        manner=Manner(name="error_in_stream"),
    ),
    Case(
        name="usage on each frame",
        group="streams and disconnects",
        title="each frame says the total so far: the last counts, not the sum",
        play=_each_frame,
        manner=Manner(each_frame=True),
    ),
    Case(
        name="compressed",
        group="streams and disconnects",
        title="streams that come compressed, whatever was asked for",
        play=_stream,
        manner=Manner(gzipped=True),
    ),
    Case(
        name="500 after the work",
        group="provider failures",
        title="each call is billed and answered 500",
        play=_whole,
        manner=Manner(name="error", status=500),
    ),
    Case(
        name="503 after the work, streamed",
        group="provider failures",
        title="each stream is billed and answered 503",
        play=_stream,
        manner=Manner(name="error", status=503),
    ),
    Case(
        name="429 unbilled",
        group="provider failures",
        title="12 calls refused by the provider before any work: none may cost anything",
        play=_unbilled,
    ),
    Case(
        name="connection broken",
        group="provider failures",
        title="each call is billed and its connection broken without an answer",
        play=_whole,
        manner=Manner(name="reset"),
    ),
    Case(
        name="no answer",
        group="provider failures",
        title="14 calls are billed and never answered, and their callers go",
        play=_hang,
        manner=Manner(name="hang"),
    ),
    Case(
        name="garbage",
        group="provider failures",
        title="each call is billed and answered 200 with half a document",
        play=_whole,
        manner=Manner(name="garbage"),
    ),
    Case(
        name="answer cut",
        group="provider failures",
        title="each call is billed and its answer breaks off in the middle",
        play=_whole,
        manner=Manner(name="cut"),
    ),
    Case(
        name="redirect",
        group="provider failures",
        title="each call is sent elsewhere, where it is billed at four cents",
        play=_whole,
        limit="0.1",
        manner=Manner(name="redirect"),
    ),
    Case(
        name="killed with calls in flight",
        group="crashes and restarts",
        title="six calls are at the provider when the gateway is killed",
        play=_kill,
        manner=Manner(delay_seconds=3),
    ),
    Case(
        name="killed within streams",
        group="crashes and restarts",
        title="six streams are half-way when the gateway is killed",
        play=_kill_streams,
        manner=Manner(between_seconds=0.5),
    ),
    Case(
        name="restarted",
        group="crashes and restarts",
        title="half of the limit is spent when the gateway is ended in order",
        play=_restart,
    ),
    Case(
        name="killed at rest",
        group="crashes and restarts",
        title="half of the limit is spent, and settled, when the gateway is killed",
        play=_restart_by_kill,
    ),
    Case(
        name="odd usage",
        group="hostile usage",
        title="usage as null, an object of nothing, a list, true, strings, NaN, 1e400, half a token",
        play=_odd_usage,
        limit="0.02",
    ),
    Case(
        name="odd usage, streamed",
        group="hostile usage",
        title="the same in streams",
        play=_odd_usage_streamed,
        limit="0.02",
    ),
    Case(
        name="negative usage",
        group="hostile usage",
        title="usage of less than nothing",
        play=_whole,
        manner=Manner(usage_text='{"prompt_tokens": -6, "completion_tokens": -100, "total_tokens": -106}'),
    ),
    Case(
        name="usage said twice",
        group="hostile usage",
        title="completion_tokens twice in one usage, 100 and 0",
        play=_whole,
        manner=Manner(usage_text='{"prompt_tokens": 6, "completion_tokens": 100, "completion_tokens": 0}'),
    ),
    Case(
        name="more cached than there is",
        group="hostile usage",
        title="cached_tokens larger than the input they are part of",
        play=_whole,
        manner=Manner(usage_fields={"prompt_tokens_details": {"cached_tokens": 100_000}}),
    ),
)
