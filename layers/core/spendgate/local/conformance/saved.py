"""Results as lines of JSON, so that gateways can be played apart, and a run that ends early keeps what it has."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spendgate.core.money import Picodollars
from spendgate.local.conformance.case import Case
from spendgate.local.conformance.driver import Books, Held
from spendgate.local.conformance.run import Report, Result
from spendgate.local.conformance.verdict import Figures, Kind, Verdict


class SavedUnreadable(ValueError):
    """A file of results is none, or of another version of the suite; says which line."""


def written(name: str, version: str, command: str, result: Result) -> str:
    """Return a result of a gateway as one line."""
    document = {
        "gateway": name,
        "version": version,
        "command": command,
        "case": result.case.name,
        "verdict": str(result.verdict.kind),
        "reason": result.verdict.reason,
        "figures": None if result.figures is None else asdict(result.figures),
        "held_because": result.held_because,
        "remarks": result.remarks,
        "milliseconds": result.milliseconds,
        "seconds": round(result.seconds, 1),
    }
    return json.dumps(document)


def read(files: Iterable[Path], cases: Sequence[Case]) -> list[Report]:
    """Return the reports of files, one a gateway, in the order in which it first occurs; of a case the last result.

    SavedUnreadable.
    """
    known = {case.name: case for case in cases}
    heads: dict[str, tuple[str, str]] = {}
    results: dict[str, dict[str, Result]] = {}
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                document = json.loads(line)
                name = document["gateway"]
                # A case that is no more has nothing to say.
                if document["case"] in known:
                    results.setdefault(name, {})[document["case"]] = _result(document, known[document["case"]])
                    heads[name] = (document["version"], document["command"])
            except (ValueError, KeyError, TypeError) as error:
                raise SavedUnreadable(f"{file}, line {number}: {error}") from error
    return [
        Report(name=name, version=heads[name][0], command=heads[name][1], results=_in_order(found, cases))
        for name, found in results.items()
    ]


def _in_order(found: Mapping[str, Result], cases: Sequence[Case]) -> tuple[Result, ...]:
    return tuple(found[case.name] for case in cases if case.name in found)


def _result(document: Mapping[str, Any], case: Case) -> Result:
    figures = document["figures"]
    return Result(
        case=case,
        verdict=Verdict(kind=Kind(document["verdict"]), reason=document["reason"]),
        figures=None if figures is None else _figures(figures),
        held_because=tuple(document["held_because"]),
        remarks=tuple(document["remarks"]),
        milliseconds=document["milliseconds"],
        seconds=document["seconds"],
    )


def _figures(document: Mapping[str, Any]) -> Figures:
    books = document["books"]
    return Figures(
        limit=Picodollars(document["limit"]),
        billed=Picodollars(document["billed"]),
        books=None if books is None else _books(books),
        made=document["made"],
        answered=document["answered"],
        hits=document["hits"],
    )


def _books(document: Mapping[str, Any]) -> Books:
    records = document["records"]
    return Books(
        booked=Picodollars(document["booked"]),
        held=None if document["held"] is None else Picodollars(document["held"]),
        records=None if records is None else tuple(Held(amount=one["amount"], why=one["why"]) for one in records),
        resolution=Picodollars(document["resolution"]),
    )
