"""One gateway a module, with its own tables; a new hour, new budgets and an empty provider's book a test."""

import itertools
from collections.abc import Iterator

import pytest

from tests.gateway.stand import Stand, standing

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def module_stand(store_url: str, request: pytest.FixtureRequest) -> Iterator[Stand]:
    """Run the module's gateway, with the settings that the module names in ``SETTINGS``."""
    with standing(store_url, **getattr(request.module, "SETTINGS", {})) as stand:
        yield stand


@pytest.fixture
def stand(module_stand: Stand) -> Stand:
    """The module's gateway as if this test were its first."""
    module_stand.begin(f"t{next(_numbers)}")
    return module_stand
