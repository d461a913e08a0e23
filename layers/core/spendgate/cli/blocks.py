"""``blocks``: what a broken bound has blocked, and how a person lifts it."""

import click
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.failure import Commands
from spendgate.cli.render import clean, plain_table, when
from spendgate.cli.session import Session, talks_to_gateway


@click.group(
    short_help="See and lift what a broken bound has blocked.",
    cls=Commands,
    epilog="Example: spendgate blocks list",
)
def blocks() -> None:
    """See what was billed above its bound and is refused since, and let it through again."""


@blocks.command("list", epilog="Example: spendgate blocks list")
@talks_to_gateway
def list_blocks(session: Session) -> int:
    """List what is blocked, and the first call that was billed above its bound."""
    found = session.gateway.get("/blocks")
    table = plain_table(
        "provider", "model", "feature", "since", "reserved", "billed", "reservation",
        right=("reserved", "billed"), whole=("since", "reserved", "billed", "reservation"),
    )  # fmt: skip
    for one in found["blocks"]:
        names = [clean(one[name]) for name in ("provider", "model", "feature")]
        table.add_row(*names, when(one["at"]), one["reserved"], one["billed"], clean(one["reservation"]))
    session.answer(found, table if found["blocks"] else Text("Nothing is blocked: no bill was above its bound."))
    return exit_codes.OK


@blocks.command(
    short_help="Let what was blocked through again.",
    epilog="""\b
Examples:
  spendgate blocks lift openai gpt-4o image \\
      --reason "the price row has the new image rate now"
""",
)
@click.argument("provider")
@click.argument("model")
@click.argument("feature")
@click.option("--reason", required=True, metavar="TEXT", help="Why the bound holds again; kept in the trail.")
@talks_to_gateway
def lift(session: Session, provider: str, model: str, feature: str, reason: str) -> int:
    """Let a feature of a model at a provider through again; gateways notice within a minute."""
    body = {"provider": provider, "model": model, "feature": feature, "reason": reason}
    done = session.gateway.post("/blocks/lift", body)
    one = done["lifted"]
    told = f"{clean(one['feature'])} of {clean(one['model'])} at {clean(one['provider'])} is let through again."
    session.answer(done, Text(told))
    return exit_codes.OK
