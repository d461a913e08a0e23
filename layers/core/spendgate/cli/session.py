"""What every command that talks to a gateway shares: its options, and its two ways to answer."""

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click
from rich.console import Console, RenderableType

from spendgate.cli.client import Gateway, find_gateway

WIDTH_MIN = 60

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Session:
    """One command's run: where the gateway is, and whether a program or a person reads the answer."""

    url: str | None
    token: str | None
    as_json: bool

    @property
    def gateway(self) -> Gateway:
        """The gateway to talk to; Failed where none is found."""
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


def talks_to_gateway(command: Command) -> Command:
    """Give a command ``--url``, ``--token`` and ``--json``, and a Session as its first argument."""

    @click.option("--url", envvar="SPENDGATE_URL", metavar="URL", help="The gateway. [env: SPENDGATE_URL]")
    @click.option(
        "--token", envvar="SPENDGATE_ADMIN_TOKEN", metavar="TOKEN", help="Its admin token. [env: SPENDGATE_ADMIN_TOKEN]"
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
    @functools.wraps(command)
    def wrapped(*args: Any, url: str | None, token: str | None, as_json: bool, **options: Any) -> Any:
        return command(Session(url or None, token or None, as_json), *args, **options)

    return cast("Command", wrapped)
