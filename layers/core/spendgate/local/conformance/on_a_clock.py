"""``spendgate local`` on a clock that a file moves on by so many seconds: what cases of windows need.

``python -m spendgate.local.conformance.on_a_clock STATE CONFIG CLOCK``
"""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from spendgate.local.server import run_local
from spendgate.wiring import utc_now


def moved_by(file: Path) -> Callable[[], datetime]:
    """Return a clock that is ahead of the machine's by what the file says."""
    return lambda: utc_now() + timedelta(seconds=int(file.read_text()))


def main() -> int:
    """Run until SIGTERM; return the exit code."""
    state, config, clock = (Path(argument) for argument in sys.argv[1:])
    return run_local(config, 0, state, ephemeral=False, as_json=True, clock=moved_by(clock))


if __name__ == "__main__":
    sys.exit(main())
