"""The shipped catalogue, read once: nothing in these tests changes it."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from spendgate.catalogue_files import catalogue_in
from spendgate.core.price import PriceRow, row_in_force
from tests.catalogue.shipped import PRICES

Find = Callable[..., PriceRow]
_CATALOGUE = catalogue_in(PRICES)
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def rows(provider: str, name: str) -> list[PriceRow]:
    """Return a model's rows by any of its exact names."""
    return [row for row in _CATALOGUE(provider) or () if name in (row.model, *row.aliases)]


@pytest.fixture(scope="session")
def find() -> Find:
    """Return the row of a name that is in force at an instant."""

    def row(provider: str, name: str, at: datetime = NOW) -> PriceRow:
        found = row_in_force(rows(provider, name), at)
        assert found is not None, f"{provider}/{name} has no price at {at}"
        return found

    return row
