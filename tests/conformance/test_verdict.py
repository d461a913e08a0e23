"""A verdict is arithmetic: every boundary of it, and figures that never flatter."""

from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.money import Picodollars
from spendgate.local.conformance.driver import Books, Held
from spendgate.local.conformance.verdict import Figures, Kind, judge

amounts = st.integers(1, 10**15).map(Picodollars)


def _figures(
    *,
    limit: int = 100,
    billed: int = 50,
    booked: int | None = 50,
    held: int | None = 0,
    why: str = "unknown",
    hits: int = 1,
) -> Figures:
    books = None
    if booked is not None:
        records = (Held(amount=Picodollars(held), why=why),) if held else ()
        books = Books(booked=Picodollars(booked), held=None if held is None else Picodollars(held), records=records)
    return Figures(limit=Picodollars(limit), billed=Picodollars(billed), books=books, made=3, answered=hits, hits=hits)


def test_what_is_billed_up_to_the_limit_and_booked_holds() -> None:
    assert judge(_figures(billed=100, booked=100)).kind == Kind.HOLDS


def test_a_picodollar_above_the_limit_is_overspent_whatever_the_books_say() -> None:
    assert judge(_figures(billed=101, booked=101)).kind == Kind.OVERSPENT
    assert judge(_figures(billed=101, booked=None)).kind == Kind.OVERSPENT


def test_a_picodollar_that_is_neither_booked_nor_held_is_under_booked() -> None:
    assert judge(_figures(billed=50, booked=49)).kind == Kind.UNDER_BOOKED
    assert judge(_figures(billed=50, booked=50, held=20)).kind == Kind.HOLDS


def test_books_that_are_read_in_larger_units_are_believed_to_one_of_these() -> None:
    books = Books(booked=Picodollars(48), held=Picodollars(0), resolution=Picodollars(2))
    figures = Figures(limit=Picodollars(100), billed=Picodollars(50), books=books, made=1, answered=1, hits=1)

    assert judge(figures).kind == Kind.HOLDS


def test_money_held_without_a_record_or_with_an_empty_one_is_unexplained() -> None:
    assert judge(_figures(booked=70, held=20, why="")).kind == Kind.UNEXPLAINED


def test_money_that_is_right_still_misses_what_a_case_looks_for() -> None:
    verdict = judge(_figures(), missed="sent with a revoked key")

    assert (verdict.kind, verdict.reason) == (Kind.MISSED, "sent with a revoked key")


def test_a_gateway_that_lets_nothing_through_has_shown_nothing_unless_the_case_wants_just_that() -> None:
    none = _figures(billed=0, booked=0, hits=0)

    assert judge(none, first_refusal="401 who?").kind == Kind.UNSUPPORTED
    assert judge(none, sends=False).kind == Kind.HOLDS


def test_books_that_cannot_be_read_are_shown_as_that() -> None:
    figures = _figures(booked=None)

    assert (figures.of_billed, figures.held, judge(figures).kind) == ("-", "-", Kind.HOLDS)


@given(limit=amounts, billed=amounts, booked=amounts)
def test_a_ratio_of_one_is_never_more_than_the_limit_nor_less_than_the_bill(
    limit: Picodollars, billed: Picodollars, booked: Picodollars
) -> None:
    figures = _figures(limit=limit, billed=billed, booked=booked)

    if billed > limit:
        assert figures.of_limit > "1.00" or len(figures.of_limit) > 4
    if booked < billed:
        assert figures.of_billed < "1.00"
