"""``status``, ``stop`` and ``resume``: the budgets as they stand, and their latch."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.render import clean, limits_of, when
from spendgate.cli.session import Session, console_for_people, talks_to_gateway
from spendgate.cli.status import status as status_tree


@click.command(
    short_help="Show the budgets as they stand.",
    epilog="""\b
Examples:
  spendgate status
  spendgate status acme/search    one budget and all below it, with every run
  spendgate status --json
""",
)
@click.argument("path", required=False)
@talks_to_gateway
def status(session: Session, path: str | None) -> int:
    """Show the tree of budgets: what is settled, reserved, unknown and free in every limited window."""
    found = session.gateway.get("/budgets", path=path)
    session.answer(found, status_tree(found, width=console_for_people().width, all_runs=path is not None))
    return exit_codes.OK


@click.command(
    short_help="Stop a budget and all below it.",
    epilog="""\b
Examples:
  spendgate stop acme/search --reason "the nightly job loops"
""",
)
@click.argument("path")
@click.option("--reason", required=True, metavar="TEXT", help="Why; callers are told.")
@talks_to_gateway
def stop(session: Session, path: str, reason: str) -> int:
    """Let no paid call through at or below a budget, from the next call on.

    Calls in flight finish and settle. A budget that is stopped already keeps its first reason.
    """
    budget = session.gateway.post("/stop", {"path": path, "reason": reason})
    session.answer(budget, _stopped(budget))
    return exit_codes.OK


@click.command(
    short_help="Let a stopped budget go on.",
    epilog="""\b
Examples:
  spendgate resume acme/search --reason "fixed in release 41"
  spendgate resume acme/search --reason "the launch" --limit day=80 --until 6h
""",
)
@click.argument("path")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is right to go on; kept in the trail.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="WINDOW=USD",
    help="Raise this limit for a while, such as day=80; of other measures requests.minute=120. Again for another.",
)
@click.option(
    "--until", metavar="WHEN", help="When raised limits end by themselves: 30m, 6h or 7d from now, or an instant."
)
@talks_to_gateway
def resume(session: Session, path: str, reason: str, limits: Sequence[str], until: str | None) -> int:
    """Let a budget go on: take its stop off, and raise limits of it for a while if it needs more.

    A budget that is not stopped but used up takes raised limits, too. They end at --until, at most 31 days ahead,
    without anybody's doing; a resume without --limit ends them at once.
    """
    body: dict[str, Any] = {"path": path, "reason": reason}
    if limits:
        body["limits"] = _limits(limits)
    if until is not None:
        body["until"] = until
    budget = session.gateway.post("/resume", body)
    session.answer(budget, _resumed(budget))
    return exit_codes.OK


def _limits(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return limits as the file nests them; what they may be is the gateway's to say."""
    nested: dict[str, dict[str, Any]] = {}
    for text in given:
        name, equals, maximum = text.partition("=")
        measure, _, window = name.rpartition(".")
        measure = measure or "usd"
        if not equals or not window or not maximum:
            raise click.BadParameter("write it like day=80, or requests.minute=120", param_hint="--limit")
        if nested.setdefault(measure, {}).setdefault(window, _maximum(measure, maximum)) != _maximum(measure, maximum):
            raise click.BadParameter(f"{clean(name)} is given twice", param_hint="--limit")
    return nested


def _maximum(measure: str, text: str) -> Any:
    # Money stays the text that was typed; of the rest a whole number is one.
    return int(text) if measure != "usd" and text.isascii() and text.isdecimal() and len(text) <= 16 else text


def _resumed(budget: Mapping[str, Any]) -> Text:
    temporary = budget["temporary"]
    if temporary is None:
        return Text(f"{clean(budget['path'])} is resumed.")
    raised = ", ".join(limits_of(temporary["limits"]))
    return Text(
        f"{clean(budget['path'])} is resumed, with {clean(raised)} until {when(temporary['until'])}.\n"
        "Then its own limits count again, without anybody's doing."
    )


def _stopped(budget: dict[str, Any]) -> Text:
    stop = budget["stop"]
    if stop is None:
        return Text(f"{clean(budget['path'])} was stopped, and somebody has resumed it since.")
    return Text(
        f"{clean(budget['path'])} is stopped, by {clean(stop['by'])} at {when(stop['at'])}: {clean(stop['reason'])}\n"
        f"To let calls through again:\n  spendgate resume {clean(budget['path'])} --reason TEXT"
    )
