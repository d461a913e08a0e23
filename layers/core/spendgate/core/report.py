"""What was used and what it cost, added up by day, budget, provider or model.

A report is a sum of usage records, so one that was read in parts is the sum of its parts, exactly.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from spendgate.core.money import usd, usd_text
from spendgate.core.usage import BUCKETS

By = Literal["day", "budget", "provider", "model"]
BY: Final[tuple[By, ...]] = get_args(By)
OUTCOMES: Final = ("settled", "released", "charged")
COST: Final = "cost"
_COUNTS: Final = ("calls", *(f"calls_{state}" for state in OUTCOMES), "tokens")
_FEE: Final = "fee:"

Group = tuple[str | None, ...]
# Calls by outcome, tokens by bucket, fees by kind and picodollars, by the names that usage records have for them.
Sums = Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """What one budget, or run, used on one UTC day of one provider's model; None where nobody knows who served."""

    day: str
    budget: str
    provider: str | None
    model: str | None
    sums: Mapping[str, int]


def grouped(records: Iterable[UsageRecord], by: Iterable[By]) -> dict[Group, Sums]:
    """Return the records' sums by what they have in common."""
    names = tuple(by)
    groups: dict[Group, Sums] = {}
    for record in records:
        group = tuple(getattr(record, name) for name in names)
        groups.setdefault(group, Sums()).update(record.sums)
    return groups


def in_order(groups: Mapping[Group, Sums]) -> list[tuple[Group, Sums]]:
    """Return groups by their names; what has no name comes first."""
    return sorted(groups.items(), key=lambda one: tuple(name or "" for name in one[0]))


def total(groups: Mapping[Group, Sums]) -> Sums:
    """Return the sum of all groups."""
    found = Sums()
    for sums in groups.values():
        found.update(sums)
    return found


def sums_view(sums: Mapping[str, int]) -> dict[str, Any]:
    """Return sums as they stand on the wire: what of tokens and fees is nothing is left out, and money is exact."""
    usage: dict[str, Any] = {name: sums[name] for name in BUCKETS if sums.get(name)}
    fees = {name.removeprefix(_FEE): units for name, units in sorted(sums.items()) if name.startswith(_FEE) and units}
    if fees:
        usage["fees"] = fees
    return {**{name: sums.get(name, 0) for name in _COUNTS}, "usage": usage, COST: usd_text(sums.get(COST, 0))}


def sums_of(view: Mapping[str, Any]) -> Sums:
    """Return the sums that ``sums_view`` wrote."""
    usage = view["usage"]
    fees = {f"{_FEE}{kind}": units for kind, units in usage.get("fees", {}).items()}
    counts = {name: view[name] for name in _COUNTS}
    return Sums({**counts, **{name: usage[name] for name in BUCKETS if name in usage}, **fees, COST: usd(view[COST])})
