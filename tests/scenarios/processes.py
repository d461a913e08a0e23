"""The real thing in processes of its own: a gateway, a provider, callers; each ends with its block, by its own id."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from spendgate.core.money import usd
from tests import demo_process
from tests.scenarios.caller import Outcome, Plan

ROOT: Final = Path(__file__).parents[2]
# A busy machine takes its time; nothing here is slow for another reason.
PATIENCE_SECONDS: Final = 90.0
# For a provider that is frozen: when it wakes it breaks connections whose idle time is over, whatever came meanwhile.
FRESH_CONNECTIONS: Final = {"SPENDGATE_IDLE_SECONDS_MAX": "0"}
_POLL_SECONDS: Final = 0.05
# Any key of ours, and the demo provider's own words.
_SECRET: Final = re.compile(rb"sg-[A-Za-z0-9_-]{12,}|The demo provider says")


class Lines:
    """The lines of a process's output, read by a thread so that waiting for one is bounded."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process = process
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, seconds: float = PATIENCE_SECONDS) -> dict[str, Any] | None:
        """Return the next line's document, None at the end of the output; queue.Empty when it takes too long."""
        line = self._lines.get(timeout=seconds)
        document: dict[str, Any] | None = None if line is None else json.loads(line)
        return document

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)


def environment(**settings: str) -> dict[str, str]:
    """Return an environment in which only these settings of Spendgate are set."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPENDGATE_")}
    return inherited | {"PYTHONPATH": f"{ROOT / 'layers' / 'core'}{os.pathsep}{ROOT}"} | settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """What stands on a budget, in picodollars: settled + reserved since ever, and of that reserved, and unknown."""

    ledger: int
    held: int
    unknown: int = 0


@dataclass(kw_only=True)
class Gateway:
    """A running ``spendgate local`` and its admin API."""

    process: subprocess.Popen[str]
    url: str
    state: Path
    admin: httpx.Client = field(repr=False)

    def get(self, path: str, /, **query: str | int) -> dict[str, Any]:
        """Ask the admin API."""
        document: dict[str, Any] = self.admin.get(path, params=query).raise_for_status().json()
        return document

    def apply(self, text: str) -> None:
        """Apply a configuration, whole or not at all."""
        applied = self.admin.post("/apply", json={"file": text}).raise_for_status().json()
        assert applied["complete"], applied["failure"]

    def reservations(self, **query: str | int) -> list[dict[str, Any]]:
        """Return reservations, the newest first."""
        found: list[dict[str, Any]] = self.get("/reservations", limit=1000, **query)["reservations"]
        return found

    def money(self, path: str) -> Money:
        """Return the money of one budget."""
        return self.moneys(path)[0]

    def moneys(self, path: str) -> list[Money]:
        """Return the money of a budget and of all below it."""
        return [
            Money(ledger=usd(budget["committed"]["life"]), held=usd(budget["reserved"]), unknown=usd(budget["unknown"]))
            for budget in self.get("/budgets", path=path)["budgets"]
        ]

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command line against this gateway, as an operator does in the same folder."""
        return spendgate(*args, state=self.state)

    def audit(self) -> None:
        """Run ``spendgate audit``; AssertionError unless it is clean."""
        done = self.command("audit")
        assert done.returncode == 0, done.stdout + done.stderr

    def end(self, number: int = signal.SIGTERM, *, seconds: float = PATIENCE_SECONDS) -> int:
        """Send a signal and wait for the process to end; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=seconds)

    def store_pid(self) -> int:
        """Return the process id of the store."""
        record: dict[str, int] = json.loads((self.state / "ministack.json").read_bytes())
        return record["pid"]


def spendgate(*args: str, state: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "spendgate.cli.main", *args],
        env=environment(SPENDGATE_STATE=str(state), **settings),
        cwd=state.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


@contextmanager
def gateway(state: Path, text: str | None = None, **settings: str) -> Iterator[Gateway]:
    """Run ``spendgate local`` on a state folder until the block ends, and its store no longer than that."""
    process = begin(state, text, **settings)
    try:
        document = Lines(process).next()
        assert document is not None, f"ended with {process.wait()} before it was ready"
        headers = {"authorization": f"Bearer {document['admin_token']}"}
        with httpx.Client(base_url=document["admin_url"], headers=headers, trust_env=False, timeout=60) as admin:
            yield Gateway(process=process, url=document["url"], state=state, admin=admin)
    finally:
        _end(process)
        _end_store(state)
    _tells_no_secret(state)


def _tells_no_secret(state: Path) -> None:
    """AssertionError where what a gateway leaves behind, its log and its tables, has a key or a word of an answer in it."""
    for file in state.rglob("*"):
        # The admin token is there to be read by who owns the folder.
        if file.is_file() and file.name != "local.json":
            found = _SECRET.search(file.read_bytes())
            assert found is None, f"{file.name}: {found!r}"


def begin(state: Path, text: str | None = None, **settings: str) -> subprocess.Popen[str]:
    """Start ``spendgate local`` on a free port."""
    arguments = ["--json", "--port", "0", "--state", str(state)]
    if text is not None:
        file = state.parent / "spendgate.yaml"
        file.write_text(text, encoding="utf-8")
        arguments += ["--config", str(file)]
    return subprocess.Popen(
        [sys.executable, "-m", "spendgate.cli.main", "local", *arguments],
        env=environment(**settings),
        cwd=state.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _end_store(state: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        pid = json.loads((state / "ministack.json").read_bytes())["pid"]
        # The id is the store's only while it names this folder.
        if str(state) in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)


class Provider(demo_process.DemoProvider):
    """The demo provider in a process that can be frozen: what it is sent then waits in the kernel."""

    def __init__(self, url: str, client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
        super().__init__(url, client)
        self.process = process

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Answer nothing within the block."""
        with stopped(self.process.pid):
            yield

    def hits(self) -> int:
        """Return how many billable requests came."""
        count: int = self.book()["hits"]
        return count

    def billed(self) -> int:
        """Return what was billed, in picodollars."""
        amount: int = self.book()["billed_picodollars"]
        return amount


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a demo provider until the block ends."""
    with demo_process.start() as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
            yield Provider(url, client, process)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Freeze a process within the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Callers:
    """Processes that call at the same moment; their outcomes come in as they end."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = [(process, Lines(process)) for process in processes]
        self._calling = 0
        self._done = 0
        self.outcomes: list[Outcome] = []

    def begin(self, plan: Plan, *, processes: int | None = None) -> None:
        """Let every process (or so many of them) make the calls of a plan, all from the same moment on."""
        calling = self._processes[:processes]
        self._calling, self._done, self.outcomes = len(calling), 0, []
        for process, _ in calling:
            _write(process, json.dumps(asdict(plan)))
        for _, lines in calling:
            assert lines.next() == {"ready": True}
        for process, _ in calling:
            _write(process, "go")

    def wait_for(self, count: int) -> None:
        """Wait until so many calls have ended."""
        until(lambda: self._collect() or len(self.outcomes) >= count, f"{count} calls have ended")

    def finish(self) -> list[Outcome]:
        """Wait until all calls have ended and return how."""
        until(self._collect, "all callers are done")
        return self.outcomes

    def call(self, plan: Plan, *, processes: int = 1) -> list[Outcome]:
        """Make the calls of a plan in so many processes and return how they ended."""
        self.begin(plan, processes=processes)
        return self.finish()

    def _collect(self) -> bool:
        """Take what has come in; tell whether that is all."""
        for _, lines in self._processes[: self._calling]:
            with contextlib.suppress(queue.Empty):
                while (document := lines.next(0.001)) is not None:
                    if "done" in document:
                        self._done += 1
                    else:
                        self.outcomes.append(Outcome(**document))
        return self._done == self._calling


@contextmanager
def callers(count: int) -> Iterator[Callers]:
    """Start so many processes that call."""
    with contextlib.ExitStack() as stack:
        yield Callers([stack.enter_context(_caller()) for _ in range(count)])


@contextmanager
def _caller() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.scenarios.caller"],
        env=environment(),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()


def until(condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for something that happens by itself; AssertionError when it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} seconds: {what}"
        time.sleep(_POLL_SECONDS)


def _write(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
