"""Spendgate beside other gateways: what each adds to a call, in one run, before one provider, on one machine.

All of them are started at once, each by its driver of the conformance suite, and called in turns, so that what else the
machine does meets all alike. Beside them stand two limits: a proxy on the same HTTP stack that keeps no ledger, and the time
that the store alone takes for a call's two transactions.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks import load
from benchmarks.cpu import warm
from benchmarks.load import Connection, Taken, Target, percentile
from benchmarks.rig import chat_body, key_of_depth, rig
from spendgate import __version__
from spendgate.core.money import usd
from spendgate.local.conformance.at_governer import Governer
from spendgate.local.conformance.at_hardcap import Hardcap
from spendgate.local.conformance.at_inferrail import Inferrail
from spendgate.local.conformance.child import Child, accepts, free_port, running
from spendgate.local.conformance.driver import MODEL, Cannot, Driver, Setup
from spendgate.local.conformance.spendgate_file import configuration
from spendgate.local.paths import LOCAL_FILE

ROOT: Final = Path(__file__).parents[1]
OURS: Final = "spendgate"
PROXY: Final = "pass-through proxy"
DIRECT: Final = "(the provider alone)"
LIMIT: Final = usd("10000")
WARMING_CALLS: Final = 20
_PATHS: Final = f"{ROOT}:{ROOT / 'layers' / 'core'}"
_SECRET: Final = "sg-bench-000000000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of load."""

    stream: bool
    at_once: int

    @property
    def name(self) -> str:
        return f"{'streamed' if self.stream else 'whole'}, {self.at_once} at once"


KINDS: Final = tuple(Kind(stream=stream, at_once=at_once) for stream in (False, True) for at_once in (1, 16))


@dataclass(slots=True)
class Seen:
    """What was measured of one gateway under one kind of load."""

    taken: list[Taken] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cpu(self) -> float:
        """CPU seconds of a call: the median over the rounds."""
        return median(self.cpu_seconds)

    def whole(self, share: float) -> float:
        return percentile((one.whole for one in self.taken), share)

    def first(self, share: float) -> float:
        return percentile((one.first for one in self.taken), share)


@dataclass(slots=True, kw_only=True)
class Gateway:
    """One gateway that runs."""

    name: str
    version: str
    target: Target
    model: str
    pids: Sequence[int]
    seen: dict[Kind, Seen] = field(default_factory=lambda: {kind: Seen() for kind in KINDS})
    kilobytes_before: int = 0
    kilobytes_after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The figures of one run; ``absent`` says which peers were not there, and why. ``store`` has the seconds of each kind."""

    gateways: Sequence[Gateway]
    absent: Mapping[str, str]
    store: Mapping[int, Sequence[float]]

    def named(self, name: str) -> Gateway:
        return next(one for one in self.gateways if one.name == name)


def measure(*, peers: Path | None, store_url: str, calls: int, rounds: int) -> Found:
    """Start everything, call each in turns, and return what was seen."""
    with ExitStack() as stack:
        provider_url = stack.enter_context(provided())
        absent: dict[str, str] = {}
        gateways = [Gateway(name=DIRECT, version="", target=Target(url=provider_url, headers={}), model=MODEL, pids=())]
        gateways.append(stack.enter_context(proxied(provider_url)))
        gateways.append(stack.enter_context(ours(provider_url)))
        for driver in () if peers is None else (Hardcap(peers), Inferrail(peers), Governer(peers)):
            stack.callback(driver.close)
            try:
                gateways.append(_started(stack, driver, provider_url))
            except Cannot as cannot:
                absent[driver.name] = str(cannot)
        asyncio.run(_measured(gateways, absent, calls=calls, rounds=rounds))
        kept = [one for one in gateways if one.name not in absent]
        store = {at_once: asyncio.run(store_seconds(store_url, calls, at_once)) for at_once in (1, 16)}
        return Found(gateways=kept, absent=absent, store=store)


@contextmanager
def ours(provider_url: str) -> Iterator[Gateway]:
    """Run ``spendgate local`` with its own settings, and the suite's configuration of one limit."""
    setup = Setup(provider_url=provider_url, limit=LIMIT)
    with tempfile.TemporaryDirectory(prefix="spendgate-bench-") as name:
        folder = Path(name)
        state, file = folder / "state", folder / "spendgate.yaml"
        file.write_text(configuration(OURS, setup, {OURS: _SECRET}), encoding="utf-8")
        command = [sys.executable, "-m", "spendgate.cli.main", "local", "--json", "--port", "0"]
        child = Child([*command, "--state", str(state), "--config", str(file)], folder, {"PYTHONPATH": _PATHS})
        found: list[str] = []

        def ready() -> bool:
            with suppress(FileNotFoundError, json.JSONDecodeError):
                document = json.loads((state / LOCAL_FILE).read_text(encoding="utf-8"))
                found[:] = [document["url"]] if document["pid"] == child.pid else []
            return bool(found) and accepts(urlsplit(found[0]).port or 80)

        with running(child, ready):
            headers = {"authorization": f"Bearer {_SECRET}"}
            target = Target(url=found[0], headers=headers)
            yield Gateway(name=OURS, version=__version__, target=target, model=f"{OURS}-{MODEL}", pids=(child.pid,))


