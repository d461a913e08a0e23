"""The whole gateway on one machine: MiniStack, the gateway, the admin API and, without a configuration, a demo provider.

Everything listens on 127.0.0.1. The order of the end is the reverse of the beginning: calls finish or become
unknown, then the store writes its tables down.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from spendgate import configuration_reader
from spendgate.admin import Admin
from spendgate.alerts import AlertReport, alert, send_samples
from spendgate.asgi import create_app
from spendgate.asking import Asking
from spendgate.catalogue_files import catalogue_in
from spendgate.core.alert_text import Message
from spendgate.errors import ConfigurationInvalid, LedgerError, LedgerUnavailable, LocalStoreFailed, Problem
from spendgate.local import ministack
from spendgate.local.admin_api import admin_routes
from spendgate.local.builtin import configuration_text
from spendgate.local.demo_book import DemoBook
from spendgate.local.demo_provider import create_app as create_demo_provider
from spendgate.local.paths import LOCAL_FILE, PRICES, STATE_DIR_DEFAULT
from spendgate.local.place import Local
from spendgate.local.serving import served
from spendgate.local.settlements import Settlements
from spendgate.local.welcome import farewell, welcome
from spendgate.observability import JsonLog
from spendgate.settings import Settings, read
from spendgate.store.tables import open_tables
from spendgate.store.usage import claim_usage
from spendgate.sweep import SWEEPER, sweep, trim
from spendgate.wiring import Wired, utc_now, wire

PORT_DEFAULT: Final = 8787
SWEEP_SECONDS: Final = 1.0
# Old counters are in nobody's way; the tree is walked for them once a minute.
TRIM_ROUNDS: Final = 60
# The emulator does some hundred transactions a second, and a crowd of callers may have to wait for it.
LOCAL_SETTINGS: Final = Settings(ledger_deadline_seconds=5)
GRACE_SECONDS: Final = 5


def run_local(
    config: Path | None,
    port: int | None,
    state_dir: Path | None,
    *,
    ephemeral: bool,
    as_json: bool,
    clock: Callable[[], datetime] = utc_now,
) -> int:
    """Run until Ctrl-C or SIGTERM; return the exit code. ConfigurationInvalid, LocalStoreFailed."""
    settings = read(os.environ, LOCAL_SETTINGS)
    # Before anything is started or written: a wrong file leaves nothing behind.
    text = None if config is None else _text_of(config)

    async def until_stopped() -> None:
        stopped = _stop_signal()
        with _state(state_dir, ephemeral=ephemeral, environ=os.environ) as (folder, persist):
            async with running(
                text, settings, state_dir=folder, persist=persist, port=port, tell=_warn, clock=clock
            ) as local:
                if as_json:
                    _say(json.dumps(local.as_json()))
                else:
                    _say(welcome(local, config))
                await stopped.wait()
                if not as_json:
                    _say(farewell(persist=persist, state_dir=folder))

    asyncio.run(until_stopped())
    return 0


@asynccontextmanager
async def running(
    text: str | None,
    settings: Settings,
    *,
    state_dir: Path,
    persist: bool,
    port: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], datetime] = utc_now,
) -> AsyncIterator[Local]:
    """Run the gateway for a configuration (None: the built-in one) and hand it out; every part ends with the block.

    ``tell`` gets each alert in one line; the whole text is in the log. LocalStoreFailed, ConfigurationInvalid.
    """
    async with contextlib.AsyncExitStack() as stack:
        log = JsonLog(stream=stack.enter_context((state_dir / "gateway.log").open("a", encoding="utf-8")))
        store = await asyncio.to_thread(ministack.start, state_dir, persist=persist, environ=os.environ)
        stack.push_async_callback(asyncio.to_thread, store.stop)
        demo = DemoBook() if text is None else None
        # It ends after the gateway, whose last calls it still answers.
        demo_url = None if demo is None else await stack.enter_async_context(served(create_demo_provider(book=demo)))
        settlements = Settlements(log)
        at_store = replace(settings, endpoint_url=store.url)
        wired = wire(at_store, environ=os.environ, log=log, fallback=settlements, clock=clock)
        stack.push_async_callback(asyncio.to_thread, settlements.drain, wired.ledger, clock)
        closing = partial(wired.gateway.aclose, grace_seconds=GRACE_SECONDS)
        # Once more after the server has ended, for a call that came in while the others were waited for.
        stack.push_async_callback(closing)
        _prepare(wired, settings, clock())
        admin = _admin(wired, log, tell, clock)
        file = text if text is not None else configuration_text(str(demo_url))
        applied = await asyncio.to_thread(_applied, admin, file)
        token = secrets.token_urlsafe(24)
        routes = tuple(admin_routes(admin, token, changed=wired.directory.forget))
        app = create_app(wired.gateway, settings=settings, log=log, routes=routes)
        url = await stack.enter_async_context(_served(app, port, closing))
        await stack.enter_async_context(_running(_sweep(wired, settlements, log, tell, clock)))
        local = Local(
            url=url,
            admin_url=f"{url}/admin",
            admin_token=token,
            keys=secrets_of(applied, file),
            state_dir=state_dir,
            wired=wired,
            demo_url=demo_url,
            demo=demo,
            warnings=tuple(applied.get("warnings", ())),
        )
        with _written_down(local):
            yield local


def _prepare(wired: Wired, settings: Settings, now: datetime) -> None:
    """Make the tables, and claim them for this version's data."""
    store = wired.ledger
    open_tables(store.client, ledger=settings.ledger_table, config=settings.config_table, timing=store.timing)
    wired.config.claim_data()
    claim_usage(wired.config, now)


