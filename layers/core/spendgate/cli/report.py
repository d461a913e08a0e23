"""``report``: what was used, by whom and at what cost, for those who pay for it."""

import csv
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

import click
from rich.table import Table
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.client import Gateway
from spendgate.cli.render import SETTLED, bar, clean, plain_table
from spendgate.cli.session import Session, console_for_people, talks_to_gateway
from spendgate.core.money import usd
from spendgate.core.report import Group, Sums, in_order, sums_of, sums_view, total
from spendgate.core.usage import BUCKETS

_NUMBERS: Final = ("calls", "input", "output", "cost")
_COUNTS: Final = ("calls", "calls_settled", "calls_released", "calls_charged", "tokens")
_OUTPUT: Final = ("output", "audio_output", "image_output")
_BAR_WIDTH_MAX: Final = 20
_BAR_WIDTH_MIN: Final = 5

Document = Mapping[str, Any]


@click.command(
    short_help="Add up what was used and what it cost.",
    epilog="""\b
Examples:
  spendgate report                        this month, by budget
  spendgate report --by day --budget acme/search
  spendgate report --from 2026-10-01 --to 2026-10-31 --by model,day
  spendgate report --by budget,model --csv november.csv
""",
)
@click.option("--budget", metavar="PATH", help="Only this budget and all below it; or one run.")
@click.option("--from", "first", metavar="DAY", help="The first day, in UTC. [default: the first of the month]")
@click.option("--to", "last", metavar="DAY", help="The last day, in UTC; it is in the report. [default: today]")
@click.option(
    "--by",
    default="budget",
    show_default=True,
    metavar="NAMES",
    help="What a row is of: day, budget, provider, model, or several of them with commas between.",
)
@click.option(
    "--csv",
    "file",
    type=click.File("w", encoding="utf-8", lazy=True),
    metavar="FILE",
    help="Write it there too; - is stdout, alone.",
)
@talks_to_gateway
def report(
    session: Session, *, budget: str | None, first: str | None, last: str | None, by: str, file: IO[str] | None
) -> int:
    """Add up calls, tokens and cost of resolved calls: settled, released and charged ones.

    A call is of the day on which it was reserved, so a day's cost is what the budget's daily limit has counted. Calls of runs,
    expired ones too, count on the budget that the runs belong to. What is held for calls that have not ended is no
    cost yet, and told beneath. Money is exact.
    """
    found = _whole(session.gateway, {"from": first, "to": last, "by": by, "budget": budget})
    if file is not None:
        _write_csv(file, found)
    if file is None or file.name != "-":
        written = [] if file is None else [_written(len(found["rows"]), file.name)]
        session.answer(found, *_shown(found, width=console_for_people().width), *written)
    return exit_codes.OK


def _written(rows: int, name: str) -> Text:
    return Text(f"{rows} {'row is' if rows == 1 else 'rows are'} written to {clean(name)}.")


def _whole(gateway: Gateway, asked: Mapping[str, str | None]) -> dict[str, Any]:
    """Ask for one part after the other, and return their sum."""
    part = gateway.get("/report", **asked)
    # As the first part understood it: midnight may pass in between.
    names = part["by"]
    again = {"from": part["from"], "to": part["to"], "by": ",".join(names), "budget": part["budget"]}
    whole, groups = part, dict[Group, Sums]()
    while True:
        for row in part["rows"]:
            groups.setdefault(tuple(row[name] for name in names), Sums()).update(sums_of(row))
        if part["next"] is None:
            break
        part = gateway.get("/report", **again, cursor=part["next"])
    rows = [{**dict(zip(names, group, strict=True)), **sums_view(sums)} for group, sums in in_order(groups)]
    return {
        **{name: value for name, value in whole.items() if name != "next"},
        "rows": rows,
        "total": sums_view(total(groups)),
    }


def _shown(found: Document, *, width: int) -> Iterator[Text | Table]:
    whose = "all budgets" if found["budget"] is None else found["budget"]
    span = found["from"] if found["from"] == found["to"] else f"{found['from']} to {found['to']}"
    yield Text(f"{clean(whose)}, {span} (UTC)", style="bold")
    if found["rows"]:
        yield _table(found, width=width)
    else:
        yield Text("Nothing was used.")
    yield from (Text(line) for line in _beneath(found))


def _table(found: Document, *, width: int) -> Table:
    names = found["by"]
    table = plain_table(*names, *_NUMBERS, "", right=_NUMBERS, whole=("day", *_NUMBERS, ""))
    rows = found["rows"] if names[0] == "day" else sorted(found["rows"], key=lambda row: usd(row["cost"]), reverse=True)
    most = max(rows, key=lambda row: usd(row["cost"]))["cost"]
    bar_width = min(max(width // 6, _BAR_WIDTH_MIN), _BAR_WIDTH_MAX)
    for row in rows:
        share = bar([(SETTLED, row["cost"])], most, width=bar_width)
        table.add_row(*(clean(row[name] or "-") for name in names), *_numbers(row), share)
    table.add_row("total", *[""] * (len(names) - 1), *_numbers(found["total"]), "", style="bold")
    return table


def _numbers(row: Document) -> Iterator[str]:
    usage = row["usage"]
    yield f"{row['calls']:,}"
    yield f"{sum(usage.get(name, 0) for name in BUCKETS if name not in _OUTPUT):,}"
    yield f"{sum(usage.get(name, 0) for name in _OUTPUT):,}"
    yield f"${row['cost']}"


def _beneath(found: Document) -> Iterator[str]:
    held = found["held"]
    if held["reserved"] != "0":
        yield f"Beside it ${held['reserved']} is held now for calls that have not ended."
    if held["unknown"] != "0":
        yield (
            f"${held['unknown']} of that is of unknown outcome: "
            f"spendgate reservations list --state unknown{'' if found['budget'] is None else ' --budget ' + clean(found['budget'])}"
        )
    if found["runs_complete_from"] is not None:
        yield (
            f"Usage of runs before {found['runs_complete_from']} may be missing: an older version recorded it where no report finds it."
        )


def _write_csv(file: IO[str], found: Document) -> None:
    fees = sorted({kind for row in found["rows"] for kind in row["usage"].get("fees", {})})
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*found["by"], *_COUNTS, *BUCKETS, *(f"fee:{kind}" for kind in fees), "cost_usd"])
    for row in found["rows"]:
        usage = row["usage"]
        units = [usage.get("fees", {}).get(kind, 0) for kind in fees]
        counts = [row[name] for name in _COUNTS]
        writer.writerow(
            [
                *(row[name] for name in found["by"]),
                *counts,
                *(usage.get(name, 0) for name in BUCKETS),
                *units,
                row["cost"],
            ]
        )
