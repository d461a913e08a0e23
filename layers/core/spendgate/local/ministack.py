"""The local DynamoDB: MiniStack as a process of its own, on loopback only.

MiniStack keeps its tables in memory and writes them down at a clean stop alone. So a MiniStack that
outlived its parent holds the only copy of the ledger, and the next start adopts it instead of making another.

    STATE/owner.lock       held by the one process that may start or stop the store
    STATE/ministack.lock   held by MiniStack itself, inherited as an open file; the kernel frees it with the
                           process, so "held" means "alive" and a reused process id is never mistaken for it
    STATE/ministack.json   which process and port; written by the process that holds the lock
    STATE/ministack.log    its output
    STATE/store/           its tables, after a clean stop
"""

import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from spendgate.errors import LocalStoreFailed
from spendgate.local.ministack_process import environment_of, spawn

START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 30.0
_ATTEMPTS_MAX: Final = 3
_POLL_SECONDS: Final = 0.02
_LOG_LINES_SHOWN: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniStack:
    """A running store; the process that holds this value owns it until ``stop`` or ``kill``."""

    url: str
    pid: int
    port: int
    state_dir: Path
    adopted: bool
    _owner: BinaryIO = field(repr=False)
    _process: subprocess.Popen[bytes] | None = field(repr=False)

    def alive(self) -> bool:
        """Tell whether the store's process still runs."""
        return _lock_held(self.state_dir / "ministack.lock")

    def stop(self) -> None:
        """End the store so that it writes its tables down; LocalStoreFailed where it had to be killed."""
        self._signal(signal.SIGTERM)
        if not self._ended_within(STOP_SECONDS_MAX):
            self.kill()
            raise LocalStoreFailed(
                f"the local store did not stop within {STOP_SECONDS_MAX:g} seconds and was killed; "
                "what it held since its last clean stop is lost" + _log_tail(self.state_dir)
            )
        self._forget()

    def kill(self) -> None:
        """End the store at once; its tables are lost back to its last clean stop."""
        self._signal(signal.SIGKILL)
        self._ended_within(STOP_SECONDS_MAX)
        self._forget()

    def _signal(self, number: signal.Signals) -> None:
        # Only while the lock is held is the process id certainly the store's.
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _ended_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        if self._process is not None:
            self._process.wait()
        return True

    def _forget(self) -> None:
        (self.state_dir / "ministack.json").unlink(missing_ok=True)
        self._owner.close()


def start(
    state_dir: Path,
    *,
    persist: bool,
    port: int | None = None,
    environ: Mapping[str, str],
    services: tuple[str, ...] = ("dynamodb",),
) -> MiniStack:
    """Start the store on a state folder, or adopt the one that runs there; LocalStoreFailed says what is wrong."""
    state_dir = state_dir.resolve()
    (state_dir / "store").mkdir(parents=True, exist_ok=True)
    owner = _own(state_dir)
    try:
        if _lock_held(state_dir / "ministack.lock"):
            return _adopted(state_dir, owner)
        _check_tables_readable(state_dir)
        return _begun(state_dir, owner, persist=persist, port=port, environ=environ, services=services)
    except BaseException:
        owner.close()
        raise


def _own(state_dir: Path) -> BinaryIO:
    owner = (state_dir / "owner.lock").open("ab")
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner.close()
        raise LocalStoreFailed(
            f"another Spendgate is running on the state folder {state_dir}; stop it, or choose another folder"
        ) from None
    return owner


def _lock_held(path: Path) -> bool:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _check_tables_readable(state_dir: Path) -> None:
    # MiniStack would begin with no tables at all and write that over the file at its next stop.
    for path in sorted((state_dir / "store").glob("*.json")):
        try:
            json.loads(path.read_bytes())
        except ValueError as cause:
            raise LocalStoreFailed(
                f"{path} is damaged; restore it, or move the state folder away to begin anew"
            ) from cause


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _begun(
    state_dir: Path,
    owner: BinaryIO,
    *,
    persist: bool,
    port: int | None,
    environ: Mapping[str, str],
    services: tuple[str, ...],
) -> MiniStack:
    # Between finding a port and listening on it somebody else may take it: then another one.
    for _ in range(1 if port is not None else _ATTEMPTS_MAX):
        chosen = port if port is not None else _free_port()
        environment = environment_of(state_dir, persist=persist, port=chosen, environ=environ, services=services)
        running = _started(state_dir, owner, port=chosen, environment=environment)
        if running is not None:
            return running
    raise LocalStoreFailed("the local store ended while it was starting" + _log_tail(state_dir))


def _started(state_dir: Path, owner: BinaryIO, *, port: int, environment: Mapping[str, str]) -> MiniStack | None:
    """Start the process and wait until it answers; None where it ended before."""
    _check_port_free(port)
    (state_dir / "ministack.json").unlink(missing_ok=True)
    process = spawn(state_dir, port, environment)
    running = MiniStack(
        url=f"http://127.0.0.1:{port}",
        pid=process.pid,
        port=port,
        state_dir=state_dir,
        adopted=False,
        _owner=owner,
        _process=process,
    )
    deadline = time.monotonic() + START_SECONDS_MAX
    try:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                return None
            if _answers(port):
                return running
            time.sleep(_POLL_SECONDS)
    except BaseException:
        _end(process)
        raise
    _end(process)
    raise LocalStoreFailed(
        f"the local store did not answer within {START_SECONDS_MAX:g} seconds" + _log_tail(state_dir)
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _check_port_free(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as cause:
            raise LocalStoreFailed(f"port {port} for the local store is not free: {cause.strerror}") from cause


def _adopted(state_dir: Path, owner: BinaryIO) -> MiniStack:
    """Take over the store that runs on this folder, waiting for it where it is still starting or stopping."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        record = _record(state_dir)
        if record is not None and _answers(record[1]):
            pid, port = record
            return MiniStack(
                url=f"http://127.0.0.1:{port}",
                pid=pid,
                port=port,
                state_dir=state_dir,
                adopted=True,
                _owner=owner,
                _process=None,
            )
        if not _lock_held(state_dir / "ministack.lock"):
            raise LocalStoreFailed("the local store of an earlier run has just ended; start again")
        time.sleep(_POLL_SECONDS)
    raise LocalStoreFailed(
        f"a local store of an earlier run holds {state_dir} and does not answer; end it" + _log_tail(state_dir)
    )


def _record(state_dir: Path) -> tuple[int, int] | None:
    try:
        record = json.loads((state_dir / "ministack.json").read_bytes())
        return int(record["pid"]), int(record["port"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/_ministack/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _log_tail(state_dir: Path) -> str:
    try:
        lines = (state_dir / "ministack.log").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "".join(f"\n  {line}" for line in ["its last words:", *lines[-_LOG_LINES_SHOWN:]]) if lines else ""
