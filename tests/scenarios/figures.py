"""The table of the scenarios' figures."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

PROPERTY: Final = "scenario"
HEADINGS: Final = ("scenario", "admitted", "refused", "billed/limit", "ledger/billed", "held")


def table(reports: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of the table, none where no scenario ran."""
    told = [cells for report in reports for name, cells in getattr(report, "user_properties", ()) if name == PROPERTY]
    if not told:
        return
    rows = [HEADINGS, *told]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def ratio(amount: int, whole: int | None) -> str:
    """Return a ratio to four places, rounded up: what is above 1 never looks like 1."""
    if not whole:
        return "-"
    parts = -(-amount * 10_000 // whole)
    return f"{parts // 10_000}.{parts % 10_000:04}"
