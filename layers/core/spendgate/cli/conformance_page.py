"""What ``conformance`` writes down: the page with its command lines and its machine, and the results as JSON."""

import platform
import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spendgate.cli.conformance_drivers import PEERS

if TYPE_CHECKING:
    from spendgate.local.conformance.run import Report


def write(file: Path, reports: "Sequence[Report]") -> None:
    from spendgate.local.conformance.report import Origin, page  # noqa: PLC0415 - no other command needs it

    origin = Origin(command=_command(reports), machine=_machine())
    file.write_text(page(reports, origin), encoding="utf-8")
    click.echo(f"written: {file}", err=True)


def _command(reports: "Sequence[Report]") -> str:
    """Return the command lines by which the page is made again, without what is secret or of this machine only."""
    given = click.get_current_context().params
    words = ["spendgate", "conformance"]
    lines: list[str] = []
    for file in given["saved"]:
        words += ["--from", file.name]
    if given["saved"]:
        for report in reports:
            where = ["--peers", "PEERS"] if report.name in PEERS else []
            lines.append(shlex.join([*words[:2], "--driver", report.name, *where, "--save", f"{report.name}.jsonl"]))
    for name, option in (("groups", "--group"), ("names", "--case"), ("drivers", "--driver")):
        words += [word for value in given[name] for word in (option, value)]
    if given["peers"] is not None:
        words += ["--peers", "PEERS"]
    if given["target"] is not None:
        words += ["--target", "URL"]
    if given["parallel"]:
        words.append("--parallel")
    return "\n".join([*lines, shlex.join([*words, "--write", "docs/conformance.md"])])


def _machine() -> str:
    processors = 0
    with suppress(OSError):
        processors = sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
    where = f"{platform.system()} {platform.machine()}, {processors or 'an unknown number of'} processors"
    return f"Played on {datetime.now(UTC):%Y-%m-%d} with Python {platform.python_version()} on {where}."


def as_json(report: "Report") -> dict[str, Any]:
    return {
        "gateway": report.name,
        "version": report.version,
        "command": report.command,
        "holds": report.holds,
        "cases": [
            {
                "group": one.case.group,
                "case": one.case.name,
                "verdict": str(one.verdict.kind),
                "reason": one.verdict.reason,
                "figures": None
                if one.figures is None
                else {
                    "billed_to_limit": one.figures.of_limit,
                    "ledger_to_billed": one.figures.of_billed,
                    "held_usd": one.figures.held,
                    "made": one.figures.made,
                    "answered": one.figures.answered,
                    "sent": one.figures.hits,
                },
                "held_because": list(one.held_because),
                "remarks": list(one.remarks),
            }
            for one in report.results
        ],
    }
