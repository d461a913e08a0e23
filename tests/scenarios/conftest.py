"""The figures of the scenarios: each adds a line, and a table of all stands at the end of the run."""

from collections.abc import Callable

import pytest

from spendgate.core.money import usd_text
from tests.scenarios.figures import PROPERTY, ratio

Tell = Callable[..., None]


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Return a function that adds a scenario's figures to the table; amounts are picodollars."""

    def tell(
        scenario: str,
        *,
        admitted: int,
        refused: int = 0,
        billed: int,
        limit: int | None = None,
        ledger: int,
        held: int = 0,
    ) -> None:
        cells = (scenario, str(admitted), str(refused), ratio(billed, limit), ratio(ledger, billed), usd_text(held))
        # A property travels with the test's report, also from another process.
        request.node.user_properties.append((PROPERTY, list(cells)))

    return tell
