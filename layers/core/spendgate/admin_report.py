"""What was used, by whom and at what cost: usage records added up, part by part, so that no answer is too long or too late."""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from spendgate.admin_budget import named_budget
from spendgate.admin_input import invalid
from spendgate.core.budget import owner
from spendgate.core.money import usd_text
from spendgate.core.report import BY, By, UsageRecord, grouped, in_order, sums_view, total
from spendgate.store import items
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.usage import STAGES, Place, UsageReader, usage_since

# Three years and a day.
DAYS_MAX: Final = 1097
# Sort keys have at most 1024 characters, and budgets fewer.
CURSOR_LENGTH_MAX: Final = 1024
_BY_DEFAULT: Final = "budget"
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Usage over one ledger. ``first`` and ``last`` are UTC days, those of the reservations; both are in it."""

    ledger: Ledger
    config: Config
    clock: Callable[[], datetime]

    def part(
        self,
        *,
        first: str | None = None,
        last: str | None = None,
        by: str | None = None,
        budget: str | None = None,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """Return the rows of one part, and the cursor of the next: rows of one name in several parts add up.

        A run counts on the budget that it belongs to, unless it is asked for itself.
        """
        names = _by(by or _BY_DEFAULT)
        start, end = self._days(first, last)
        if budget is not None:
            named_budget(self.ledger, budget)
        reader = UsageReader(reader=self.ledger, budget=budget, first=start, last=end)
        part = reader.part(None if cursor is None else _place(cursor, reader))
        groups = grouped((_named(record, budget) for record in part.records), names)
        return {
            "from": f"{start:%Y-%m-%d}",
            "to": f"{end:%Y-%m-%d}",
            "budget": budget,
            "by": list(names),
            "rows": [{**dict(zip(names, group, strict=True)), **sums_view(sums)} for group, sums in in_order(groups)],
            "total": sums_view(total(groups)),
            "held": self._held(reader.roots()) if cursor is None else None,
            "runs_complete_from": self._complete_from(start, budget),
            "next": None if part.next is None else _cursor(part.next),
        }

    def _days(self, first: str | None, last: str | None) -> tuple[date, date]:
        end = self.clock().astimezone(UTC).date() if last is None else _day(last, "to")
        start = end.replace(day=1) if first is None else _day(first, "from")
        if start > end:
            raise invalid("from", f"a day not after {end:%Y-%m-%d}, the last one")
        if (end - start).days >= DAYS_MAX:
            raise invalid("from", f"at most {DAYS_MAX} days before the last one: ask for fewer at a time")
        return start, end

    def _held(self, budgets: Sequence[str]) -> dict[str, str]:
        """Return what is held now for calls that have not ended, which no usage record knows yet."""
        states = [
            items.decode_budget(item) for item in self.ledger.items_of([items.budget_key(one) for one in budgets])
        ]
        reserved, unknown = sum(one.reserved for one in states), sum(one.unknown for one in states)
        return {"reserved": usd_text(reserved), "unknown": usd_text(unknown)}

    def _complete_from(self, start: date, budget: str | None) -> str | None:
        """Return the first day from which on no run is missing, where the report begins before it."""
        since = usage_since(self.config)
        if since is None or (budget is not None and owner(budget) != budget):
            return None
        day = since.date() if since.time() == time() else since.date() + timedelta(days=1)
        return f"{day:%Y-%m-%d}" if start < day else None


def _named(record: UsageRecord, budget: str | None) -> UsageRecord:
    if budget is not None and owner(budget) != budget:
        return record
    return UsageRecord(
        day=record.day,
        budget=owner(record.budget),
        provider=record.provider,
        model=record.model,
        sums=record.sums,
    )


def _by(text: str) -> tuple[By, ...]:
    wanted = text.split(",")
    found = tuple(name for each in wanted for name in BY if name == each)
    if len(found) != len(wanted) or len(set(found)) != len(found):
        raise invalid("by", f"one or more of {', '.join(BY)}, each once, with commas between them")
    return found


def _day(text: str, field: str) -> date:
    try:
        if _DAY.fullmatch(text) is not None:
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise invalid(field, "a day like 2026-11-30, in UTC")


def _cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(f"{place.budget}\n{place.stage}\n{place.after}".encode()).decode()


def _place(cursor: str, reader: UsageReader) -> Place:
    """Return where a cursor leads; what was made up, or is of another question, leads nowhere."""
    try:
        budget, named, after = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii").split("\n")
    except ValueError:
        budget, named, after = "", "", ""
    stage = next((one for one in STAGES if one == named), None)
    place = None if stage is None else Place(budget=budget, stage=stage, after=after)
    if place is None or len(cursor) > CURSOR_LENGTH_MAX or not reader.admits(place):
        raise invalid("cursor", "the one of the answer before, with the same days and budget")
    return place
