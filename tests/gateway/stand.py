"""A whole gateway on loopback in this process: real HTTP on both sides, the session's store, a clock to set."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import anthropic
import httpx
import openai
import pytest
from botocore.exceptions import EndpointConnectionError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spendgate.admin import Admin
from spendgate.asgi import create_app
from spendgate.core.budget import BudgetState
from spendgate.core.reservation import Reservation, Resolution
from spendgate.local.demo_book import Behaviour, Call, DemoBook
from spendgate.local.demo_provider import create_app as create_demo_provider
from spendgate.local.serving import served
from spendgate.observability import JsonLog
from spendgate.settings import Settings
from spendgate.store.audit import audit
from spendgate.store.client import dynamodb
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.values import decode_item
from spendgate.wiring import Wired, wire

T = TypeVar("T")
_numbers = itertools.count(1)

# Shaped like a provider's key, and looked for wherever it must not be.
PROVIDER_KEY: Final = "sk-CANARY-provider-key-4f1d"
# Nobody listens there: 127.0.0.1 refuses at once, so nothing was sent.
CLOSED_PORT: Final = 1
# Everything is plain http here; reading the certificate authorities would take longer than all the rest of a test.
NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
WAIT_SECONDS_MAX: Final = 20.0

# The demo provider adds nothing to a request, which makes the bound an exact sum of what a test can see.
_PLAIN: Final = "{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}"
FILE: Final = f"""\
version: 1
providers:
  gpt-host:    {{dialect: openai, base_url: "URL/v1", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
  claude-host: {{dialect: anthropic, base_url: "URL", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
  strange-host: {{dialect: openai, base_url: "URL/v1", secret: env:OTHER_KEY, framing: {_PLAIN}}}
  strange-claude: {{dialect: anthropic, base_url: "URL", secret: env:OTHER_KEY, framing: {_PLAIN}}}
  bedrock-host: {{dialect: bedrock, base_url: "URL", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
  signed-host: {{dialect: bedrock, base_url: "URL", framing: {_PLAIN}}}
  bedrock-claude: {{dialect: anthropic, kind: bedrock-anthropic, base_url: "URL", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
  gemini-host: {{dialect: gemini, base_url: "URL", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
  listing-host: {{dialect: openai, base_url: "URL/v1", secret: env:PROVIDER_KEY, framing: {_PLAIN}, free_fields: [shiny]}}
  listing-claude: {{dialect: anthropic, base_url: "URL", secret: env:PROVIDER_KEY, framing: {_PLAIN},
                    free_fields: [shiny], free_betas: [shiny-2027-01-01]}}
  listing-gemini: {{dialect: gemini, base_url: "URL", secret: env:PROVIDER_KEY, framing: {_PLAIN}, free_fields: [shiny]}}
  searching-host: {{dialect: openai, kind: openai, base_url: "URL/v1", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
  keyless-host: {{dialect: openai, base_url: "URL/v1", secret: env:MISSING_KEY, framing: {_PLAIN}}}
  dead-host:   {{dialect: openai, base_url: "http://127.0.0.1:{CLOSED_PORT}/v1", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
  dead-claude: {{dialect: anthropic, base_url: "http://127.0.0.1:{CLOSED_PORT}", secret: env:PROVIDER_KEY, framing: {_PLAIN}}}
prices:
  - {{provider: gpt-host, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: gpt-host, model: dear, input: "5", output: "20", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: claude-host, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: bedrock-host, model: anthropic.claude-demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: signed-host, model: anthropic.claude-demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: bedrock-claude, model: anthropic.claude-demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: gemini-host, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: gemini-host, model: seeing, input: "2.50", output: "10", context_tokens: 128000, image_tokens_max: 300, fees: {{web_search: "0.014"}}}}
  - {{provider: gemini-host, model: embed, input: "2.50", output: "0", context_tokens: 2048}}
  - {{provider: strange-host, model: demo, input: "2.50", output: "10", output_tokens_max: 4096}}
  - {{provider: strange-claude, model: demo, input: "2.50", output: "10", output_tokens_max: 4096}}
  - {{provider: listing-host, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096,
     fees: {{web_search: "0.01"}}}}
  - {{provider: listing-claude, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: listing-gemini, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
  - {{provider: searching-host, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096,
     image_tokens_max: 300, fees: {{web_search: "0.014", file_search: "0.0025"}}}}
  - {{provider: keyless-host, model: demo, input: "2.50", output: "10", output_tokens_max: 4096}}
  - {{provider: dead-host, model: demo, input: "2.50", output: "10", output_tokens_max: 4096}}
  - {{provider: dead-claude, model: demo, input: "2.50", output: "10", output_tokens_max: 4096}}
routes:
  gpt: [{{provider: gpt-host, model: demo}}]
  claude: [{{provider: claude-host, model: demo}}]
  "us.anthropic.claude-demo-v1:0": [{{provider: bedrock-host, model: anthropic.claude-demo}}]
  "arn:aws:bedrock:us-east-1:1:application-inference-profile/x": [{{provider: bedrock-host, model: anthropic.claude-demo}}]
  signed: [{{provider: signed-host, model: anthropic.claude-demo}}]
  claude-at-bedrock: [{{provider: bedrock-claude, model: anthropic.claude-demo}}]
  gemini: [{{provider: gemini-host, model: demo}}]
  seeing: [{{provider: gemini-host, model: seeing}}]
  embed: [{{provider: gemini-host, model: embed}}]
  strange: [{{provider: strange-host, model: demo}}]
  strange-claude: [{{provider: strange-claude, model: demo}}]
  listing: [{{provider: listing-host, model: demo}}]
  listing-claude: [{{provider: listing-claude, model: demo}}]
  listing-gemini: [{{provider: listing-gemini, model: demo}}]
  half-listing: [{{provider: listing-host, model: demo}}, {{provider: gpt-host, model: demo}}]
  searching: {{candidates: [{{provider: listing-host, model: demo}}], allow: {{web_search: 2, server_state: 1}}}}
  web: [{{provider: searching-host, model: demo}}]
  keyless: [{{provider: keyless-host, model: demo}}]
  dead: [{{provider: dead-host, model: demo}}]
  dead-claude: [{{provider: dead-claude, model: demo}}]
  dead-then-dear: [{{provider: dead-host, model: demo}}, {{provider: gpt-host, model: dear}}]
  two: [{{provider: gpt-host, model: demo}}, {{provider: gpt-host, model: dear}}]
"""


class Clock:
    """Real time from an instant that a test sets; each test begins in an hour of its own."""

    def __init__(self) -> None:
        self._base = datetime(2026, 11, 30, 2, 0, 10, tzinfo=UTC)
        self._since = time.monotonic()

    def __call__(self) -> datetime:
        return self._base + timedelta(seconds=time.monotonic() - self._since)

    def set(self, to: datetime) -> None:
        self._base, self._since = to, time.monotonic()

    def turn(self, **by: float) -> None:
        self._base += timedelta(**by)

    def next_hour(self) -> None:
        """Go to ten seconds past the next hour: what was cached is old, and no minute ends within the test."""
        self.set(self().replace(minute=0, second=10, microsecond=0) + timedelta(hours=1))


@dataclass
class Deferred:
    """A fallback that keeps what it was given."""

    given: list[tuple[Reservation, Resolution]] = field(default_factory=list)

    def defer(self, reservation: Reservation, resolution: Resolution) -> None:
        self.given.append((reservation, resolution))


@dataclass(frozen=True)
class Arrival:
    """One request as an ASGI application saw it, and the status of its answer (0: none yet)."""

    path: str
    connection: tuple[str, int] | None
    headers: Mapping[str, str]


class Watched:
    """An ASGI application whose requests are counted before it sees them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.arrivals: list[Arrival] = []
        self.statuses: list[int] = []
        self.sent: list[bytes] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client")
        self.arrivals.append(Arrival(path=scope["path"], connection=tuple(client) if client else None, headers=headers))

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                self.bodies.append(message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.statuses.append(message["status"])
            elif message["type"] == "http.response.body":
                self.sent.append(message.get("body", b""))
            await send(message)

        await self._app(scope, receiving, sending)

    @property
    def connections(self) -> int:
        return len({arrival.connection for arrival in self.arrivals})

    def forget(self) -> None:
        self.arrivals.clear()
        self.statuses.clear()
        self.bodies.clear()
        self.sent.clear()


class Store:
    """What the gateway's client asked of the store, and a way to make it fail."""

    def __init__(self, client: Any) -> None:
        self.operations: list[str] = []
        self._failing: Callable[[str], bool] | None = None
        self._losing: Callable[[str], bool] | None = None
        self._losses = 0
        self._answering: Callable[[Any], Any] = lambda _: None
        self._answers = 0
        client.meta.events.register("before-send.dynamodb", self._before_send)
        client.meta.events.register("before-parse.dynamodb", self._before_parse)

    def _before_send(self, request: Any, event_name: str, **_: Any) -> Any:
        operation = event_name.rpartition(".")[2]
        self.operations.append(operation)
        if self._failing is not None and self._failing(operation):
            raise EndpointConnectionError(endpoint_url=request.url)
        if self._answers and operation == "TransactWriteItems":
            self._answers -= 1
            return self._answering(request)
        # None: it goes to the store.
        return None

    @contextmanager
    def answering(self, answer: Callable[[Any], Any], *, times: int) -> Iterator[None]:
        """Answer the next transactions in the store's place."""
        self._answering, self._answers = answer, times
        try:
            yield
        finally:
            self._answers = 0

    def _before_parse(self, operation_model: Any, response_dict: Any, **_: Any) -> None:
        # Called when the store has done its work and answered.
        if self._losses and self._losing is not None and self._losing(operation_model.name):
            self._losses -= 1
            raise EndpointConnectionError(endpoint_url="the answer was lost")

    @contextmanager
    def losing_answers(self, when: Callable[[str], bool], *, times: int) -> Iterator[None]:
        """Do what is asked for, and lose the first answers for which ``when`` holds."""
        self._losing, self._losses = when, times
        try:
            yield
        finally:
            self._losing, self._losses = None, 0

    @contextmanager
    def failing(self, when: Callable[[str], bool] = lambda _: True) -> Iterator[None]:
        """Let no request for which ``when`` holds reach the store within the block."""
        self._failing = when
        try:
            yield
        finally:
            self._failing = None


@dataclass(kw_only=True)
class Stand:
    """The gateway, everything around it, and what a test wants to know of it."""

    url: str
    provider_url: str
    settings: Settings
    wired: Wired
    admin: Admin
    clock: Clock
    book: DemoBook
    gateway: Watched
    provider: Watched
    store: Store
    deferred: Deferred
    log: io.StringIO
    loop: asyncio.AbstractEventLoop
    reader: Ledger
    root: str = "acme"

    # -- arranging

    def open(self, budgets: str, keys: str = "", *, routes: str = "") -> str:
        """Apply budgets (and keys); ``$`` stands for this test's root. Return the secret of the first key.

        Without keys, one opens the last budget.
        """
        last = [line for line in budgets.splitlines() if line.strip() and not line.startswith(" ")][-1]
        keys = keys or f"$-{next(_numbers)}: {{budget: {last.partition(':')[0]}}}"
        return next(iter(self.open_all(budgets, keys, routes=routes).values()))

    def open_all(self, budgets: str, keys: str, *, routes: str = "") -> dict[str, str]:
        """Apply budgets and keys, and return the secret of every key by its name."""
        file = FILE.replace("URL", self.provider_url) + routes
        parts = [file]
        for section, text in (("budgets", budgets), ("keys", keys)):
            lines = "\n".join(f"  {line}" for line in text.replace("$", self.root).splitlines())
            parts.append(f"{section}:\n{lines}\n")
        applied = self.admin.apply("".join(parts), by="a test")
        assert applied["complete"], applied["failure"]
        return dict(applied["keys"])

    def behave(self, name: str = "ok", *, calls: int | None = 1, **options: Any) -> None:
        """Tell the provider how to answer."""
        self.book.behave(Behaviour(name=name, **options), calls=calls)

    def begin(self, root: str) -> None:
        """Forget all that earlier tests did; what the file says of providers, prices and routes stays."""
        self.root = root
        for table, prefix in ((self.settings.ledger_table, ""), (self.settings.config_table, "KEY#")):
            self._empty(table, prefix)
        self.clock.next_hour()
        for watched in (self.gateway, self.provider):
            watched.forget()
        self.book.reset()
        self.store.operations.clear()
        self.deferred.given.clear()

    def _empty(self, table: str, prefix: str) -> None:
        client = self.reader.client
        for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
            keys = [{name: item[name] for name in ("pk", "sk")} for item in page["Items"]]
            gone: list[Any] = [{"DeleteRequest": {"Key": key}} for key in keys if key["pk"]["S"].startswith(prefix)]
            for at in range(0, len(gone), 25):
                client.batch_write_item(RequestItems={table: gone[at : at + 25]})

    # -- calling

    def openai(self, key: str, **options: Any) -> openai.OpenAI:
        http = openai.DefaultHttpxClient(trust_env=False, verify=NO_TLS)
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, http_client=http, **options)

    def anthropic(self, key: str, **options: Any) -> anthropic.Anthropic:
        http = anthropic.DefaultHttpxClient(trust_env=False, verify=NO_TLS)
        return anthropic.Anthropic(base_url=self.url, api_key=key, http_client=http, **options)

    def post(self, path: str, body: Any, key: str | None, **options: Any) -> httpx.Response:
        """Send one request, and nothing but what is given; a dict becomes JSON."""
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        headers |= options.pop("headers", {})
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        with httpx.Client(base_url=self.url, trust_env=False, verify=NO_TLS, timeout=30) as client:
            return client.post(path, content=content, headers=headers, **options)

    def get(self, path: str, key: str | None, **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        with httpx.Client(base_url=self.url, trust_env=False, verify=NO_TLS, timeout=30) as client:
            return client.get(path, headers=headers | options.pop("headers", {}), **options)

    def chat(self, key: str | None, text: str = "Hello", **fields: Any) -> httpx.Response:
        """Make a chat completion of a known size."""
        headers = fields.pop("headers", {})
        return self.post("/v1/chat/completions", chat(text, **fields), key, headers=headers)

    def message(self, key: str | None, text: str = "Hello", **fields: Any) -> httpx.Response:
        headers = fields.pop("headers", {})
        return self.post("/v1/messages", message(text, **fields), key, headers=headers)

    def call(self, dialect: str, key: str | None, text: str = "Hello", **fields: Any) -> httpx.Response:
        """Make a call of either dialect, by its usual route."""
        return (self.chat if dialect == "openai" else self.message)(key, text, **fields)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the gateway's own event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_SECONDS_MAX)

    # -- seeing

    def reservations(self) -> tuple[Reservation, ...]:
        """Return this test's reservations, the oldest first."""
        days = {f"{self.clock() - timedelta(days=back):%Y-%m-%d}" for back in (0, 1)}
        paths = [state.policy.path for state in self.reader.budgets() if state.policy.path.split("/")[0] == self.root]
        found = [one for path in paths for day in days for one in self.reader.reservations_of_day(path, day)]
        return tuple(sorted(found, key=lambda one: one.created_at))

    def reservation(self) -> Reservation:
        """Return the one reservation that this test has made."""
        (one,) = self.reservations()
        return one

    def reservation_of(self, reservation_id: str) -> Reservation:
        found = self.reader.reservation(reservation_id)
        assert found is not None
        return found

    def ended(self) -> Reservation:
        """Return the one reservation once it is not in flight any more."""
        self.until(lambda: bool(self.reservations()) and self.reservation().state != "in_flight")
        return self.reservation()

    def state(self, path: str = "$") -> BudgetState:
        found = self.reader.budget(path.replace("$", self.root))
        assert found is not None
        return found

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for what happens behind the answer; a test fails where it does not."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while not holds():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.01)

    def audited(self) -> None:
        """Hold every counter to the sum over its reservations (G9), and the ledger to the provider's bill (G8)."""
        report = audit(self.reader, self.clock(), pause=lambda: None)
        assert report.differences == ()
        state = self.state()
        assert state.counters.get("usd.life", 0) >= self.book.billed_picodollars
        held = sum(one.asked.usd for one in self.reservations() if one.state in {"in_flight", "unknown"})
        assert state.reserved == held

    @property
    def hits(self) -> int:
        return self.book.hits

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.book.calls

    def tables(self) -> str:
        """Return everything that the two tables hold, as text."""
        found = []
        for table in (self.settings.ledger_table, self.settings.config_table):
            pages = self.reader.client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
            found += [repr(decode_item(item)) for page in pages for item in page["Items"]]
        return "\n".join(found)


def chat(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Return a chat completion's body with an output cap of 20 tokens."""
    body = {"model": "gpt", "messages": [{"role": "user", "content": text}], "max_completion_tokens": 20}
    return {name: value for name, value in (body | fields).items() if value is not ...}


def message(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Return a message's body with an output cap of 20 tokens."""
    body = {"model": "claude", "messages": [{"role": "user", "content": text}], "max_tokens": 20}
    return {name: value for name, value in (body | fields).items() if value is not ...}


def facts(response: httpx.Response) -> dict[str, Any]:
    """Return the facts of a refusal, from wherever its dialect keeps them."""
    error: dict[str, Any] = response.json()["error"]
    details: Any = error.get("details", error)
    if isinstance(details, list):
        (details,) = details
    return {**details, "code": details.get("error_code", details.get("code")), "message": error["message"]}


@contextmanager
def standing(store_url: str, *, client: Any = None, **changed: Any) -> Iterator[Stand]:
    """Run a gateway with these settings in front of a demo provider; both end with the block.

    ``client`` is a store's that is in this process, in the place of the one at ``store_url``.
    """
    name = f"gateway-{secrets.token_hex(6)}"
    settings = replace(
        Settings(
            ledger_table=name,
            config_table=f"{name}-config",
            endpoint_url=store_url,
            call_seconds_max=60,
            # Patient, since the machine that runs the tests may be busy.
            ledger_deadline_seconds=20,
        ),
        **changed,
    )
    ready: list[Stand] = []
    started, over = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def serve() -> None:
        try:
            asyncio.run(_serve(settings, client, ready, started, over))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            failed.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=serve, name="gateway under test")
    thread.start()
    try:
        started.wait()
        if failed:
            raise failed[0]
        yield ready[0]
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


async def _serve(
    settings: Settings, held: Any, ready: list[Stand], started: threading.Event, over: threading.Event
) -> None:
    clock, deferred, log_stream, book = Clock(), Deferred(), io.StringIO(), DemoBook()
    with pytest.MonkeyPatch.context() as patch:
        # The logger below is one a name for the whole process, and stays with its first stream.
        patch.setattr("spendgate.observability.SERVICE", settings.ledger_table)
        log = JsonLog(stream=log_stream)
    environ = {"PROVIDER_KEY": PROVIDER_KEY, "OTHER_KEY": "sk-CANARY-not-the-expected-one"}
    with pytest.MonkeyPatch.context() as patch:
        if held is not None:
            patch.setattr("spendgate.wiring.dynamodb", lambda **_: held)
        wired = wire(settings, environ=environ, log=log, fallback=deferred, clock=clock)
    create_tables(wired.ledger.client, ledger=settings.ledger_table, config=settings.config_table)
    gateway = Watched(create_app(wired.gateway, settings=settings, log=log))
    provider = Watched(create_demo_provider(book=book, expected_key=PROVIDER_KEY))
    async with AsyncExitStack() as stack:
        provider_url = await stack.enter_async_context(served(provider, grace_seconds=1))
        stack.push_async_callback(wired.gateway.aclose, grace_seconds=1)
        url = await stack.enter_async_context(served(gateway, grace_seconds=1))
        # A client of its own, so that what the gateway asks of the store is told apart from what a test does.
        client = held or dynamodb(region=settings.region, endpoint_url=settings.endpoint_url, validate=True)
        reader = Ledger(settings.ledger_table, client, wired.ledger.timing)
        config = Config(settings.config_table, settings.ledger_table, client, wired.ledger.timing)
        admin = Admin(reader, config, clock=clock, randomness=secrets.token_bytes, loopback_http=True)
        ready.append(
            Stand(
                url=url,
                provider_url=provider_url,
                settings=settings,
                wired=wired,
                admin=admin,
                clock=clock,
                book=book,
                gateway=gateway,
                provider=provider,
                store=Store(wired.ledger.client),
                deferred=deferred,
                log=log_stream,
                loop=asyncio.get_running_loop(),
                reader=reader,
            )
        )
        started.set()
        while not over.is_set():  # noqa: ASYNC110 - the end comes from another thread
            await asyncio.sleep(0.02)


def events(response: httpx.Response) -> Sequence[str]:
    """Return the events of a streamed answer, each as its text."""
    return [event for event in response.text.split("\n\n") if event.strip()]


def raw_socket(url: str) -> socket.socket:
    """Return a connection to the gateway that no HTTP library minds."""
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_SECONDS_MAX)
