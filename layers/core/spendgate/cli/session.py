"""What every command that talks to a gateway shares: its options, and its two ways to answer."""

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource
from rich.console import Console, RenderableType

from spendgate.cli.client import Gateway, find_gateway
from spendgate.cli.stack import StackName, stack_gateway

WIDTH_MIN = 60

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Session:
    """One command's run: where the gateway is, and whether a program or a person reads the answer."""

    url: str | None
    token: str | None
    as_json: bool
    stack: StackName | None = None

    @property
    def gateway(self) -> Gateway:
        """The gateway to talk to; Failed where none is found."""
        if self.stack is not None:
            return stack_gateway(self.stack, os.environ)
        return find_gateway(self.url, self.token, os.environ)

    def answer(self, document: dict[str, Any], *shown: RenderableType) -> None:
        """Print the document as JSON, or what a person is shown."""
        if self.as_json:
            click.echo(json.dumps(document, indent=2, ensure_ascii=False))
            return
        show(*shown)


def show(*parts: RenderableType) -> None:
    """Print for people."""
    console = console_for_people()
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    # Tables pad every line to their width; whoever pastes the output does not want that.
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def console_for_people() -> Console:
    """Return a console on stdout that prints text as it is: no markup in what others wrote, no emoji codes."""
    console = Console(markup=False, highlight=False, emoji=False, soft_wrap=False)
    console.width = max(console.width, WIDTH_MIN)
    return console


def names_stack(command: Command) -> Command:
    """Give a command ``--stack``, ``--region`` and ``--profile``, and a StackName or None as ``stack``."""

    @click.option("--stack", envvar="SPENDGATE_STACK", metavar="NAME", help="The stack in AWS. [env: SPENDGATE_STACK]")
    @click.option("--region", envvar="AWS_REGION", metavar="NAME", help="Its region. [env: AWS_REGION]")
    @click.option("--profile", metavar="NAME", help="As whom. [env: AWS_PROFILE]")
    @functools.wraps(command)
    def wrapped(*args: Any, stack: str | None, region: str | None, profile: str | None, **options: Any) -> Any:
        named = StackName(name=stack, region=region or None, profile=profile or None) if stack else None
        return command(*args, stack=named, **options)

    return cast("Command", wrapped)


def talks_to_gateway(command: Command) -> Command:
    """Give a command the options that find a gateway, and ``--json``; and a Session as its first argument."""

    @click.option("--url", envvar="SPENDGATE_URL", metavar="URL", help="The gateway. [env: SPENDGATE_URL]")
    @click.option(
        "--token", envvar="SPENDGATE_ADMIN_TOKEN", metavar="TOKEN", help="Its admin token. [env: SPENDGATE_ADMIN_TOKEN]"
    )
    @names_stack
    @click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
    @functools.wraps(command)
    def wrapped(
        *args: Any, url: str | None, token: str | None, as_json: bool, stack: StackName | None, **options: Any
    ) -> Any:
        if stack is not None and (url or token):
            stack, url, token = _one_of(stack, url, token)
        return command(Session(url or None, token or None, as_json, stack), *args, **options)

    return cast("Command", wrapped)


def _one_of(stack: StackName, url: str | None, token: str | None) -> tuple[StackName | None, str | None, str | None]:
    """Return the one that the command line names, where the environment names the other."""
    source = click.get_current_context().get_parameter_source
    by_stack = source("stack") is ParameterSource.COMMANDLINE
    by_url = ParameterSource.COMMANDLINE in (source("url"), source("token"))
    if by_stack == by_url:
        raise click.UsageError("a stack and a URL are both named (SPENDGATE_STACK, SPENDGATE_URL): name one of them")
    return (stack, None, None) if by_stack else (None, url, token)
