"""What models cost: the stored rows beside the shipped ones, what has no price, and rows that an operator adds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any, Literal

from spendgate.admin_configuration_view import price_view
from spendgate.admin_view import instant_text
from spendgate.admin_warnings import unpriced
from spendgate.catalogue import FRESH_FOR, Catalogue, differs, is_stale, rows_for, rows_named
from spendgate.configuration_reader import parse_prices
from spendgate.configuration_yaml import Findings, read
from spendgate.core.event import Event
from spendgate.core.price import PriceRow, row_in_force
from spendgate.core.route import Route
from spendgate.errors import ConfigurationInvalid, NotFound, Problem, RequestConflict
from spendgate.store.config import Config

Origin = Literal["shipped", "changed", "own"]


@dataclass(frozen=True, slots=True)
class Prices:
    """The operators' use cases over price rows."""

    config: Config
    catalogue: Catalogue
    _: KW_ONLY
    clock: Callable[[], datetime]

    def list(self, provider: str | None = None, model: str | None = None) -> dict[str, Any]:
        """Return every row, of one provider or of one name of it, each beside what is shipped; NotFound."""
        now, stored, routes = self.clock(), self.config.all_prices(), self.config.routes()
        shipped = {row.id: row for row in self._shipped()}
        wanted = [row for row in stored if provider in (None, row.provider)]
        extra: list[dict[str, Any]] = []
        if provider is not None and model is not None:
            wanted = list(rows_named(wanted, provider, model))
            present = {row.id for row in wanted}
            missing = rows_named(shipped.values(), provider, model)
            extra = [_missing_view(row) for row in missing if row.id not in present]
        if provider is not None and not wanted and not extra:
            raise NotFound(f"there is no price of {provider}{f'/{model}' if model else ''}")
        reached = _reached(routes)
        in_force = {row.id for row in _in_force(stored, now)}
        views = [_view(row, shipped.get(row.id), in_force, reached, now) for row in wanted]
        return {"at": instant_text(now), "prices": [*views, *extra]}

    def check(self) -> dict[str, Any]:
        """Return the candidates of routes that have no price, and shipped prices that nobody looked at for too long.

        Beside them what is stored of each provider: rows, models with a price now, and when they were checked.
        """
        now, stored = self.clock(), self.config.all_prices()
        lacking = [
            {
                "route": one.route,
                "provider": one.candidate.provider,
                "model": one.candidate.model,
                "first": None if one.first is None else instant_text(one.first),
                "problem": str(one),
            }
            for one in unpriced(self.config.routes(), stored, now)
        ]
        shipped = {row.id: row for row in self._shipped()}
        # A row that was overtaken prices nothing any more; one to come will.
        current = [*_in_force(stored, now), *(row for row in stored if row.valid_from > now)]
        stale = [
            {"id": row.id, "checked": shipped[row.id].checked or None, "fresh_days": FRESH_FOR.days}
            for row in current
            if _origin(row, shipped.get(row.id)) == "shipped" and is_stale(shipped[row.id], now)
        ]
        return {
            "clean": not lacking and not stale,
            "at": instant_text(now),
            "rows": len(stored),
            "providers": _by_provider(stored, now),
            "unpriced": lacking,
            "stale": stale,
        }

    def state(self, loaded: Sequence[Event]) -> dict[str, Any]:
        """Return how much of the shipped prices of these providers is stored, how old they are, and the last load."""
        now, shipped = self.clock(), self._shipped()
        stored = {row.id: row for row in self.config.all_prices()}
        looked = sorted(row.checked for row in shipped if row.checked)
        last = loaded and {
            "at": instant_text(loaded[0].at),
            "by": loaded[0].by,
            "subject": "; ".join(dict.fromkeys(event.subject for event in reversed(loaded))),
            "rows": sum(len((event.after or {}).get("rows", ())) for event in loaded),
        }
        return {
            "at": instant_text(now),
            "rows": len(stored),
            "shipped": len(shipped),
            "missing": sum(row.id not in stored for row in shipped),
            "changed": sum(row.id in stored and differs(stored[row.id], row) for row in shipped),
            "oldest_check": looked[0] if looked else None,
            "newest_check": looked[-1] if looked else None,
            "stale": sum(is_stale(row, now) for row in shipped),
            "fresh_days": FRESH_FOR.days,
            "last_load": last or None,
        }

    def add(self, file: str, *, by: str) -> dict[str, Any]:
        """Add the rows of a text with ``prices:``. RequestConflict where one exists and says something else."""
        rows = self._parsed(file)
        stored = {row.id: row for row in self.config.all_prices()}
        self._check_names(rows, stored.values())
        for row in rows:
            if row.id in stored and (differs(stored[row.id], row) or stored[row.id].aliases != row.aliases):
                raise RequestConflict(
                    f"a price row {row.id} exists: it is never overwritten, add one with a later `from`"
                )
        added = []
        for row in rows:
            if row.id in stored:
                continue
            event = Event(kind="price_added", subject=row.id, at=self.clock(), by=by, after=price_view(row))
            if not self.config.add_price(row, event):
                raise RequestConflict(f"a price row {row.id} was added by somebody else: look at it first")
            added.append(row)
        return {
            "added": [{"id": row.id, "provider": row.provider, "model": row.model, **price_view(row)} for row in added],
            "kept": [row.id for row in rows if row.id in stored],
        }

    # --- private

    def _shipped(self) -> tuple[PriceRow, ...]:
        return rows_for(self.config.providers(), self.catalogue)

    def _parsed(self, file: str) -> tuple[PriceRow, ...]:
        findings = Findings()
        document = read(file, findings)
        if not isinstance(document, dict) or list(document) != ["prices"] or not document["prices"]:
            raise ConfigurationInvalid([Problem("", "must be a mapping with prices: and at least one row", 1)])
        rows = parse_prices(document["prices"], [one.name for one in self.config.providers()], findings)
        findings.raise_any()
        return rows

    def _check_names(self, rows: Iterable[PriceRow], stored: Iterable[PriceRow]) -> None:
        """A name leads to one model: a row that is added must not make it lead to two."""
        owners: dict[tuple[str, str], str] = {}
        for row in stored:
            owners.update({(row.provider, name): row.model for name in row.aliases})
            owners[row.provider, row.model] = row.model
        problems = [
            Problem("prices", f"{name} is a name of {row.provider}/{owners[row.provider, name]}: price that model")
            for row in rows
            for name in (row.model, *row.aliases)
            if owners.get((row.provider, name), row.model) != row.model
        ]
        if problems:
            raise ConfigurationInvalid(problems)