def _admin(wired: Wired, log: JsonLog, tell: Callable[[str], None], clock: Callable[[], datetime]) -> Admin:
    return Admin(
        wired.ledger,
        wired.config,
        clock=clock,
        randomness=secrets.token_bytes,
        loopback_http=True,
        catalogue=catalogue_in(PRICES),
        recover=wired.recover,
        alert_tester=lambda: _counts(send_samples(partial(_alerted, log, tell), clock())),
    )


def _applied(admin: Admin, file: str) -> Mapping[str, Any]:
    """Apply the configuration, whole; LocalStoreFailed."""
    applied = admin.apply(file, by="spendgate local")
    if not applied["complete"]:
        raise LocalStoreFailed(f"the configuration was applied in part only: {applied['failure']}; start again")
    return applied


def _text_of(config: Path) -> str:
    """Return what a configuration file says; ConfigurationInvalid where it is wrong, before the store is asked."""
    try:
        text = config.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationInvalid([Problem("", f"{config} is not UTF-8 text")]) from error
    except OSError as error:
        raise ConfigurationInvalid([Problem("", f"{config} cannot be read: {error.strerror}")]) from error
    configuration_reader.parse(text, loopback_http=True)
    return text


def secrets_of(applied: Mapping[str, Any], file: str) -> dict[str, str]:
    """Return the secrets that are known: of keys that were just made, and those that the file fixes."""
    fixed = {key.name: key.secret for key in configuration_reader.parse(file, loopback_http=True).keys if key.secret}
    return {**fixed, **applied.get("keys", {})}


@contextmanager
def _state(given: Path | None, *, ephemeral: bool, environ: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    """Yield the state folder, and whether it is kept."""
    if ephemeral:
        folder = Path(tempfile.mkdtemp(prefix="spendgate-"))
        try:
            yield folder, False
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    folder = given or Path(environ.get("SPENDGATE_STATE") or STATE_DIR_DEFAULT)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise LocalStoreFailed(f"the state folder {folder} cannot be made: {error.strerror}") from error
    yield folder, True


@contextmanager
def _written_down(local: Local) -> Iterator[None]:
    """Tell other commands where the gateway is, in a file that only this user can read."""
    file = local.state_dir / LOCAL_FILE
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump({**local.as_json(), "keys": {}, "pid": os.getpid()}, out)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


@asynccontextmanager
async def _served(app: Any, port: int | None, closing: Callable[[], Awaitable[None]]) -> AsyncIterator[str]:
    """Serve on the port asked for, else on the usual one, else on a free one; calls end before their connections."""
    serve = partial(served, app, grace_seconds=GRACE_SECONDS + 1, closing=closing)
    async with contextlib.AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serve(port=PORT_DEFAULT if port is None else port))
        except OSError as error:
            if port is not None:
                raise LocalStoreFailed(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}") from error
            url = await stack.enter_async_context(serve())
        yield url


async def _sweep(
    wired: Wired, settlements: Settlements, log: JsonLog, tell: Callable[[str], None], clock: Callable[[], datetime]
) -> None:
    """What the schedule does in a deployment: settle what was deferred, and mark what is overdue."""
    for round_number in itertools.count():
        await asyncio.sleep(SWEEP_SECONDS)
        try:
            await asyncio.to_thread(settlements.drain, wired.ledger, clock)
            asking = Asking(wired.config.provider, wired.recover, SWEEPER)
            # One at a time: whoever stops the gateway waits for a provider's answer, but not for many.
            await asyncio.to_thread(sweep, wired.ledger, clock(), asking=asking, asks_max=1)
            if round_number % TRIM_ROUNDS == 1:
                await asyncio.to_thread(_tell, wired, log, tell, clock())
            if round_number % TRIM_ROUNDS == 0:
                await asyncio.to_thread(trim, wired.ledger, clock())
        except (LedgerUnavailable, LedgerError) as error:
            log.info("the sweeper could not do its work", error=str(error))
        except Exception:
            # The last line of defence: a sweeper that dies in silence would leave what is overdue as it is.
            log.exception("the sweeper failed for a reason of ours")


def _tell(wired: Wired, log: JsonLog, tell: Callable[[str], None], now: datetime) -> None:
    """What the alerts function does each minute of a deployment."""
    alert(wired.ledger, wired.config, partial(_alerted, log, tell), now, log=log)


def _warn(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - there is no inbox on this machine


def _alerted(log: JsonLog, tell: Callable[[str], None], message: Message) -> None:
    tell(message.subject)
    log.info("alert text", text=message.email)


def _counts(report: AlertReport) -> dict[str, int]:
    return {"published": report.published, "failed": report.failed}


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what a person, or a script, started this for


def _stop_signal() -> asyncio.Event:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    return stopped
