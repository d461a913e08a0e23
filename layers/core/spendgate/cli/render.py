"""Amounts, times, bars and tables for people. Money is never rounded: what is printed is what is stored."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

SETTLED, RESERVED, UNKNOWN, FREE = "█", "▒", "?", "·"
STYLES: Final = {SETTLED: "green", RESERVED: "yellow", UNKNOWN: "bold red", FREE: "dim"}
LEGEND: Final = {
    SETTLED: "settled",
    RESERVED: "reserved, in flight",
    UNKNOWN: "reserved, outcome unknown",
    FREE: "free",
}
BAR_WIDTH: Final = 20


def clean(value: object) -> str:
    """Return a text without anything that a terminal would obey; providers choose some of what is printed."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(value))


def amount(measure: str, text: str) -> str:
    """Return an amount with its unit: ``$0.0002825``, ``12 requests``."""
    return f"${text}" if measure == "usd" else f"{text} {measure.replace('_', ' ')}"


def limits_of(nested: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return limits in short: ``$80 a day``, ``120 requests a minute``."""
    spans = {"hour": "an hour", "life": "in all"}
    return [
        f"{amount(measure, maximum)} {spans.get(window, f'a {window}')}"
        for measure, windows in nested.items()
        for window, maximum in windows.items()
    ]


def bar(parts: Sequence[tuple[str, str]], maximum: str, *, width: int = BAR_WIDTH) -> Text:
    """Return a bar of (mark, amount) parts of a maximum. What is not nothing gets a cell, and what is full is full."""
    amounts = [(mark, Decimal(text)) for mark, text in parts]
    used = sum((value for _, value in amounts), Decimal(0))
    amounts.append((FREE, max(Decimal(maximum) - used, Decimal(0))))
    scale = sum(value for _, value in amounts)
    if not scale:
        # A limit of nothing: there is no room.
        return Text("-" * width, style="dim")
    cells = [max(int(value * width / scale), 1) if value else 0 for _, value in amounts]
    # What rounding left over, or took too much, the largest part bears.
    cells[cells.index(max(cells))] += width - sum(cells)
    text = Text()
    for (mark, _), count in zip(amounts, cells, strict=True):
        text.append(mark * count, style=STYLES[mark])
    return text


def legend(*, width: int) -> list[Text]:
    """Return what the marks of a bar mean."""
    parts = [Text.assemble((mark, STYLES[mark]), f" {meaning}") for mark, meaning in LEGEND.items()]
    return flow(parts[0], parts[1:], width=width, hang=Text())


def flow(first: Text, parts: Iterable[str | Text], *, width: int, hang: Text) -> list[Text]:
    """Return lines of parts, two spaces apart and none broken where that can be; later lines begin with ``hang``."""
    lines = [first.copy()]
    for part in parts:
        piece = part if isinstance(part, Text) else Text(part)
        if lines[-1].cell_len + 2 + piece.cell_len > width and lines[-1].cell_len > hang.cell_len:
            lines.append(hang.copy())
        if lines[-1]:
            lines[-1].append("  ")
        lines[-1].append_text(piece)
    return lines


def plain_table(*columns: str, right: Sequence[str] = (), whole: Sequence[str] = ()) -> Table:
    """Return a table without a frame, which is narrow and can be copied; the columns in ``whole`` are never folded."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        justify: JustifyMethod = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in whole)
    return table


def pairs_table(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Return names and values, one a line; what is None is left out."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != "":
            table.add_row(name, clean(value))
    return table


def when(text: str | None) -> str:
    """Return an instant to the second: ``2026-11-30 02:11:00Z``."""
    return "" if text is None else f"{_parse(text):%Y-%m-%d %H:%M:%SZ}"


def day(text: str | None) -> str:
    """Return an instant as its day, with the time only where it is not midnight."""
    return "" if text is None else when(text).removesuffix(" 00:00:00Z")


def until(text: str, now: str) -> str:
    """Return how long it is until an instant: ``5h 12m``."""
    return span(_parse(text) - _parse(now))


def since(text: str, now: str) -> str:
    """Return how long ago an instant was."""
    return span(_parse(now) - _parse(text))


def span(length: timedelta) -> str:
    """Return a length of time in its two largest units."""
    seconds = max(int(length.total_seconds()), 0)
    for (name, size), (below, small) in pairwise(_UNITS):
        if seconds >= size:
            rest = seconds % size // small
            return f"{seconds // size}{name} {rest}{below}" if rest else f"{seconds // size}{name}"
    return f"{seconds}s"


_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def _parse(text: str) -> datetime:
    return datetime.fromisoformat(text)
