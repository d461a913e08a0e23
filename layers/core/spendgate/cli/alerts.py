"""``alerts``: what people were told of, and a test of whether it arrives."""

import click
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.failure import Commands
from spendgate.cli.render import clean, plain_table, when
from spendgate.cli.session import Session, talks_to_gateway


@click.group(
    short_help="See what people were told, and test that it arrives.",
    cls=Commands,
    epilog="Example: spendgate alerts list",
)
def alerts() -> None:
    """See which alerts were sent, and send one of each kind as a test."""


@alerts.command("list", epilog="Example: spendgate alerts list --limit 20")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, metavar="N", help="At most so many."
)
@talks_to_gateway
def list_alerts(session: Session, limit: int) -> int:
    """List the alerts of the last seven days, the newest first, and before them those that wait to be sent."""
    found = session.gateway.get("/alerts", limit=limit)
    table = plain_table("sent", "severity", "what", whole=("sent", "severity"))
    for one in found["waiting"]:
        table.add_row("waits", clean(one["severity"]), clean(one["subject"]))
    for one in found["alerts"]:
        table.add_row(when(one["told_at"]), clean(one["severity"]), clean(one["subject"]))
    some = found["waiting"] or found["alerts"]
    session.answer(found, table if some else Text("Nobody was told of anything in the last seven days."))
    return exit_codes.OK


@alerts.command("test", epilog="Example: spendgate alerts test")
@talks_to_gateway
def send_test(session: Session) -> int:
    """Send one made-up alert of each kind, marked as a test, to see where alerts arrive."""
    done = session.gateway.post("/alerts/test", {})
    told = f"{done['published']} test alerts were sent."
    if done["failed"]:
        told = f"{told} {done['failed']} were not taken: the log of the alerts function says why."
    session.answer(done, Text(told))
    return exit_codes.NO if done["failed"] else exit_codes.OK
