"""The catalogue's files and the report, as text that is the same on every machine."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tools.catalogue.offer import BUCKETS, CHECKED, SOURCES, Report
from tools.catalogue.rows import Row

_HEADER: Final = """\
# The shipped prices of {provider}. Written by `make catalogue` from {sources}
# and tools/catalogue/overlay/{provider}.yaml: change those, not this file. {count} rows, {models} models.
# USD per million tokens, in the syntax of `prices:` in spendgate.yaml; fees are USD a unit. `source` and `checked` hold for
# every row without its own. A price that the sources do not agree on is the dearer (docs/catalogue-report.md).
"""
_ORDER: Final = (
    "model", "from", *BUCKETS, "tiers", "service", "factors", "fees", "context_tokens", "output_tokens_max",
    "aliases", "source", "checked",
)  # fmt: skip
# Text that YAML reads back as the same text without quotes.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._/@+-]*(?::[A-Za-z0-9._/@+-]+)*|\d{4}-\d{2}-\d{2}", re.ASCII)
_WORDS: Final = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def catalogue_text(provider: str, rows: list[Row], source: str) -> str:
    """Return a provider's file."""
    head = _HEADER.format(
        provider=provider, sources=SOURCES, count=len(rows), models=len({row["model"] for row in rows})
    )
    lines = [f"provider: {provider}", f"source: {_scalar(f'{source} by {SOURCES}')}", f"checked: {CHECKED}", "prices:"]
    for row in rows:
        lines += _row_lines(row)
    return head + "\n".join(lines) + "\n"


def _row_lines(row: Row) -> Iterator[str]:
    mark = "-"
    for name in _ORDER:
        if name not in row:
            continue
        value = row[name]
        if name == "tiers":
            yield "    tiers:"
            yield from (f"      - {_flow(tier)}" for tier in value)
        elif name == "service":
            yield "    service:"
            yield from (f"      {tier}: {_flow(card)}" for tier, card in value.items())
        else:
            yield f"  {mark} {name}: {_flow(value)}"
        mark = " "


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(name)}: {_flow(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=True)


_ABOUT: Final = """\
# Catalogue report

Written by `make catalogue`, with the shipped prices. Where the sources ({sources}; read {checked}) differ, the dearer
price, the larger context and the smaller output cap are taken. What cannot be priced by tokens alone, or only by a
pattern of names, is left out: a call to it is refused until a price row is added ([pricing.md](pricing.md#the-catalogue)).

| provider | rows | models | exact names | first checked | last checked |
|---|---|---|---|---|---|
"""


def report_text(catalogue: dict[str, list[Row]], report: Report) -> str:
    """Return docs/catalogue-report.md."""
    text = _ABOUT.format(sources=SOURCES, checked=CHECKED)
    for provider, rows in catalogue.items():
        names = {name for row in rows for name in (row["model"], *row.get("aliases", []))}
        checked = [row.get("checked", CHECKED) for row in rows]
        text += f"| {provider} | {len(rows)} | {len({row['model'] for row in rows})} | {len(names)} | {min(checked)} | {max(checked)} |\n"
    for heading in sorted(report.lines):
        lines = sorted(set(report.lines[heading]))
        text += f"\n## {heading}\n\n{len(lines)} in all.\n\n"
        text += "```text\n" + "\n".join(lines) + "\n```\n"
    return text
