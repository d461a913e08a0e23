"""A gateway's process: started, waited for until it answers, and ended by its own id."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spendgate.local.conformance.driver import Cannot

# A busy machine takes its time; nothing here is slow for another reason.
PATIENCE_SECONDS: Final = 180.0
_POLL_SECONDS: Final = 0.05
# All that a child gets of this process's environment: no provider's key, no other gateway's address.
_PASSED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Child:
    """One process, with its words in a file."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._folder = folder
        self._environment = {name: os.environ[name] for name in _PASSED if name in os.environ} | dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / f"{Path(command[0]).name}.log"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        if self._process is None:
            raise Cannot("its process does not run")
        return self._process.pid

    def start(self, ready: Callable[[], bool]) -> None:
        """Start it and wait until it is ready; Cannot, with its last words, where it ends before."""
        try:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(  # noqa: S603 - a gateway that the operator named
                    self._command,
                    cwd=self._folder,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
        except OSError as error:
            raise Cannot(f"{self._command[0]} cannot be started: {error.strerror}") from error
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not ready():
            if self._process.poll() is not None:
                raise Cannot(f"it ended with {self._process.returncode} before it was ready: {self.last_words()}")
            if time.monotonic() > deadline:
                self.end(signal.SIGKILL)
                raise Cannot(f"it was not ready within {PATIENCE_SECONDS:g} seconds: {self.last_words()}")
            time.sleep(_POLL_SECONDS)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and wait for that; what does not end in time is killed."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(timeout=PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def last_words(self) -> str:
        """Return the end of what it printed."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return " / ".join(lines[-3:])[-300:]
        return ""


@contextmanager
def running(child: Child, ready: Callable[[], bool]) -> Iterator[Child]:
    """Run a process until the block ends."""
    try:
        child.start(ready)
        yield child
    finally:
        child.end()


def accepts(port: int) -> bool:
    """Tell whether something listens on a port of this machine."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
