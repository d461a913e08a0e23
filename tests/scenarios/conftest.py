"""The figures of the scenarios, as a table at the end of the run."""

from collections.abc import Callable
from dataclasses import astuple, dataclass

import pytest
from _pytest.terminal import TerminalReporter

from spendgate.core.money import usd_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One line of the table."""

    scenario: str
    admitted: int
    refused: int
    billed_of_limit: str
    ledger_of_billed: str
    held_usd: str


_HEADINGS = ("scenario", "admitted", "refused", "billed/limit", "ledger/billed", "held")
_LINES = pytest.StashKey[list[Figures]]()

Tell = Callable[..., None]


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Return a function that adds a scenario's figures to the table; amounts are picodollars."""
    lines = request.config.stash.setdefault(_LINES, [])

    def tell(
        scenario: str,
        *,
        admitted: int,
        refused: int = 0,
        billed: int,
        limit: int | None = None,
        ledger: int,
        held: int = 0,
    ) -> None:
        lines.append(
            Figures(
                scenario=scenario,
                admitted=admitted,
                refused=refused,
                billed_of_limit=_ratio(billed, limit),
                ledger_of_billed=_ratio(ledger, billed),
                held_usd=usd_text(held),
            )
        )

    return tell


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(_LINES, [])
    if not lines:
        return
    rows = [_HEADINGS, *(tuple(str(cell) for cell in astuple(line)) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    terminalreporter.section("scenarios")
    for row in rows:
        terminalreporter.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _ratio(amount: int, whole: int | None) -> str:
    """Return a ratio to four places, rounded up: what is above 1 never looks like 1."""
    if not whole:
        return "-"
    parts = -(-amount * 10_000 // whole)
    return f"{parts // 10_000}.{parts % 10_000:04}"
