"""``plan`` and ``apply``: what a configuration file would change, and changing it."""

from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

import click
from rich.console import Group
from rich.table import Table
from rich.text import Text

from spendgate.cli import exit_codes
from spendgate.cli.client import Gateway
from spendgate.cli.failure import Interrupted, RefusedByGateway
from spendgate.cli.render import clean, plain_table
from spendgate.cli.session import Session, show, talks_to_gateway

FILE_BYTES_MAX: Final = 512 * 1024
MARKS: Final = {"create": "+", "update": "~", "revoke": "-", "delete": "-", "kept": "!", "keep": "="}
_STYLES: Final = {"+": "green", "~": "yellow", "-": "red", "!": "bold", "=": "dim"}
_KINDS: Final = ("budget", "price", "catalogue", "provider", "route", "key", "alerts")

file_option = click.option(
    "-f",
    "--file",
    "file",
    type=click.File("rb"),
    required=True,
    metavar="FILE",
    help="The configuration; - reads stdin.",
)


@click.command(
    short_help="Show what a file would change.",
    epilog="""\b
Examples:
  spendgate plan -f spendgate.yaml
  spendgate plan -f spendgate.yaml --check    exit 1 if anything would change
""",
)
@file_option
@click.option("--check", is_flag=True, help="Exit 1 if anything would change.")
@talks_to_gateway
def plan(session: Session, file: IO[bytes], *, check: bool) -> int:
    """Show what applying a configuration file would change; change nothing."""
    planned = _plan(session.gateway, text_of(file))
    session.answer(planned, _shown(planned))
    return exit_codes.NO if check and planned["writes"] else exit_codes.OK


@click.command(
    short_help="Show the plan of a file, then apply it.",
    epilog="""\b
Examples:
  spendgate apply -f spendgate.yaml           show the plan, ask, apply
  spendgate apply -f spendgate.yaml --yes     for scripts
""",
)
@file_option
@click.option("--yes", is_flag=True, help="Apply without asking.")
@talks_to_gateway
def apply(session: Session, file: IO[bytes], *, yes: bool) -> int:
    """Show the plan of a configuration file and apply exactly that plan.

    New keys are shown this once: only their hashes are stored. Budgets are never deleted and price rows never
    overwritten. What others changed since the plan was made ends the command before anything is written.
    """
    if session.as_json and not yes:
        raise click.UsageError("--json asks no question: add --yes")
    text, gateway = text_of(file), session.gateway
    planned = _plan(gateway, text)
    if not session.as_json:
        show(_shown(planned))
    if planned["writes"] and not yes and not _confirmed():
        click.echo("Nothing was changed.", err=True)
        return exit_codes.NO
    if not planned["writes"] and not session.as_json:
        return exit_codes.OK
    applied = gateway.post("/apply", {"file": text, "plan_id": planned["plan_id"]})
    session.answer(applied, Group(*_outcome(applied)))
    if not applied["complete"]:
        message = f"applying ended early: {applied['failure']}; run it again to finish"
        raise RefusedByGateway(message, code="apply_incomplete")
    return exit_codes.OK


def _confirmed() -> bool:
    try:
        return click.confirm("\nApply this?", default=False, err=True)
    except click.Abort as error:
        raise Interrupted("nothing was changed: there was no answer (--yes applies without asking)") from error


def text_of(file: IO[bytes]) -> str:
    raw = file.read(FILE_BYTES_MAX + 1)
    if len(raw) > FILE_BYTES_MAX:
        raise click.BadParameter(f"{file.name} has more than {FILE_BYTES_MAX} bytes", param_hint="--file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{file.name} is not UTF-8 text", param_hint="--file") from error


def _plan(gateway: Gateway, text: str) -> dict[str, Any]:
    return gateway.post("/plan", {"file": text})


def _shown(planned: Mapping[str, Any]) -> Group:
    return Group(_table(planned["changes"]), *_warnings(planned), Text(), _summary(planned))


def _table(changes: list[Mapping[str, Any]]) -> Table:
    table = plain_table(" ", "kind", "name", "change")
    for change in changes:
        if change["action"] == "keep":
            continue
        mark = MARKS[change["action"]]
        style = _STYLES[mark]
        details = "\n".join(_details(change))
        table.add_row(Text(mark, style=style), change["kind"], clean(change["name"]), Text(details))
    for kind in _KINDS:
        names = [clean(change["name"]) for change in changes if change["kind"] == kind and change["action"] == "keep"]
        if names:
            table.add_row(
                Text("=", style=_STYLES["="]), kind, Text(", ".join(names), style="dim"), Text("as it is", style="dim")
            )
    return table


def _details(change: Mapping[str, Any]) -> Iterator[str]:
    before, after = flat(change["before"]), flat(change["after"])
    match change["action"]:
        case "create":
            yield from ([f"{name} {value}" for name, value in after.items()] or ["no limits of its own"])
        case "update":
            for name in dict.fromkeys([*before, *after]):
                if before.get(name) != after.get(name):
                    yield _difference(name, before.get(name), after.get(name))
        case "revoke":
            yield "revoked"
        case "delete":
            yield "deleted"
        case _:
            yield f"kept: {clean(change['note'])}"
            return
    if change["note"]:
        yield f"({clean(change['note'])})"


def _difference(name: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"+ {name} {after}"
    return f"- {name} {before}" if after is None else f"{name} {before} → {after}"


def flat(view: Mapping[str, Any] | None, prefix: str = "") -> dict[str, str]:
    """Return a nested view as dotted names and printable values; ``limits.`` goes without saying."""
    found: dict[str, str] = {}
    for name, value in (view or {}).items():
        dotted = name if name == "limits" and not prefix else f"{prefix}{name}"
        if isinstance(value, dict):
            found.update(flat(value, "" if dotted == "limits" else f"{dotted}."))
        elif isinstance(value, list):
            found[dotted] = ", ".join(_item(one) for one in value)
        else:
            found[dotted] = clean(value).removesuffix("T00:00:00Z")
    return found


def _item(value: Any) -> str:
    if not isinstance(value, dict):
        return clean(value)
    if value.keys() == {"provider", "model"}:
        return f"{clean(value['provider'])}/{clean(value['model'])}"
    return "{" + ", ".join(f"{name} {clean(one)}" for name, one in value.items()) + "}"


def _warnings(planned: Mapping[str, Any]) -> Iterator[Text]:
    for warning in planned["warnings"]:
        yield Text(f"warning: {clean(warning)}", style="yellow")


def _summary(planned: Mapping[str, Any]) -> Text:
    counts = {action: sum(one["action"] == action for one in planned["changes"]) for action in MARKS}
    if not planned["writes"]:
        return Text("Nothing to change: the gateway is as the file says.")
    words = {"create": "to add", "update": "to change", "revoke": "to revoke", "delete": "to delete"}
    return Text("Plan: " + ", ".join(f"{counts[action]} {word}" for action, word in words.items() if counts[action]))


def _outcome(applied: Mapping[str, Any]) -> Iterator[Text]:
    if applied["complete"]:
        yield Text("\nApplied.")
    if applied["keys"]:
        yield Text("\nNew keys, shown this once (only a hash is stored):\n")
    for name, secret in applied["keys"].items():
        # Nothing else on the secret's line, and never wrapped: it is there to be copied.
        yield Text(f"  {name}\n  export SPENDGATE_KEY={secret}\n", no_wrap=True, overflow="ignore")
