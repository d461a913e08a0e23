"""Cases of streams, and of callers that go."""

from typing import Final

from spendgate.local.conformance import plays
from spendgate.local.conformance.case import Case, Stand
from spendgate.local.conformance.manner import Manner

_SLOW_FRAMES: Final = Manner(between_seconds=0.03)


def _leave(stand: Stand) -> None:
    for _ in range(14):
        stand.leave(stand.body(stream=True))
    stand.spend(most=30)


def _leave_before(stand: Stand) -> None:
    for _ in range(14):
        stand.call(seconds=0.15)
    stand.provider.manner = Manner()
    stand.spend(most=30)


CASES: Final = (
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
        play=plays.streamed,
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="answer without usage",
        group="streams and disconnects",
        title="the provider never says what an answer used",
        play=plays.whole,
        manner=Manner(name="no_usage"),
    ),
    Case(
        name="usage not wanted",
        group="streams and disconnects",
        title="the caller asks for a stream without usage",
        play=plays.asking(stream=True, stream_options={"include_usage": False}),
        sends=False,
    ),
    Case(
        name="stream cut",
        group="streams and disconnects",
        title="the connection breaks after three frames; the whole is billed",
        play=plays.streamed,
        manner=Manner(name="cut"),
    ),
    Case(
        name="error within a stream",
        group="streams and disconnects",
        title="three frames, then an error in place of the rest; the whole is billed",
        play=plays.streamed,
        manner=Manner(name="error_in_stream"),
    ),
    Case(
        name="usage on each frame",
        group="streams and disconnects",
        title="each frame says the total so far: the last counts, not the sum",
        play=plays.exactly(plays.streamed),
        manner=Manner(each_frame=True),
    ),
    Case(
        name="compressed",
        group="streams and disconnects",
        title="streams that come compressed, whatever was asked for",
        play=plays.streamed,
        manner=Manner(gzipped=True),
    ),
)
