"""One gateway a module, with its own tables; a new hour, new budgets and an empty provider's book a test."""

import itertools
from collections.abc import Iterator

import pytest

from tests.gateway.canaries import check_secrecy
from tests.gateway.stand import Stand, standing

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def module_stand(store_url: str, request: pytest.FixtureRequest) -> Iterator[Stand]:
    """Run the module's gateway, with the settings that the module names in ``SETTINGS``."""
    with standing(store_url, **getattr(request.module, "SETTINGS", {})) as stand:
        yield stand


@pytest.fixture
def stand(module_stand: Stand) -> Iterator[Stand]:
    """The module's gateway as if this test were its first; whatever the test did, it has kept no secret and no prompt."""
    module_stand.begin(f"t{next(_numbers)}")
    yield module_stand
    check_secrecy(module_stand)
