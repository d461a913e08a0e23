"""The page is made of results only: what is worse for Spendgate stands there too."""

from dataclasses import replace
from pathlib import Path

import pytest

from spendgate.core.money import Picodollars
from spendgate.local.conformance.case import Case, Stand
from spendgate.local.conformance.driver import Books, Held
from spendgate.local.conformance.report import Origin, better, page
from spendgate.local.conformance.run import Report, Result
from spendgate.local.conformance.saved import SavedUnreadable, read, written
from spendgate.local.conformance.verdict import HOLDS, Figures, Kind, Verdict

ORIGIN = Origin(command="spendgate conformance", machine="Played on a machine.")


def _nothing(_: Stand) -> None:
    """Play nothing."""


def _result(*, answered: int = 9, held: int = 0, kind: Kind = Kind.HOLDS, milliseconds: float | None = None) -> Result:
    records = (Held(amount=Picodollars(held), why="it | broke"),) if held else ()
    books = Books(booked=Picodollars(90 + held), held=Picodollars(held), records=records)
    return Result(
        case=Case(name="a case", group="concurrency", title="what is done", play=_nothing),
        verdict=HOLDS if kind == Kind.HOLDS else Verdict(kind=kind, reason="because `so`"),
        figures=Figures(
            limit=Picodollars(100), billed=Picodollars(90), books=books, made=12, answered=answered, hits=9
        ),
        held_because=tuple(one.why for one in records),
        remarks=("a remark",),
        milliseconds=milliseconds,
    )


def _report(name: str, *results: Result) -> Report:
    return Report(name=name, version="1", command=f"{name} serve", results=results)


def test_the_page_has_every_verdict_reason_and_record() -> None:
    text = page([_report("ours", _result(held=5)), _report("theirs", _result(kind=Kind.OVERSPENT))], ORIGIN)

    assert "| **a case**: what is done | holds 0.90 1.05 0.000000000005 | overspent 0.90 1.00 0 |" in text
    assert "| theirs | a case | overspent | `because 'so'` | 9 of 12 |" in text
    assert "| ours | a case | 0.000000000005 | `it / broke` |" in text
    assert "| a case | ours | `a remark` |" in text


def test_what_another_does_better_is_said_and_only_that() -> None:
    ours = _result(answered=8, held=5, milliseconds=4.0)

    assert better(ours, _result(answered=9, held=0, milliseconds=1.5)) == (
        "9 calls answered within the limit, not 8",
        "0 USD held at the end, not 0.000000000005",
        "a refusal takes 1.5 ms (p50), not 4.0",
    )
    assert better(ours, ours) == ()
    assert better(ours, _result(kind=Kind.OVERSPENT, answered=12)) == ()
    assert better(_result(kind=Kind.MISSED), _result()) == ("holds, where this one is missed",)


def test_a_case_that_could_not_be_played_stands_there_without_figures() -> None:
    none = replace(_result(kind=Kind.UNSUPPORTED), figures=None)

    assert "| **a case**: what is done | unsupported |" in page([_report("ours", none)], ORIGIN)


def test_what_was_saved_is_read_again_the_last_of_each_case_and_by_gateway(tmp_path: Path) -> None:
    first, last, none = _result(answered=1), _result(held=5, milliseconds=2.5), replace(_result(), figures=None)
    file = tmp_path / "results.jsonl"
    lines = [written("ours", "1", "ours serve", one) for one in (first, last)]
    file.write_text("\n".join([*lines, written("theirs", "1", "theirs serve", none), ""]))

    assert read([file], [last.case]) == [_report("ours", last), _report("theirs", none)]


def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text("{}\n")

    with pytest.raises(SavedUnreadable, match="line 1"):
        read([file], [])


def test_a_gateway_holds_where_some_case_was_played_and_none_shows_that_it_does_not() -> None:
    holds, none, missed = _result(), _result(kind=Kind.UNSUPPORTED), _result(kind=Kind.MISSED)

    assert [_report("ours", *results).holds for results in ((holds, none), (none,), (holds, missed), ())] == [
        True,
        False,
        False,
        False,
    ]
