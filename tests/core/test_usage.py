"""Usage: disjoint counts, and which values are counts at all."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.usage import BUCKETS, COUNT_MAX, Usage, usable_count


def usage_of(counts: Iterable[tuple[str, int]], **others: Any) -> Usage:
    known: dict[str, Any] = {**dict(counts), **others}
    return Usage(**known)


@given(st.lists(st.integers(0, COUNT_MAX), min_size=len(BUCKETS), max_size=len(BUCKETS)))
def test_every_token_is_in_one_bucket(counts: list[int]) -> None:
    usage = usage_of(zip(BUCKETS, counts, strict=True), fees=(("web_search", 7),))

    assert usage.total == sum(counts)
    assert usage.input_total + usage.output_total == usage.total


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_negative_count_cannot_be_usage(bucket: str) -> None:
    with pytest.raises(ValueError, match=bucket):
        usage_of([(bucket, -1)])


@given(st.integers(0, COUNT_MAX))
def test_whole_numbers_are_counts_however_a_server_writes_them(count: int) -> None:
    assert usable_count(count) == count
    assert usable_count(float(count)) == count
    assert usable_count(Decimal(count)) == count
    assert usable_count(Decimal(f"{count}.0")) == count


@given(
    st.integers(max_value=-1)
    | st.integers(min_value=COUNT_MAX + 1)
    | st.floats().filter(lambda value: not (0 <= value <= COUNT_MAX and value.is_integer()))
    | st.decimals().filter(lambda value: not value.is_finite() or not 0 <= value <= COUNT_MAX or value % 1 != 0)
    | st.text()
    | st.booleans()
    | st.none()
    | st.lists(st.integers())
)
def test_anything_else_is_no_count_and_no_error(value: object) -> None:
    assert usable_count(value) is None
