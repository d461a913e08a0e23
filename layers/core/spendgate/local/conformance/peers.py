"""What the drivers of three other gateways have in common, each installed from the package registry into an environment of its own.

``--peers FOLDER`` says where: ``FOLDER/hardcap/bin/hardcap`` and so on. Each is set up as its own documentation says,
in the strictest way that it has; what its settings cannot express is said by ``Cannot``.
"""

import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Final

from spendgate.core.money import Picodollars, usd, usd_text
from spendgate.local.conformance.child import Child, accepts
from spendgate.local.conformance.driver import Caller, Cannot, Limited, Setup

MICRODOLLAR: Final = Picodollars(1_000_000)
# One of their commands may take long to start on a busy machine.
PATIENCE_SECONDS: Final = 300
PROVIDER_KEY: Final = "conformance-provider-key"


class Peer:
    """What the three have in common: an environment with their program, and a folder for a case."""

    name: str
    starts: str

    def __init__(self, peers: Path) -> None:
        self._peers = peers

    def version(self) -> str:
        """Return the installed version; Cannot where it is not installed."""
        python = self._peers / self.name / "bin" / "python"
        if not python.exists():
            raise Cannot(f"it is not installed: {self._peers.name}/{self.name} has no bin/python")
        program = f"import importlib.metadata as m; print(m.version({self.name!r}))"
        ran = subprocess.run(  # noqa: S603 - an environment that the operator named
            [python, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
        if ran.returncode:
            raise Cannot(f"its environment does not have the package: {ran.stderr.strip()[-200:]}")
        return ran.stdout.strip()

    def command(self) -> str:
        """Return how it is started."""
        return self.starts

    def close(self) -> None:
        """Each case has its own process; nothing is left."""

    def _program(self) -> str:
        return str(self._peers / self.name / "bin" / self.name)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix=f"conformance-{self.name}-") as folder:
            yield Path(folder)


class PeerSession(Limited):
    """A peer's process, its port, and how it is started again."""

    def __init__(self, child: Child, port: int, callers: tuple[Caller, ...], asked: Mapping[str, str]) -> None:
        self.child = child
        self.url = f"http://127.0.0.1:{port}"
        self.callers = callers
        self.asked = asked
        self._port = port

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.child.pid,)

    def ready(self) -> bool:
        """Tell whether it listens."""
        return accepts(self._port)

    def restart(self, *, kill: bool) -> None:
        self.child.end(signal.SIGKILL if kill else signal.SIGTERM)
        self.child.start(self.ready)


def callers_by_header(setup: Setup, header: str) -> tuple[Caller, ...]:
    if not setup.shares:
        return (Caller(key="conformance-caller"),)
    return tuple(
        Caller(key="conformance-caller", headers={header: f"share-{number}"}) for number in range(len(setup.shares))
    )


def a_million(rate: Picodollars) -> float:
    """Return a rate as these gateways' files want it."""
    return float(usd_text(Picodollars(rate * 1_000_000)))


def picodollars(text: str) -> Picodollars:
    """Read an amount of another's books; what is finer than a picodollar is their rounding."""
    try:
        return usd(format(Decimal(text).quantize(Decimal("1e-12")), "f"))
    except (ValueError, ArithmeticError):
        raise Cannot(f"its books have an amount that is none: {text[:40]}") from None
