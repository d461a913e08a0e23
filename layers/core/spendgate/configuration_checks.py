"""Checks of ``spendgate.yaml`` that take more than one field: names, kinds, price rows, budget paths and limits.

Each adds what is wrong to the findings, and says what to do about it.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from spendgate import configuration_values as values
from spendgate.configuration_model import BudgetEntry, LimitsEntry
from spendgate.configuration_yaml import Findings, Place
from spendgate.core.budget import PATH_DEPTH_MAX, PATH_LENGTH_MAX, parse_path
from spendgate.core.kind import kind_of
from spendgate.core.price import PriceRow
from spendgate.core.route import Provider

# With its counters, a budget's item must stay under 1 KB: two write units a transaction.
LIMITS_MAX: Final = 12

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


def check_name(findings: Findings, name: str, place: Place) -> None:
    if _NAME.fullmatch(name) is None or name.startswith(("sg-", "sk-")):
        findings.add(place, "a name has 1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or digit")


def check_kind(findings: Findings, provider: Provider) -> None:
    """A kind has a dialect of its own, and an API's version is for the kind that has it in its paths."""
    kind = kind_of(provider)
    if kind.dialect != provider.dialect:
        findings.add(
            ("providers", provider.name, "kind"),
            f"speaks the dialect {kind.dialect}, and this provider {provider.dialect}: change the kind or the dialect",
        )
    elif provider.api_version is not None and not kind.deployments:
        findings.add(
            ("providers", provider.name, "api_version"),
            "goes with kind: azure only: leave it out, or say kind: azure",
        )


def check_rows(findings: Findings, rows: Mapping[int, PriceRow]) -> None:
    """A name at a provider leads to the rows of one model, and an instant to one of these rows."""
    seen: dict[tuple[str, str, datetime], int] = {}
    owners: dict[tuple[str, str], str] = {(row.provider, row.model): row.model for row in rows.values()}
    for index, row in rows.items():
        first = seen.setdefault((row.provider, row.model, row.valid_from), index)
        if first != index:
            findings.add(
                ("prices", index),
                f"has provider, model and instant of prices[{first}]: a new rate needs a `from` of its own",
            )
        for at, alias in enumerate(row.aliases):
            if owners.setdefault((row.provider, alias), row.model) != row.model or alias == row.model:
                findings.add(
                    ("prices", index, "aliases", at),
                    "is already the name of a model: a name leads to the prices of one",
                )


def check_path(findings: Findings, path: str) -> None:
    try:
        parse_path(path)
    except ValueError:
        # The core's own sentence repeats the name, which here may be anything that was pasted.
        findings.add(
            ("budgets", path),
            f"a budget path is 1 to {PATH_DEPTH_MAX} names with '/' between, each 1 to 64 letters, digits, '.', '_' "
            f"and '-', the first a letter or digit, and {PATH_LENGTH_MAX} characters in all (runs are not declared)",
        )


def check_limits(findings: Findings, entry: BudgetEntry, place: Place) -> None:
    _check_number(findings, entry.limits, (*place, "limits"))
    if entry.runs is not None:
        _check_number(findings, entry.runs.limits, (*place, "runs", "limits"))
    limited = bool(values.limits(entry.limits))
    if limited and entry.unbudgeted:
        findings.add((*place, "unbudgeted"), "contradicts limits: leave one of them out")
    if not limited and not entry.unbudgeted:
        findings.add(place, "has no limits: give it some, or say unbudgeted: true")


def check_warn_at(findings: Findings, thresholds: list[int], place: Place) -> None:
    if len(set(thresholds)) != len(thresholds):
        findings.add(place, "has a number twice: leave one of them out")


def _check_number(findings: Findings, entry: LimitsEntry, place: Place) -> None:
    number = len(values.limits(entry))
    if number > LIMITS_MAX:
        findings.add(
            place, f"has {number} limits, more than {LIMITS_MAX}: put some of them on a budget above or below it"
        )
    for measure in entry.model_fields_set:
        if not getattr(entry, measure).model_fields_set:
            findings.add((*place, measure), "has no window: give it one, or leave the line out")
