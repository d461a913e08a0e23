"""A gateway for the benchmarks: the real code in this process, with a store that can be canned and a stub provider.

Everything that a call does is done, but for the waiting: DynamoDB's answer can be a canned one (what botocore makes
of the request, its signature and the parsing of the answer stay), and the provider is a transport of httpx.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import secrets
import tempfile
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from benchmarks.stub import StubPool, StubProvider
from spendgate.admin import Admin
from spendgate.asgi import create_app
from spendgate.calls import Parts
from spendgate.directory import Directory
from spendgate.gateway import Gateway
from spendgate.local import ministack
from spendgate.observability import JsonLog
from spendgate.providers.signing import Signer
from spendgate.settings import Settings
from spendgate.store.client import dynamodb
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.secrets import Secrets, secrets_manager
from spendgate.store.tables import create_tables
from spendgate.wiring import LoggedFallback, Threads, reader, timing, utc_now

T = TypeVar("T")

STORE_SECONDS_MAX: Final = 60.0
# Budgets of a path of four, each with the limits that its like has in a team; a key of each depth.
PATHS: Final = ("acme", "acme/search", "acme/search/triage", "acme/search/triage/agent-7")

CONFIGURATION: Final = """\
version: 1
providers:
  stub: {dialect: openai, base_url: http://127.0.0.1:9/v1, secret: env:STUB_KEY}
prices:
  - {provider: stub, model: stub-model, input: "2.50", cache_read: "1.25", output: "10", context_tokens: 128000,
     output_tokens_max: 16384}
routes:
  agent-model: [{provider: stub, model: stub-model}]
budgets:
  acme: {limits: {usd: {month: 900000, day: 90000}}}
  acme/search: {limits: {usd: {day: 80000}}}
  acme/search/triage:
    limits: {usd: {request: 40, hour: 70000, day: 70000}, requests: {minute: 1000000}}
    runs: {limits: {usd: {life: 1000}, requests: {life: 1000000}}, expire_after: 24h}
  acme/search/triage/agent-7: {limits: {usd: {day: 60000}, requests: {minute: 1000000}}}
  acme/small: {limits: {usd: {day: "0.0095"}}}
keys:
  depth-1: {budget: acme, secret: sg-bench-0000000000000001}
  depth-2: {budget: acme/search, secret: sg-bench-0000000000000002}
  depth-3: {budget: acme/search/triage, secret: sg-bench-0000000000000003}
  depth-4: {budget: acme/search/triage/agent-7, secret: sg-bench-0000000000000004}
  small: {budget: acme/small, secret: sg-bench-0000000000000009}
"""
# Room for one call of ``chat_body(1000)`` and not for a second.
SMALL: Final = "sg-bench-0000000000000009"


def key_of_depth(depth: int) -> str:
    """Return the key whose path has so many budgets."""
    return f"sg-bench-{depth:016d}"


@dataclass(slots=True)
class Answer:
    """What a call was answered."""

    status: int = 0
    body: bytes = b""


@dataclass(slots=True, kw_only=True)
class Rig:
    """A gateway that is called as a server would, and what passed between it and its neighbours.

    ``trace`` has an operation's name for each request to DynamoDB, and EGRESS for each to the provider, in order.
    With ``canned`` every transaction is answered ``{}`` at once, without a network; ``offload.inline`` runs the
    store's calls on the thread of the caller. ``on_write`` is told what each transaction writes, before it is sent, and ``on_request`` as what
    request, canned or not.
    """

    app: Callable[..., Awaitable[None]]
    admin: Admin
    ledger: Ledger
    directory: Directory
    stub: StubProvider
    trace: list[str]
    offload: Offloading
    on_write: Callable[[Sequence[Any]], None] = field(default=lambda _: None)
    on_request: Callable[[Any], None] = field(default=lambda _: None)
    canned: bool = False

    async def call(self, secret: str, body: bytes, *headers: tuple[bytes, bytes]) -> Answer:
        """POST a body to ``/v1/chat/completions``."""
        pending = [{"type": "http.request", "body": body, "more_body": False}]
        answer = Answer()

        async def receive() -> MutableMapping[str, Any]:
            if pending:
                return pending.pop()
            # Nothing more comes; the caller stays.
            await asyncio.Event().wait()
            return {}

        async def send(message: MutableMapping[str, Any]) -> None:
            answer.status = message.get("status", answer.status)
            answer.body += message.get("body", b"")

        await self.app(_scope(secret, len(body), headers), receive, send)
        return answer

    async def traced(self, secret: str, body: bytes, *headers: tuple[bytes, bytes]) -> tuple[Answer, list[str]]:
        """Make a call and return what passed during it."""
        self.trace.clear()
        answer = await self.call(secret, body, *headers)
        return answer, list(self.trace)


class Offloading:
    """The gateway's threads for the store's calls, or none."""

    def __init__(self) -> None:
        self.inline = False
        self._threads = Threads(4)

    async def __call__(self, call: Callable[[], T]) -> T:
        return call() if self.inline else await self._threads(call)


@contextmanager
def a_store() -> Iterator[str]:
    """Run a MiniStack and hand out its URL."""
    with tempfile.TemporaryDirectory(prefix="spendgate-bench-") as folder:
        store = ministack.start(Path(folder), persist=False, environ=os.environ)
        try:
            yield store.url
        finally:
            store.stop()


def rig(store_url: str) -> Rig:
    """Return a gateway on tables of its own, with the configuration above."""
    name = f"bench-{secrets.token_hex(6)}"
    settings = Settings(ledger_table=name, config_table=f"{name}-config", cache_seconds=86_400)
    # Patient: what is measured is CPU, and a busy machine may keep the emulator waiting.
    client = dynamodb(region=settings.region, endpoint_url=store_url, read_seconds=STORE_SECONDS_MAX)
    create_tables(client, ledger=settings.ledger_table, config=settings.config_table)
    times = timing(60)
    ledger = Ledger(settings.ledger_table, client, times)
    config = Config(settings.config_table, settings.ledger_table, client, times)
    admin = Admin(ledger, config, clock=utc_now, randomness=secrets.token_bytes, loopback_http=True)
    admin.apply(CONFIGURATION, by="benchmarks")
    log = JsonLog(stream=io.StringIO())
    trace: list[str] = []
    stub, offload = StubProvider(trace), Offloading()
    directory = Directory(config, clock=utc_now, offload=offload, seconds=settings.cache_seconds)
    held = Secrets(environ={"STUB_KEY": "stub-secret"}, manager=lambda: secrets_manager("us-east-1"), clock=utc_now)
    gateway = Gateway(
        Parts(
            directory=directory,
            ledger=ledger,
            pool=StubPool(stub),
            secret=reader(held, offload),
            fallback=LoggedFallback(log),
            settings=settings,
            clock=utc_now,
            randomness=secrets.token_bytes,
            offload=offload,
            log=log,
            sign=Signer(region=settings.region).sign,
        )
    )
    made = Rig(
        app=create_app(gateway, settings=settings, log=log),
        admin=admin,
        ledger=ledger,
        directory=directory,
        stub=stub,
        trace=trace,
        offload=offload,
    )
    # The type of a handler has no answer; botocore takes one for the response and sends nothing then.
    handler: Any = lambda request, **_: _sent(made, request)  # noqa: E731
    client.meta.events.register("before-send.dynamodb", handler)
    return made


def chat_body(size: int, *, stream: bool = False) -> bytes:
    """Return a conversation of about ``size`` bytes, in messages of about 500."""
    count = max(1, size // 550)
    text = "Which of the open tickets concern the billing of the third quarter? " * 7
    messages = [{"role": ("user", "assistant")[number % 2], "content": text} for number in range(count)]
    body: dict[str, Any] = {"model": "agent-model", "max_tokens": 500, "temperature": 0.2, "messages": messages}
    if stream:
        body["stream"] = True
    return json.dumps(body).encode()


def _sent(made: Rig, request: Any) -> AWSResponse | None:
    operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
    made.trace.append(operation)
    if operation != "TransactWriteItems":
        return None
    made.on_request(request)
    if not made.canned:
        made.on_write(json.loads(request.body)["TransactItems"])
        return None
    headers = HTTPHeaders.from_dict({"content-type": "application/x-amz-json-1.0"})
    return AWSResponse(request.url, 200, headers, _Raw())


class _Raw:
    """What botocore reads a response's body from."""

    def stream(self) -> Iterator[bytes]:
        yield b"{}"


def _scope(secret: str, length: int, headers: tuple[tuple[bytes, bytes], ...]) -> dict[str, Any]:
    path = "/v1/chat/completions"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        # What the official client sends, that the reading of headers costs what it does.
        "headers": [
            (b"host", b"127.0.0.1:8787"),
            (b"accept-encoding", b"gzip, deflate"),
            (b"connection", b"keep-alive"),
            (b"accept", b"application/json"),
            (b"content-type", b"application/json"),
            (b"user-agent", b"OpenAI/Python 2.9.0"),
            (b"x-stainless-lang", b"python"),
            (b"x-stainless-os", b"Linux"),
            (b"x-stainless-runtime", b"CPython"),
            (b"x-stainless-retry-count", b"0"),
            (b"x-stainless-read-timeout", b"600"),
            (b"authorization", b"Bearer " + secret.encode()),
            (b"content-length", str(length).encode()),
            *headers,
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8787),
    }