@contextmanager
def provided() -> Iterator[str]:
    """Run the provider."""
    with _module("benchmarks.provider") as (url, _):
        yield url


@contextmanager
def proxied(provider_url: str) -> Iterator[Gateway]:
    """Run the proxy that only passes through."""
    with _module("benchmarks.pass_through", provider_url) as (url, pid):
        yield Gateway(name=PROXY, version="", target=Target(url=url, headers={}), model=MODEL, pids=(pid,))


@contextmanager
def _module(name: str, *arguments: str) -> Iterator[tuple[str, int]]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="spendgate-bench-") as folder:
        child = Child([sys.executable, "-m", name, str(port), *arguments], Path(folder), {"PYTHONPATH": _PATHS})
        with running(child, lambda: accepts(port)):
            yield f"http://127.0.0.1:{port}", child.pid


def _started(stack: ExitStack, driver: Driver, provider_url: str) -> Gateway:
    version = driver.version()
    session = stack.enter_context(driver.session(Setup(provider_url=provider_url, limit=LIMIT)))
    caller = session.callers[0]
    headers = {"authorization": f"Bearer {caller.key}", **caller.headers}
    return Gateway(
        name=driver.name,
        version=version,
        target=Target(url=session.url, headers=headers),
        model=session.asked[MODEL],
        pids=session.pids,
    )


async def _measured(gateways: Iterable[Gateway], absent: dict[str, str], *, calls: int, rounds: int) -> None:
    for gateway in gateways:
        try:
            for kind in KINDS:
                await load.calls(gateway.target, body_of(gateway, kind), count=WARMING_CALLS, at_once=kind.at_once)
        except (load.CallFailed, OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            absent[gateway.name] = f"it did not answer: {error!r}"
        gateway.kilobytes_before = load.memory_kilobytes(gateway.pids)
    for _ in range(rounds):
        for kind in KINDS:
            for gateway in gateways:
                if gateway.name not in absent:
                    await _round(gateway, kind, calls)
    for gateway in gateways:
        gateway.kilobytes_after = load.memory_kilobytes(gateway.pids)


async def _round(gateway: Gateway, kind: Kind, calls: int) -> None:
    seen = gateway.seen[kind]
    before = load.cpu_seconds(gateway.pids)
    seen.taken += await load.calls(gateway.target, body_of(gateway, kind), count=calls, at_once=kind.at_once)
    seen.cpu_seconds.append((load.cpu_seconds(gateway.pids) - before) / calls)


async def store_seconds(store_url: str, calls: int, at_once: int) -> list[float]:
    """Return the seconds that the store alone takes for both transactions of each of so many calls.

    They are what the gateway made of these calls, sent again as they were by a client that only sends.
    """
    made = rig(store_url)
    await warm(made)
    sent: list[tuple[dict[str, str], bytes]] = []
    made.on_request = lambda request: sent.append((_text(request.headers), request.body))
    for _ in range(calls):
        answer = await made.call(key_of_depth(1), chat_body(1000))
        assert answer.status == 200, answer.body
    pairs = iter(list(zip(sent[::2], sent[1::2], strict=True)))
    seconds: list[float] = []

    async def one_after_another() -> None:
        for reserve, settle in pairs:
            seconds.append(sum([await _sent(store_url, *one) for one in (reserve, settle)]))

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
    return seconds


async def _sent(store_url: str, headers: Mapping[str, str], body: bytes) -> float:
    connection = Connection(Target(url=store_url, headers=headers, path="/"))
    try:
        await connection.open()
        return (await connection.call(body)).whole
    finally:
        connection.close()


def _text(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return what says what is asked, and by whom; the connection's own headers are the client's."""
    kept = ("x-amz-target", "content-type", "authorization", "x-amz-date")
    return {
        name.lower(): value.decode() if isinstance(value, bytes) else str(value)
        for name, value in headers.items()
        if name.lower() in kept
    }


def body_of(gateway: Gateway, kind: Kind) -> bytes:
    """Return a chat completion of about 600 bytes that asks for 100 tokens at most."""
    text = "Which of the open tickets concern the billing of the third quarter? " * 7
    messages = [{"role": "system", "content": "Answer in one sentence."}, {"role": "user", "content": text}]
    body = {"model": gateway.model, "max_tokens": 100, "messages": messages}
    return json.dumps(body | ({"stream": True} if kind.stream else {}), separators=(",", ":")).encode()
