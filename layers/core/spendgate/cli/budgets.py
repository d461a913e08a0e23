"""``status``, ``stop`` and ``resume``: the budgets as they stand, and their latch."""

from typing import Any

import click
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.render import clean, when
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
""",
)
@click.argument("path")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is safe again; kept in the trail.")
@talks_to_gateway
def resume(session: Session, path: str, reason: str) -> int:
    """Take the stop off a budget."""
    budget = session.gateway.post("/resume", {"path": path, "reason": reason})
    session.answer(budget, Text(f"{clean(budget['path'])} is resumed."))
    return exit_codes.OK


def _stopped(budget: dict[str, Any]) -> Text:
    stop = budget["stop"]
    if stop is None:
        return Text(f"{clean(budget['path'])} was stopped, and somebody has resumed it since.")
    return Text(
        f"{clean(budget['path'])} is stopped, by {clean(stop['by'])} at {when(stop['at'])}: {clean(stop['reason'])}\n"
        f"To let calls through again:\n  spendgate resume {clean(budget['path'])} --reason TEXT"
    )
