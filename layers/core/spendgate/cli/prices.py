"""``prices``: what models cost and since when, what has no price, and new rows."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any, Final

import click
from rich.console import Group
from rich.table import Table
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.configuration import flat, text_of
from spendgate.cli.failure import Commands
from spendgate.cli.render import clean, day, pairs_table, plain_table, when
from spendgate.cli.session import Session, talks_to_gateway

_STATES: Final = {"in_force": "in force", "coming": "coming", "past": "past", "not_loaded": "not loaded"}
_ALWAYS: Final = "1970-01-01"
# What `add` has an option for: the option's name, and what is told of it.
_RATES: Final = {
    "input": "USD per million input tokens.",
    "output": "USD per million output tokens.",
    "cache_read": "The same, for input from the cache. [default: as input]",
    "cache_write": "The same, for writing to the cache. [default: as input]",
    "cache_write_long": "The same, for the long lifetime. [default: twice the input]",
}


@click.group(
    short_help="See, check and add prices.",
    cls=Commands,
    epilog="Example: spendgate prices check",
)
def prices() -> None:
    """See what models cost and since when, find what has no price, and add prices."""


@prices.command(
    "list",
    epilog="""\b
Examples:
  spendgate prices list
  spendgate prices list openai
  spendgate prices list --all --json
""",
)
@click.argument("provider", required=False)
@click.option("--all", "everything", is_flag=True, help="Every row, not only what routes can reach.")
@talks_to_gateway
def list_prices(session: Session, provider: str | None, *, everything: bool) -> int:
    """List prices in force and to come, in USD per million tokens.

    Without a provider only of what routes can reach. A row is `shipped`, `changed` (stored with another price than
    the shipped row says) or your `own`.
    """
    query = {} if provider is None else {"provider": provider}
    found = session.gateway.get("/prices", **query)
    if provider is None and not everything:
        found = {**found, "prices": [row for row in found["prices"] if row["routes"]]}
    current = [row for row in found["prices"] if row["state"] != "past"]
    hint = "No prices yet." if everything or provider else "No route reaches a price yet: --all lists every row."
    session.answer(found, _table(current) if current else Text(hint))
    return exit_codes.OK


@prices.command(epilog="Example: spendgate prices show openai gpt-5.6-sol")
@click.argument("provider")
@click.argument("model")
@talks_to_gateway
def show(session: Session, provider: str, model: str) -> int:
    """Show every row of a model, old and coming, beside what the shipped row says."""
    found = session.gateway.get("/prices", provider=provider, model=model)
    parts = [part for row in found["prices"] for part in (_row(row), Text())]
    session.answer(found, Group(*parts[:-1]))
    return exit_codes.OK


@prices.command(
    short_help="Find what has no price; exit 1 if anything.",
    epilog="""\b
Examples:
  spendgate prices check
  spendgate prices check --json || page-somebody
""",
)
@talks_to_gateway
def check(session: Session) -> int:
    """Find route candidates without a price and shipped prices not checked for 45 days; exit 1 if there are any."""
    report = session.gateway.get("/prices/check")
    session.answer(report, *_report(report))
    return exit_codes.OK if report["clean"] else exit_codes.NO


@prices.command(short_help="Show what of the shipped prices is stored.", epilog="Example: spendgate prices catalogue")
@talks_to_gateway
def catalogue(session: Session) -> int:
    """Show how many of the configured providers' shipped prices are stored, how old they are, and the last load."""
    state = session.gateway.get("/catalogue")
    session.answer(state, pairs_table(_catalogue(state)))
    return exit_codes.OK


