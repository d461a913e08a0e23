"""``reservations`` and ``reconcile``: the record of every call, and ending those that did not end by themselves."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import click
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.client import segment
from spendgate.cli.failure import Commands
from spendgate.cli.render import clean, pairs_table, plain_table, since, when
from spendgate.cli.session import Session, talks_to_gateway
from spendgate.core.reservation import STATES


@click.group(cls=Commands, short_help="Look at the record of every call.")
def reservations() -> None:
    """Look at the record of every call and of the money held for it."""


@reservations.command(
    "list",
    epilog="""\b
Examples:
  spendgate reservations list --state unknown
  spendgate reservations list --budget acme/search --limit 200 --json
""",
)
@click.option("--budget", metavar="PATH", help="Only of this budget and all below it.")
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, metavar="N", help="At most so many."
)
@talks_to_gateway
def list_reservations(session: Session, budget: str | None, state: str | None, limit: int) -> int:
    """List reservations, the newest first."""
    found = session.gateway.get("/reservations", budget=budget, state=state, limit=limit)
    now = datetime.now(UTC).isoformat()
    table = plain_table("reservation", "age", "state", "budget", "money", whole=("reservation", "age", "state"))
    for one in found["reservations"]:
        age = since(one["created_at"], now).split()[0]
        table.add_row(one["id"], age, one["state"], clean(one["budget"]), _money(one))
    session.answer(found, table if found["reservations"] else Text("No reservations."))
    return exit_codes.OK


@reservations.command("show", epilog="Example: spendgate reservations show 01K9ZJ4Q0XWJ7V7D3B1T5N8M2C")
@click.argument("reservation_id", metavar="ID")
@talks_to_gateway
def show(session: Session, reservation_id: str) -> int:
    """Show one reservation: what was held, what it came to, who served it, how it ended."""
    one = session.gateway.get(f"/reservations/{segment(reservation_id)}")
    session.answer(one, pairs_table(_rows(one)))
    return exit_codes.OK


@click.group(
    short_help="End a reservation by hand, with evidence.",
    cls=Commands,
    epilog="""\b
Which one:
  settle    the provider's bill or log shows what the call cost
  release   it is proven that the provider did not bill the call
  charge    nobody can say: book all that was reserved
  ask       let the provider say, where it can: OpenAI's responses, OpenRouter
""",
)
def reconcile() -> None:
    """End a reservation that did not end by itself, with evidence that is kept."""


evidence_option = click.option(
    "--evidence", required=True, metavar="TEXT", help="Where it can be seen: a bill, a log line, a ticket."
)
id_argument = click.argument("reservation_id", metavar="ID")


@reconcile.command(
    epilog="""\b
Example:
  spendgate reconcile settle 01K9ZJ4Q0XWJ7V7D3B1T5N8M2C --cost 0.0125 \\
      --evidence "usage page, 14:02, request req_8"
"""
)
@id_argument
@click.option("--cost", required=True, metavar="USD", help="What the call cost, exactly, such as 0.0125.")
@evidence_option
@talks_to_gateway
def settle(session: Session, reservation_id: str, cost: str, evidence: str) -> int:
    """Book what a call cost; the rest of what was held is free again.

    More than was held is booked as it is, and stops the budget: a bound was wrong.
    """
    return _reconcile(session, reservation_id, "settle", evidence, cost=cost)


@reconcile.command(
    epilog="""\b
Example:
  spendgate reconcile release 01K9ZJ4Q0XWJ7V7D3B1T5N8M2C \\
      --evidence "not on the usage page after 24 h, ticket 311"
"""
)
@id_argument
@evidence_option
@talks_to_gateway
def release(session: Session, reservation_id: str, evidence: str) -> int:
    """Free all that was held: it is proven that the provider did not bill the call."""
    return _reconcile(session, reservation_id, "release", evidence)


@reconcile.command(
    epilog="""\b
Example:
  spendgate reconcile charge 01K9ZJ4Q0XWJ7V7D3B1T5N8M2C \\
      --evidence "the provider has no record by request"
"""
)
@id_argument
@evidence_option
@talks_to_gateway
def charge(session: Session, reservation_id: str, evidence: str) -> int:
    """Book all that was held: nobody can say what the call cost."""
    return _reconcile(session, reservation_id, "charge", evidence)


@reconcile.command(epilog="Example: spendgate reconcile ask 01K9ZJ4Q0XWJ7V7D3B1T5N8M2C")
@id_argument
@talks_to_gateway
def ask(session: Session, reservation_id: str) -> int:
    """Ask the provider what the call cost, and book that if its own record proves it.

    Only where the provider keeps such a record by the answer's id: OpenAI's responses, and OpenRouter. Where it proves
    nothing, nothing is changed, and the exit code is 1.
    """
    done = session.gateway.post(f"/reservations/{segment(reservation_id)}/reconcile", {"action": "ask"})
    if done["unproven"] is None:
        session.answer(done, *_told(done))
        return exit_codes.OK
    told = Text(f"Nothing is proven, and nothing was changed: {clean(done['unproven'])}.")
    session.answer(done, told)
    return exit_codes.NO


def _reconcile(session: Session, reservation_id: str, action: str, evidence: str, *, cost: str | None = None) -> int:
    body = {"action": action, "evidence": evidence, **({} if cost is None else {"cost": cost})}
    done = session.gateway.post(f"/reservations/{segment(reservation_id)}/reconcile", body)
    session.answer(done, *_told(done))
    return exit_codes.OK


def _told(done: Mapping[str, Any]) -> Iterator[Text]:
    one = done["reservation"]
    held = one["reserved"]["usd"]
    yield Text(f"{one['id']} is {one['state']}: {_money(one)} of ${held} that were held, on {clean(one['budget'])}.")
    if done["exceeds_reserved"]:
        yield Text(
            "That is more than was held: it is booked as it is, and the budget is stopped. To let calls through:"
        )
        yield Text(f"  spendgate resume {clean(one['budget'])} --reason TEXT", no_wrap=True, overflow="ignore")


def _money(one: Mapping[str, Any]) -> str:
    return f"${one['reserved']['usd']} held" if one["actual"] is None else f"${one['actual']['usd']}"


def _rows(one: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "reservation", one["id"]
    yield "state", one["state"]
    yield "budget", one["budget"]
    yield "key", one["key"]
    yield "asked for", f"{one['route']} ({one['dialect']})"
    if one["provider"] is not None:
        yield "served by", f"{one['provider']}/{one['model']}"
    yield "answered as", one["response_model"]
    yield "provider's id", one["response_id"]
    yield "reserved", _amounts(one["reserved"])
    if one["actual"] is not None:
        yield "actual", _amounts(one["actual"])
    if one["usage"]:
        yield "usage", ", ".join(f"{name} {count}" for name, count in one["usage"].items())
    yield "output cap", f"{one['output_cap']}{' (set by the gateway)' if one['output_cap_stamped'] else ''}"
    yield "prices", ", ".join(one["prices"])
    yield "created", when(one["created_at"])
    yield "deadline", when(one["deadline"])
    yield "resolved", when(one["resolved_at"])
    yield "because", one["reason"]
    yield "evidence", one["evidence"]
    yield "by", one["by"]
    yield "idempotency key", one["idempotency_key"]


def _amounts(amounts: Mapping[str, str]) -> str:
    counts = [f"{name.replace('_', ' ')} {text}" for name, text in amounts.items() if name != "usd" and text != "0"]
    return ", ".join([f"${amounts['usd']}", *counts])
