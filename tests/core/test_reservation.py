"""Reservations: which states may follow which, and ids that sort by time."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.reservation import LEGAL, STATES, UNRESOLVED, State, is_id, may_follow, new_id
from tests.builders import NOW, a_reservation
from tests.strategies import instants

randomness = st.binary(min_size=10, max_size=10)


@pytest.mark.parametrize("then", STATES)
@pytest.mark.parametrize("now", STATES)
def test_g6_what_is_resolved_stays_so_and_what_is_unknown_is_never_in_flight_again(now: State, then: State) -> None:
    """G6: a reservation resolves at most once. G5: nothing leads out of unknown but a resolution."""
    order = {"in_flight": 0, "unknown": 1, "settled": 2, "released": 2, "charged": 2}

    assert may_follow(now, then) == (order[then] > order[now])
    assert (LEGAL[now] == ()) == (now not in UNRESOLVED)


@given(instants, instants, randomness, randomness)
def test_ids_sort_by_time(one: datetime, other: datetime, random_one: bytes, random_other: bytes) -> None:
    early, late = sorted((one, other))
    first, second = new_id(early, random_one), new_id(late, random_other)

    assert is_id(first)
    if late - early >= timedelta(milliseconds=2):
        assert first < second


@given(instants, randomness, randomness)
def test_ids_of_one_instant_differ_by_their_randomness(at: datetime, one: bytes, other: bytes) -> None:
    assert (new_id(at, one) == new_id(at, other)) == (one == other)
    assert (new_id(at, one) < new_id(at, other)) == (one < other)


def test_an_id_is_a_ulid() -> None:
    """The example of the ULID's own README: its time is 1469918176385 ms."""
    at = datetime.fromtimestamp(0, NOW.tzinfo) + timedelta(milliseconds=1469918176385)

    assert new_id(at, bytes(10)) == "01ARYZ6S41" + "0" * 16


@pytest.mark.parametrize("size", [0, 9, 11])
def test_an_id_takes_exactly_its_randomness(size: int) -> None:
    with pytest.raises(ValueError, match="ten random bytes"):
        new_id(NOW, bytes(size))


@pytest.mark.parametrize(
    "text", ["", "01ARYZ6S41", "0" * 27, "0" * 25 + "I", "0" * 25 + "u", "0" * 25 + "/", "RES#" + "0" * 22]
)
def test_what_has_not_the_form_of_an_id_is_none(text: str) -> None:
    assert not is_id(text)


def test_a_reservation_holds_on_every_budget_of_its_path() -> None:
    reservation = a_reservation("acme/search/triage")

    assert [hold.budget for hold in reservation.holds] == ["acme", "acme/search", "acme/search/triage"]
