"""``conformance``: play the suite against a gateway, or several, and write down what came of it."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spendgate.cli import conformance_page, exit_codes
from spendgate.cli.conformance_drivers import check, driver_of
from spendgate.cli.failure import Failed

if TYPE_CHECKING:
    from spendgate.local.conformance.case import Case
    from spendgate.local.conformance.driver import Driver
    from spendgate.local.conformance.run import Report, Result


@click.command(
    short_help="Try to overspend a gateway's limits, and judge it.",
    epilog="""\b
Examples:
  spendgate conformance
  spendgate conformance --group concurrency --group "dense text"
  spendgate conformance --driver spendgate --driver hardcap --peers ~/peers
  spendgate local --config nothing.yaml --ephemeral --json  # tells its token
  spendgate conformance --target http://127.0.0.1:8787 --token TOKEN
  spendgate conformance --driver mine:Gateway --target http://127.0.0.1:4000
""",
)
@click.option(
    "--target",
    metavar="URL",
    help="A running gateway on this machine, of which the driver is told; default: the driver starts one. The suite wants "
    "it for itself: it sets limits, prices, routes and keys, and leaves budgets of its own names behind. What needs the "
    "gateway's process or its clock is unsupported.",
)
@click.option("--token", envvar="SPENDGATE_ADMIN_TOKEN", metavar="TOKEN", help="The admin token of the target.")
@click.option(
    "--driver",
    "drivers",
    multiple=True,
    metavar="NAME",
    help="spendgate, hardcap, inferrail, governer, or module:Class of a driver of your own; the first is the one that "
    "is judged, the others stand beside it. [default: spendgate]",
)
@click.option(
    "--peers",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="Where each other gateway has an environment of its own name: DIR/hardcap/bin/hardcap.",
)
@click.option(
    "--provider-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Where the suite's provider listens on 127.0.0.1, for a gateway that no case can tell. [default: a free one for "
    "each case]",
)
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Only cases of this group.")
@click.option("--case", "names", multiple=True, metavar="CASE", help="Only this case.")
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the page with the tables here.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Add each result to this file as it comes, a line of JSON each.",
)
@click.option(
    "--from",
    "saved",
    multiple=True,
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="Play nothing: judge, and write, what was saved.",
)
@click.option("--parallel", is_flag=True, help="Play the gateways beside each other: sooner done, and times say less.")
@click.option("--list", "only_list", is_flag=True, help="List the cases, and play none.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.pass_context
def conformance(
    context: click.Context,
    *,
    target: str | None,
    token: str | None,
    drivers: tuple[str, ...],
    peers: Path | None,
    provider_port: int | None,
    groups: tuple[str, ...],
    names: tuple[str, ...],
    write: Path | None,
    save: Path | None,
    saved: tuple[Path, ...],
    parallel: bool,
    only_list: bool,
    as_json: bool,
) -> None:
    """Try to overspend a gateway's limits, black box over HTTP, before a provider that counts and bills.

    Everything is on 127.0.0.1, and nothing is spent. Exits 1 when a case shows that the first gateway does not hold, or
    when it could play none.
    """
    chosen = _chosen(groups, names)
    if parallel and provider_port is not None:
        raise click.UsageError("--parallel does not go with --provider-port: a port has one provider at a time")
    if only_list:
        _list(chosen, as_json=as_json)
        return
    if saved:
        reports = _read(saved, chosen)
    else:
        # Each is made before any is played: a name that is wrong shows at once.
        made = [driver_of(one, target=target, token=token, peers=peers) for one in drivers or ("spendgate",)]
        check(made[0])
        reports = _play(made, chosen, parallel=parallel, provider_port=provider_port, save=save, as_json=as_json)
    if write is not None:
        conformance_page.write(write, reports)
    if as_json:
        click.echo(json.dumps({"gateways": [conformance_page.as_json(report) for report in reports]}, indent=2))
    context.exit(exit_codes.OK if reports[0].holds else exit_codes.NO)


def _chosen(groups: Sequence[str], names: Sequence[str]) -> "list[Case]":
    from spendgate.local.conformance.cases import CASES  # noqa: PLC0415 - as above

    for kind, given, known in (
        ("group", groups, {case.group for case in CASES}),
        ("case", names, {case.name for case in CASES}),
    ):
        for one in given:
            if one not in known:
                raise click.UsageError(f"no {kind} {one!r}; there are: {', '.join(sorted(known))}")
    return [case for case in CASES if (not groups or case.group in groups) and (not names or case.name in names)]


def _list(cases: "Sequence[Case]", *, as_json: bool) -> None:
    if as_json:
        found = [{"group": case.group, "case": case.name, "title": case.title} for case in cases]
        click.echo(json.dumps({"cases": found}, indent=2))
        return
    for case in cases:
        click.echo(f"{case.group}: {case.name}\n  {case.title}")


def _play(
    drivers: "Sequence[Driver]",
    cases: "Sequence[Case]",
    *,
    parallel: bool,
    provider_port: int | None,
    save: Path | None,
    as_json: bool,
) -> "list[Report]":
    # Imported here: a provider and its cases are much, and no other command needs them.
    from spendgate.local.conformance.run import play  # noqa: PLC0415

    with ThreadPoolExecutor(max_workers=len(drivers) if parallel else 1) as pool:
        playing = [
            pool.submit(play, driver, cases, _tell(driver, save, as_json=as_json), provider_port=provider_port or 0)
            for driver in drivers
        ]
        return [one.result() for one in playing]


def _tell(driver: "Driver", save: Path | None, *, as_json: bool) -> "Callable[[Result], None]":
    from spendgate.local.conformance.driver import Cannot  # noqa: PLC0415 - as above
    from spendgate.local.conformance.report import line  # noqa: PLC0415 - as above
    from spendgate.local.conformance.saved import written  # noqa: PLC0415 - as above

    version = "not installed"
    with suppress(Cannot):
        version = driver.version()

    def tell(result: "Result") -> None:
        if not as_json:
            click.echo(f"{driver.name:<10} {line(result)}")
        if save is not None:
            with save.open("a", encoding="utf-8") as out:
                out.write(written(driver.name, version, driver.command(), result) + "\n")

    return tell


def _read(files: Sequence[Path], cases: "Sequence[Case]") -> "list[Report]":
    from spendgate.local.conformance.report import line  # noqa: PLC0415 - as above
    from spendgate.local.conformance.saved import SavedUnreadable, read  # noqa: PLC0415 - as above

    try:
        reports = read(files, cases)
    except SavedUnreadable as error:
        raise Failed(str(error), code="saved_unreadable") from error
    if not reports:
        raise Failed("the files have no result of a case", code="saved_unreadable")
    for report in reports:
        for result in report.results:
            click.echo(f"{report.name:<10} {line(result)}", err=True)
    return reports
