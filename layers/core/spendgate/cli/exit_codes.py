"""What a command's exit code says; docs/cli.md repeats this table."""

from typing import Final

OK: Final = 0
NO: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
REFUSED: Final = 4
CONFIGURATION_INVALID: Final = 5
INTERRUPTED: Final = 130

MEANINGS: Final = {
    OK: "done",
    NO: "the answer is no: `audit` found a difference, `plan --check` found changes, `prices check` found something, "
    "`reconcile ask` proved nothing, `apply` was declined",
    USAGE: "the command line is wrong",
    UNREACHABLE: "no gateway was found, or it does not answer",
    REFUSED: "the gateway refused: a wrong token, something that is not there, a conflict, bad input",
    CONFIGURATION_INVALID: "the configuration file is wrong; each problem is told with its line",
    INTERRUPTED: "interrupted",
}
