"""``audit`` and ``events``: proof that the counters are right, and who changed what."""

from collections.abc import Mapping
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.render import clean, limits_of, plain_table, when
from spendgate.cli.session import Session, talks_to_gateway


@click.command(
    short_help="Prove the counters; exit 1 on a difference.",
    epilog="""\b
Examples:
  spendgate audit
  spendgate audit --json || page-somebody
""",
)
@talks_to_gateway
def audit(session: Session) -> int:
    """Recompute every counter of every budget from the reservations; exit 1 on a difference."""
    report = session.gateway.get("/audit")
    session.answer(report, _report(report))
    return exit_codes.OK if report["clean"] else exit_codes.NO


@click.command(
    short_help="List what operators changed, and which runs keys minted.",
    epilog="""\b
Examples:
  spendgate events --limit 20
  spendgate events --by operators
""",
)
@click.option(
    "--by",
    type=click.Choice(["operators", "keys"]),
    help="Only what operators did, or only keys that minted or ended runs.",
)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, metavar="N", help="At most so many."
)
@talks_to_gateway
def events(session: Session, limit: int, by: str | None) -> int:
    """List what operators changed and which runs keys have minted or ended, the newest first: when, who, what, and why."""
    found = session.gateway.get("/events", limit=limit, by=by)
    table = plain_table("when", "by", "what", "why", whole=("when",))
    for event in found["events"]:
        # The kind says already that it is a key, a route or a provider.
        subject = event["subject"].removeprefix(f"{event['kind'].partition('_')[0]}:")
        what = f"{event['kind'].replace('_', ' ')} {clean(subject)}"
        after = event["after"] or {}
        if "limits" in after and "until" in after:
            what += f" to {clean(', '.join(limits_of(after['limits'])))} until {when(after['until'])}"
        table.add_row(when(event["at"]), clean(event["by"]), what, clean(event["reason"] or ""))
    session.answer(found, table if found["events"] else Text("Nothing was changed yet."))
    return exit_codes.OK


def _report(report: Mapping[str, Any]) -> Group | Text:
    compared = f"{_count(report['budgets'], 'budget')} against {_count(report['reservations'], 'reservation')}"
    if report["clean"]:
        return Text(f"Clean: {compared}, no difference.")
    table = plain_table("budget", "counter", "expected", "found", right=("expected", "found"))
    for one in report["differences"]:
        table.add_row(clean(one["budget"]), clean(one["counter"]), one["expected"], one["found"])
    differences = _count(len(report["differences"]), "difference")
    return Group(table, Text(), Text(f"NOT clean: {compared}, {differences}.", style="bold red"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
