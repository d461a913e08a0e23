"""What a test of the suite leaves open is that test's own fault: it is collected there, and not in the midst of another."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()
