"""``secrets``: providers' secrets in AWS Secrets Manager, from which only the gateway's function reads them."""

import json
import re
import sys
from typing import Final

import click

from spendgate.cli import exit_codes
from spendgate.cli.failure import Commands, Interrupted, RefusedByGateway
from spendgate.cli.session import names_stack
from spendgate.cli.stack import StackName, open_stack

# Secrets Manager takes 64 KB; a key of a provider has some hundred characters.
VALUE_LENGTH_MAX: Final = 16_384
_NAME: Final = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}", re.ASCII)


@click.group(
    short_help="Store providers' secrets for a deployed gateway.",
    cls=Commands,
    epilog="Example: spendgate secrets put spendgate/openai --stack spendgate",
)
def secrets() -> None:
    """Store providers' secrets where a deployed gateway, and nobody else, reads them."""


@secrets.command(
    epilog="""\b
Examples:
  spendgate secrets put spendgate/openai --stack spendgate
  pass show openai | spendgate secrets put spendgate/openai --stack spendgate
"""
)
@click.argument("name")
@names_stack
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def put(stack: StackName | None, name: str, *, as_json: bool) -> int:
    """Store a secret in AWS Secrets Manager: asked for without echo, or read from stdin; never shown.

    An existing one gets a new version, which the gateway takes within a minute. NAME begins with the prefix that the
    stack's gateway may read (its output SecretPrefix).
    """
    if stack is None:
        raise click.UsageError(
            "secrets are stored for a stack: name it with --stack; a local gateway takes env:NAME in its configuration"
        )
    from spendgate.store.stack import StackFailed  # noqa: PLC0415 - botocore, which only a stack needs

    aws, found = open_stack(stack)
    try:
        _check_name(name, found.output("SecretPrefix"))
        made = aws.put_secret(name, _value())
    except StackFailed as error:
        raise RefusedByGateway(str(error), code="secret_refused") from error
    reference = f"secretsmanager:{name}"
    if as_json:
        click.echo(json.dumps({"name": name, "created": made, "reference": reference}, indent=2))
    else:
        click.echo(f"Secret {name} is {'stored' if made else 'replaced'}. In the configuration:\n  secret: {reference}")
    return exit_codes.OK


def _check_name(name: str, prefix: str) -> None:
    if not name.startswith(prefix) or name == prefix:
        raise click.BadParameter(
            f"the gateway of this stack reads only names that begin with {prefix}", param_hint="NAME"
        )
    if _NAME.fullmatch(name) is None:
        raise click.BadParameter("letters, digits and /_+=.@- only, at most 512", param_hint="NAME")


def _value() -> str:
    """Return the secret; what was typed is never in an error."""
    if sys.stdin.isatty():
        try:
            value = click.prompt("Secret", hide_input=True, err=True)
        except click.Abort as error:
            raise Interrupted("nothing was stored") from error
    else:
        value = sys.stdin.read(VALUE_LENGTH_MAX + 2)
    value = value.strip()
    if not value or len(value) > VALUE_LENGTH_MAX or not (value.isascii() and value.isprintable()):
        raise click.UsageError(f"a secret is one line of 1 to {VALUE_LENGTH_MAX} printable ASCII characters")
    return str(value)
