"""The shipped prices, laid beside what is stored: only ever added to, so that an operator's row survives every deploy."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from spendgate.core.event import Event
from spendgate.core.price import PriceRow
from spendgate.core.route import Provider
from spendgate.errors import ConfigurationInvalid, Problem
from spendgate.store.config import Config

# Shipped are some 2,200; a file that has more is no catalogue.
ROWS_MAX: Final = 20_000
# After so many days without a look at the provider's page, a shipped price may have been overtaken.
FRESH_FOR: Final = timedelta(days=45)
# The kind of the events that tell of a load.
LOADED: Final = "prices_loaded"
# What a provider says that wants no shipped prices at all.
NO_CATALOGUE: Final = "none"

# The rows of a shipped catalogue by its name, None where there is none of that name.
Catalogue = Callable[[str], tuple[PriceRow, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What a load did: rows added, rows that were there, the ids of those that are stored with another price.

    ``in_force`` counts the (provider, model) pairs of the catalogue that have a price now.
    """

    added: int
    kept: int
    differing: tuple[str, ...]
    in_force: int


def no_catalogue(name: str) -> tuple[PriceRow, ...] | None:
    """Be the catalogue of a gateway that ships none."""
    del name
    return None


def rows_for(providers: Iterable[Provider], catalogue: Catalogue) -> tuple[PriceRow, ...]:
    """Return the shipped rows of these providers, each under its own name.

    Whose they are says ``prices``; else they are those of the provider's name, else of its kind.
    """
    return tuple(
        row if row.provider == provider.name else replace(row, provider=provider.name)
        for provider in providers
        for row in _rows_of(provider, catalogue)
    )


def deployed_rows(
    shipped: Sequence[PriceRow], providers: Iterable[Provider], catalogue: Catalogue
) -> tuple[PriceRow, ...]:
    """Return all that a deployment stores: every shipped row under its own name, and under those of the providers."""
    rows = {row.id: row for row in shipped}
    return tuple((rows | {row.id: row for row in rows_for(providers, catalogue)}).values())


def unknown_catalogues(providers: Iterable[Provider], catalogue: Catalogue) -> list[Problem]:
    """Return a problem for each provider that names a catalogue which is not shipped."""
    return [
        Problem(f"providers.{provider.name}.prices", f"there is no shipped catalogue {provider.prices!r}")
        for provider in providers
        if provider.prices not in (None, NO_CATALOGUE) and catalogue(provider.prices) is None
    ]


def load(config: Config, rows: Sequence[PriceRow], *, now: datetime, by: str) -> LoadReport:
    """Add the rows that are missing and return what came of it; again changes nothing.

    A load that ended early goes on where it ended. ConfigurationInvalid where there is nothing to load, or too much.
    """
    if not 1 <= len(rows) <= ROWS_MAX:
        what = "is empty" if not rows else f"has {len(rows)} rows, more than {ROWS_MAX}"
        raise ConfigurationInvalid([Problem("", f"the catalogue {what}: nothing was loaded")])
    stored = config.all_prices()
    present = {row.id: row for row in stored}
    missing = addable(rows, stored)

    def event(batch: Sequence[PriceRow]) -> Event:
        providers = ",".join(dict.fromkeys(row.provider for row in batch))
        return Event(
            kind=LOADED,
            subject=f"catalogue:{providers}",
            at=now,
            by=by,
            after={"rows": [row.id for row in batch]},
        )

    added = config.add_prices(missing, event)
    in_force = {(row.provider, row.model) for row in rows if row.valid_from <= now}
    return LoadReport(
        added=added,
        kept=len(rows) - added,
        differing=tuple(row.id for row in rows if row.id in present and differs(present[row.id], row)),
        in_force=len(in_force),
    )


def addable(rows: Sequence[PriceRow], stored: Sequence[PriceRow]) -> list[PriceRow]:
    """Return the rows that are not stored, without the names that an operator gave to other models."""
    present: set[str] = set()
    owners: dict[tuple[str, str], str] = {}
    for row in stored:
        present.add(row.id)
        owners.update({(row.provider, alias): row.model for alias in row.aliases})
    # Stored models last: a name that is one is nobody's alias.
    owners.update({(row.provider, row.model): row.model for row in stored})
    found = []
    for row in rows:
        if row.id in present or owners.get((row.provider, row.model), row.model) != row.model:
            continue
        aliases = tuple(name for name in row.aliases if owners.get((row.provider, name), row.model) == row.model)
        found.append(row if aliases == row.aliases else replace(row, aliases=aliases))
    return found


def rows_named(rows: Iterable[PriceRow], provider: str, name: str) -> tuple[PriceRow, ...]:
    """Return the rows that price a name: those of the model itself, else those that have it as an alias."""
    found = [row for row in rows if row.provider == provider and name in (row.model, *row.aliases)]
    own = [row for row in found if row.model == name]
    return tuple(own or found)


def differs(stored: PriceRow, shipped: PriceRow) -> bool:
    """Tell whether a stored row says another price, or another size, than the shipped one."""
    return _said(stored) != _said(shipped)


def is_stale(shipped: PriceRow, now: datetime) -> bool:
    """Tell whether nobody has looked at a shipped price for too long."""
    if not shipped.checked:
        return True
    return datetime.fromisoformat(shipped.checked).replace(tzinfo=now.tzinfo) + FRESH_FOR < now


def _rows_of(provider: Provider, catalogue: Catalogue) -> tuple[PriceRow, ...]:
    if provider.prices is not None:
        return () if provider.prices == NO_CATALOGUE else catalogue(provider.prices) or ()
    return catalogue(provider.name) or (catalogue(provider.kind) if provider.kind else None) or ()


def _said(row: PriceRow) -> PriceRow:
    # Where it was read and which further names it has are not what it costs.
    return replace(
        row,
        service=tuple(sorted(row.service, key=lambda one: one[0])),
        factors=tuple(sorted(row.factors)),
        fees=tuple(sorted(row.fees)),
        aliases=(),
        source="",
        checked="",
    )
