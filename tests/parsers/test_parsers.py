"""Every parser under what hypothesis makes of real inputs, and under all that a fuzzer has ever found.

``make fuzz-parsers`` runs the same targets under a coverage-guided fuzzer for as long as one likes.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.seeds import FOUND, seeds
from tests.parsers.targets import TARGETS

SHORT_BYTES_MAX = 2048
EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True, database=None)


@st.composite
def mutated(draw: st.DrawFn, target: str) -> bytes:
    """Return a real input with a few of its parts exchanged, doubled, left out or put in."""
    short = [one for one in seeds()[target] if len(one) <= SHORT_BYTES_MAX]
    data = draw(st.sampled_from(short))
    words = [word.encode() for word in TARGETS[target].dictionary]
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        to = min(len(data), at + draw(st.integers(0, 12)))
        put = draw(st.sampled_from([b"", data[at:to] * 2, *words]) | st.binary(max_size=6))
        data = data[:at] + put + data[to:]
    return data


@pytest.mark.parametrize("target", TARGETS)
def test_each_real_input_is_read_as_it_promises(target: str) -> None:
    for data in seeds()[target]:
        TARGETS[target].check(data)


@pytest.mark.parametrize("target", TARGETS)
def test_whatever_comes_is_read_or_refused_and_means_the_same_when_it_is_read_again(target: str) -> None:
    @EXAMPLES
    @given(data=mutated(target) | st.binary(max_size=60))
    def holds(data: bytes) -> None:
        TARGETS[target].check(data)

    holds()


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_fuzzer_found_once_is_no_fault_any_more(target: str) -> None:
    for file in sorted((FOUND / target).glob("*")):
        TARGETS[target].check(file.read_bytes())
