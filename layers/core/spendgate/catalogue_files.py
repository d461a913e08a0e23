"""The shipped catalogue's files: one a provider, ``<name>.yaml``, rows in the syntax of ``prices:``.

``source`` and ``checked`` at the head of a file hold for every row without its own. A file is taken whole or not at all.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

from spendgate.catalogue import Catalogue
from spendgate.configuration_reader import parse_prices
from spendgate.configuration_yaml import Findings, read
from spendgate.core.price import PriceRow
from spendgate.errors import ConfigurationInvalid, Problem

_HEAD: Final = ("provider", "source", "checked", "prices")
_DEFAULTS: Final = ("source", "checked")


def catalogue_in(folder: Path) -> Catalogue:
    """Return the catalogue in a folder; each file is read when it is first asked for. ConfigurationInvalid then."""
    files = {file.stem: file for file in folder.glob("*.yaml")}

    @cache
    def rows(name: str) -> tuple[PriceRow, ...] | None:
        return rows_of(files[name]) if name in files else None

    return rows


def all_rows(folder: Path) -> tuple[PriceRow, ...]:
    """Return every shipped row, by file. ConfigurationInvalid with the problems of all files."""
    problems: list[Problem] = []
    rows: list[PriceRow] = []
    for file in sorted(folder.glob("*.yaml")):
        try:
            rows += rows_of(file)
        except ConfigurationInvalid as error:
            problems += error.problems
    if problems:
        raise ConfigurationInvalid(problems)
    return tuple(rows)


def rows_of(file: Path) -> tuple[PriceRow, ...]:
    """Return the rows of one file. ConfigurationInvalid where anything is wrong in it, or it has no row."""
    try:
        return parse_file(file.name, file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigurationInvalid([Problem(file.name, "is not UTF-8 text")]) from error


def parse_file(name: str, text: str) -> tuple[PriceRow, ...]:
    """Return the rows of a file's text; every problem is told with the file and its line."""
    try:
        return _parsed(text)
    except ConfigurationInvalid as error:
        problems = [Problem(f"{name}: {one.place}".removesuffix(": "), one.message, one.line) for one in error.problems]
        raise ConfigurationInvalid(problems) from error


def _parsed(text: str) -> tuple[PriceRow, ...]:
    findings = Findings()
    document = read(text, findings)
    if not isinstance(document, dict):
        raise ConfigurationInvalid([Problem("", "must be a mapping with provider and prices")])
    for key in document:
        if key not in _HEAD:
            findings.add((key,), "is not known here")
    provider = document.get("provider")
    if not isinstance(provider, str):
        findings.add(("provider",), "must be the provider's name")
    listed = document.get("prices")
    if not isinstance(listed, list) or not listed:
        findings.add(("prices",), "must be a list of at least one price row")
        listed = []
    defaults = {name: document[name] for name in _DEFAULTS if name in document}
    rows = parse_prices([_whole(row, provider, defaults) for row in listed], [str(provider)], findings)
    findings.raise_any()
    return rows


def _whole(row: Any, provider: Any, defaults: dict[str, Any]) -> Any:
    if not isinstance(row, dict) or "provider" in row:
        # The row reader says what is wrong with it.
        return row
    return {**defaults, "provider": provider, **row}