def _catalogue(state: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "stored", f"{state['rows']} price rows"
    yield "shipped", f"{state['shipped']}, of which {state['missing']} missing and {state['changed']} changed here"
    yield "checked", f"{state['oldest_check'] or 'never'} to {state['newest_check'] or 'never'}"
    yield "stale", f"{state['stale']} not checked for {state['fresh_days']} days"
    last = state["last_load"]
    yield "last load", None if last is None else f"{last['rows']} rows, {when(last['at'])}, by {clean(last['by'])}"


def _rate_options(command: Any) -> Any:
    for name, told in reversed(_RATES.items()):
        command = click.option(f"--{name.replace('_', '-')}", name, metavar="USD", help=told)(command)
    return command


@prices.command(
    short_help="Add a price; never over an old one.",
    epilog="""\b
Examples:
  spendgate prices add openai house-model --input 2.50 --output 10
  spendgate prices add openai gpt-4o --input 3 --output 12 \\
      --from 2027-01-01
  spendgate prices add -f rows.yaml
""",
)
@click.argument("provider", required=False)
@click.argument("model", required=False)
@_rate_options
@click.option("--context-tokens", type=click.IntRange(1), metavar="N", help="The most tokens that it can read.")
@click.option("--output-tokens-max", type=click.IntRange(1), metavar="N", help="The most tokens that it can put out.")
@click.option("--from", "start", metavar="DATE", help="When it begins: 2027-01-01 (UTC) or an instant. [default: now]")
@click.option("--source", metavar="TEXT", help="Where the price was read.")
@click.option("-f", "--file", type=click.File("rb"), metavar="FILE", help="Rows under `prices:`; - reads stdin.")
@talks_to_gateway
def add(
    session: Session,
    provider: str | None,
    model: str | None,
    *,
    start: str | None,
    file: IO[bytes] | None,
    **given: Any,
) -> int:
    """Add a price row of a model, or the rows of a file in the syntax of `prices:`.

    A row is never overwritten: what exists and says the same is kept, and what says something else is refused.
    """
    fields = {name: value for name, value in given.items() if value is not None}
    if file is not None:
        if provider or start or fields:
            raise click.UsageError("--file says it all: leave provider, model and options out")
        text = text_of(file)
    else:
        if not (provider and model and "input" in fields and "output" in fields):
            raise click.UsageError("say PROVIDER MODEL --input USD --output USD, or -f FILE")
        begins = start or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        text = json.dumps({"prices": [{"provider": provider, "model": model, "from": begins, **fields}]})
    done = session.gateway.post("/prices", {"file": text})
    session.answer(done, *_told(done))
    return exit_codes.OK


def _table(rows: Iterable[Mapping[str, Any]]) -> Table:
    table = plain_table(
        "model", "since", "input", "output", "read", "write", "row",
        right=("input", "output", "read", "write"), whole=("since", "input", "output", "read", "write", "row"),
    )  # fmt: skip
    for row in rows:
        price = row["price"]
        numbers = [clean(price[name]) for name in ("input", "output", "cache_read", "cache_write")]
        table.add_row(f"{clean(row['provider'])}/{clean(row['model'])}", _since(price), *numbers, row["origin"])
    return table


def _row(row: Mapping[str, Any]) -> Group:
    price, shipped = row["price"] or row["shipped"], row["shipped"]
    head = f"{clean(row['provider'])}/{clean(row['model'])} since {_since(price)}: {_STATES[row['state']]}, {row['origin']}"
    told, other = flat(price), flat(shipped)
    pairs: list[tuple[str, Any]] = []
    for name in dict.fromkeys([*told, *(other if row["origin"] == "changed" else ())]):
        if name == "from":
            continue
        differs = row["origin"] == "changed" and name != "aliases" and told.get(name) != other.get(name)
        beside = f"   (shipped: {other.get(name, 'none')})" if differs else ""
        pairs.append((name, f"{told.get(name, 'none')}{beside}"))
    pairs += [("routes", ", ".join(row["routes"])), ("source", row["source"]), ("checked", row["checked"])]
    return Group(Text(head, style="bold"), pairs_table(pairs))


def _since(price: Mapping[str, Any]) -> str:
    start = day(price["from"])
    return "always" if start == _ALWAYS else start


def _report(report: Mapping[str, Any]) -> Iterator[Text | Table]:
    table = plain_table(
        "provider", "rows", "models", "oldest check", "newest check", "no source",
        right=("rows", "models", "no source"),
    )  # fmt: skip
    for one in report["providers"]:
        checks = [one["oldest_check"] or "never", one["newest_check"] or "never"]
        counts = [str(one["rows"]), str(one["models_priced"])]
        table.add_row(clean(one["provider"]), *counts, *checks, str(one["without_source"]))
    if report["providers"]:
        yield table
        yield Text()
    for one in report["unpriced"]:
        yield Text(clean(one["problem"]), style="bold red")
    for one in report["stale"]:
        looked = f"last checked {clean(one['checked'])}, more than {one['fresh_days']} days ago"
        yield Text(f"{clean(one['id'])}: {looked if one['checked'] else 'never checked'}")
    if report["clean"]:
        yield Text(f"Clean: {report['rows']} price rows, every candidate of a route is priced, none is stale.")
    else:
        yield Text(f"NOT clean: {len(report['unpriced'])} unpriced, {len(report['stale'])} stale.", style="bold red")


def _told(done: Mapping[str, Any]) -> Iterator[Text]:
    for row in done["added"]:
        yield Text(f"Added {clean(row['provider'])}/{clean(row['model'])} since {_since(row)}.")
    for name in done["kept"]:
        yield Text(f"{clean(name)} is as it was.")