def _in_force(rows: Iterable[PriceRow], now: datetime) -> list[PriceRow]:
    models: dict[tuple[str, str], list[PriceRow]] = {}
    for row in rows:
        models.setdefault((row.provider, row.model), []).append(row)
    found = (row_in_force(mine, now) for mine in models.values())
    return [row for row in found if row is not None]


def _by_provider(rows: Iterable[PriceRow], now: datetime) -> list[dict[str, Any]]:
    providers: dict[str, list[PriceRow]] = {}
    for row in rows:
        providers.setdefault(row.provider, []).append(row)
    return [
        {
            "provider": provider,
            "rows": len(mine),
            "models_priced": len(_in_force(mine, now)),
            "oldest_check": min((row.checked for row in mine if row.checked), default=None),
            "newest_check": max((row.checked for row in mine if row.checked), default=None),
            "without_source": sum(not row.source for row in mine),
        }
        for provider, mine in sorted(providers.items())
    ]


def _origin(row: PriceRow, shipped: PriceRow | None) -> Origin:
    if shipped is None:
        return "own"
    return "changed" if differs(row, shipped) else "shipped"


def _reached(routes: Iterable[Route]) -> dict[tuple[str, str], list[str]]:
    reached: dict[tuple[str, str], list[str]] = {}
    for route in routes:
        for one in route.candidates:
            reached.setdefault((one.provider, one.model), []).append(route.name)
    return reached


def _view(
    row: PriceRow,
    shipped: PriceRow | None,
    in_force: set[str],
    reached: dict[tuple[str, str], list[str]],
    now: datetime,
) -> dict[str, Any]:
    names = (row.model, *row.aliases)
    return {
        "id": row.id,
        "provider": row.provider,
        "model": row.model,
        "state": "in_force" if row.id in in_force else "coming" if row.valid_from > now else "past",
        "origin": _origin(row, shipped),
        "routes": sorted({route for name in names for route in reached.get((row.provider, name), ())}),
        "price": price_view(row),
        "source": row.source or None,
        "checked": row.checked or None,
        "shipped": None if shipped is None else price_view(shipped),
    }


def _missing_view(row: PriceRow) -> dict[str, Any]:
    """Return a shipped row that is not stored, as the list shows it."""
    return {
        "id": row.id,
        "provider": row.provider,
        "model": row.model,
        "state": "not_loaded",
        "origin": "shipped",
        "routes": [],
        "price": None,
        "source": row.source or None,
        "checked": row.checked or None,
        "shipped": price_view(row),
    }
