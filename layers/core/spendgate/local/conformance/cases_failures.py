"""Cases of providers that fail, lie or break off, and of gateways that end in the middle."""

import contextlib
import threading
from typing import Any, Final

from spendgate.local.conformance import plays
from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.manner import Manner

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
        name="500 after the work",
        group="provider failures",
        title="each call is billed and answered 500",
        play=plays.whole,
        manner=Manner(name="error", status=500),
    ),
    Case(
        name="503 after the work, streamed",
        group="provider failures",
        title="each stream is billed and answered 503",
        play=plays.streamed,
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
        play=plays.whole,
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
        play=plays.whole,
        manner=Manner(name="garbage"),
    ),
    Case(
        name="answer cut",
        group="provider failures",
        title="each call is billed and its answer breaks off in the middle",
        play=plays.whole,
        manner=Manner(name="cut"),
    ),
    Case(
        name="redirect",
        group="provider failures",
        title="each call is sent elsewhere, where it is billed at four cents",
        play=plays.whole,
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
        play=plays.whole,
        manner=Manner(usage_text='{"prompt_tokens": -6, "completion_tokens": -100, "total_tokens": -106}'),
    ),
    Case(
        name="usage said twice",
        group="hostile usage",
        title="completion_tokens twice in one usage, 100 and 0",
        play=plays.whole,
        manner=Manner(usage_text='{"prompt_tokens": 6, "completion_tokens": 100, "completion_tokens": 0}'),
    ),
    Case(
        name="more cached than there is",
        group="hostile usage",
        title="cached_tokens larger than the input they are part of",
        play=plays.whole,
        manner=Manner(usage_fields={"prompt_tokens_details": {"cached_tokens": 100_000}}),
    ),
)
