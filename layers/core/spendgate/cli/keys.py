"""``keys``: make, list and revoke virtual keys."""

import click
from rich.console import Group
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.client import segment
from spendgate.cli.failure import Commands
from spendgate.cli.render import clean, day, plain_table
from spendgate.cli.session import Session, talks_to_gateway


@click.group(short_help="Make, list and revoke keys.", cls=Commands)
def keys() -> None:
    """Make, list and revoke the keys that agents call with."""


@keys.command(
    epilog="""\b
Examples:
  spendgate keys create triage-prod --budget acme/search/triage
  spendgate keys create triage-ci --budget acme/search/triage \\
      --model agent-model --expires 2027-01-01
"""
)
@click.argument("name")
@click.option("--budget", required=True, metavar="PATH", help="The budget that its calls count on.")
@click.option(
    "--model", "models", multiple=True, metavar="ROUTE", help="A route that it may ask for; default: every one."
)
@click.option("--expires", metavar="DATE", help="When it ends: 2027-01-01 (its start, in UTC) or 2027-01-01T18:00:00Z.")
@talks_to_gateway
def create(session: Session, name: str, budget: str, models: tuple[str, ...], expires: str | None) -> int:
    """Make a key and show its secret, this once: only a hash is stored."""
    body = {"name": name, "budget": budget, "models": list(models), "expires_at": expires}
    made = session.gateway.post("/keys", {field: value for field, value in body.items() if value is not None})
    key = made["key"]
    may = ", ".join(clean(model) for model in key["models"]) or "every route"
    ends = f", until {day(key['expires_at'])}" if key["expires_at"] else ""
    session.answer(
        made,
        Text(f"Key {clean(key['name'])} for {clean(key['budget'])}: {may}{ends}. Shown this once:\n"),
        Text(f"  export SPENDGATE_KEY={made['secret']}", no_wrap=True, overflow="ignore"),
    )
    return exit_codes.OK


@keys.command("list", epilog="Example: spendgate keys list")
@talks_to_gateway
def list_keys(session: Session) -> int:
    """List all keys, the revoked ones too; never a secret."""
    found = session.gateway.get("/keys")
    table = plain_table("key", "budget", "models", "expires", "state", whole=("expires", "state"))
    for key in found["keys"]:
        models = ", ".join(clean(model) for model in key["models"]) or "every route"
        state = f"revoked {day(key['revoked_at']).split()[0]}" if key["revoked_at"] else key["state"]
        table.add_row(clean(key["name"]), clean(key["budget"]), models, day(key["expires_at"]) or "never", state)
    session.answer(found, table if found["keys"] else Group(Text("No keys yet.")))
    return exit_codes.OK


@keys.command(epilog="Example: spendgate keys revoke triage-prod")
@click.argument("name")
@talks_to_gateway
def revoke(session: Session, name: str) -> int:
    """Revoke a key, from the next call on. There is no way back: make a new one."""
    revoked = session.gateway.post(f"/keys/{segment(name)}/revoke", {})
    session.answer(revoked, Text(f"Key {clean(name)} is revoked."))
    return exit_codes.OK
