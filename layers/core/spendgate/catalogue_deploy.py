"""The shipped catalogue in a deployed stack: loaded when it is deployed and once a day, and never left empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from spendgate.calls import Log
from spendgate.catalogue import Catalogue, deployed_rows, is_stale, load
from spendgate.core.alert import CatalogueState
from spendgate.core.price import PriceRow
from spendgate.errors import ConfigurationInvalid, Problem
from spendgate.store.config import Config
from spendgate.store.usage import claim_usage

LOADER: Final = "catalogue"
AddMetric = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the table holds after a load: rows, those that this load added, and how old the catalogue's facts are."""

    rows: int
    added: int
    stale: int
    age_days: int

    def counted(self, add_metric: AddMetric) -> dict[str, str]:
        """Hand the figures to the metrics, and return them as the attributes of the resource."""
        add_metric(name="CatalogueRows", unit="Count", value=self.rows)
        add_metric(name="CatalogueStaleRows", unit="Count", value=self.stale)
        add_metric(name="CatalogueAgeDays", unit="Count", value=self.age_days)
        return {"Rows": str(self.rows), "Added": str(self.added), "StaleRows": str(self.stale)}


def deploy(config: Config, shipped: Sequence[PriceRow], catalogue: Catalogue, *, now: datetime, log: Log) -> Stored:
    """Add every shipped row that is not stored; ConfigurationInvalid where no price is in force afterwards, or the data is newer.

    ``age_days`` is the age of the newest look at any provider's page, so that it rises only where nobody looks any more.
    """
    # First: a deployment of code that is older than the data ends here, and is rolled back.
    config.claim_data()
    claim_usage(config, now)
    rows = deployed_rows(shipped, config.providers(), catalogue)
    report = load(config, rows, now=now, by=LOADER)
    stored = config.all_prices()
    if not any(row.valid_from <= now for row in stored):
        raise ConfigurationInvalid([Problem("", "no price is in force: every paid call would be refused")])
    looked = max((row.checked for row in shipped if row.checked), default=None)
    found = Stored(
        rows=len(stored),
        added=report.added,
        stale=sum(is_stale(row, now) for row in shipped),
        age_days=0 if looked is None else (now.date() - datetime.fromisoformat(looked).date()).days,
    )
    config.put_catalogue_state(CatalogueState(rows=found.rows, stale=found.stale, age_days=found.age_days))
    log.info("catalogue loaded", rows=found.rows, added=found.added, stale=found.stale, age_days=found.age_days)
    return found
