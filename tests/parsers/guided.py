"""One target under atheris, in a process of its own: libFuzzer ends the process when it is done, or when it has found something.

``python -m tests.parsers.guided TARGET [libFuzzer's own arguments]``; ``__main__.py`` starts these.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import atheris

if TYPE_CHECKING:
    from tests.parsers.targets import TARGETS
else:
    # What is loaded here tells the fuzzer which of its branches were taken.
    with atheris.instrument_imports(include=["spendgate", "botocore.eventstream"]):
        from tests.parsers.targets import TARGETS


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    _, target, *arguments = sys.argv
    atheris.Setup([sys.argv[0], *arguments], TARGETS[target].check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
