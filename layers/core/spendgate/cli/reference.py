"""docs/cli.md, written from the commands themselves: ``python -m spendgate.cli.reference > docs/cli.md``."""

from collections.abc import Iterator

import click

from spendgate.cli import exit_codes
from spendgate.cli.main import cli

_WIDTH = 80

_BEGINNING = """\
# The command line

This page is written by `python -m spendgate.cli.reference > docs/cli.md`; a test holds it to the commands.

## Finding the gateway

Every command but `local` and `demo` is a client of a gateway's admin API. It takes the first of:

1. `--stack`, a deployed stack, or `--url` and `--token`, which go together;
2. `SPENDGATE_STACK`, or `SPENDGATE_URL` and `SPENDGATE_ADMIN_TOKEN` (better than `--token`, which other users of the
   machine can see);
3. the gateway that `spendgate local` runs in this folder: it leaves its address and token in
   `.spendgate/local.json`, or in the folder that `SPENDGATE_STATE` names.

To a gateway by URL no proxy and no `.netrc` is used.

A stack is found by its outputs in CloudFormation, and called as the AWS identity of `--profile` or of the environment,
as AWS's own tools find it: requests are signed with SigV4. The identity needs `cloudformation:DescribeStacks` on the
stack and `execute-api:Invoke` on the API's `admin` paths. `SPENDGATE_ADMIN_ENDPOINT` is another URL of the admin API
than the stack's output `AdminUrl` (a domain of one's own, an emulator); `AWS_ENDPOINT_URL` is AWS's own variable.

## Output

For people by default: tables, trees and bars that fit 80 columns and can be pasted. Money is exact, never rounded.
With `--json` stdout is one JSON document and nothing else, money in it is an exact decimal string in USD, and
`apply` asks nothing (so it wants `--yes`).

In a bar `█` is settled, `▒` reserved for calls in flight, `?` reserved for calls whose outcome is unknown, `·` free.
What is not nothing has at least one cell.

An error is one line on stderr, `error: ...`; with `--json` it is
`{"error": {"code": ..., "message": ..., "problems": [{"place", "message", "line"}]}}`, `problems` only for a
configuration.

## Exit codes

| code | meaning |
|---|---|
"""


def reference() -> str:
    """Return the page."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in exit_codes.MEANINGS.items())
    return _BEGINNING + codes + "".join(_section(path, text) for path, text in _helps(cli, "spendgate", None))


def _section(path: str, text: str) -> str:
    return f"\n## {path}\n\n```text\n{text}\n```\n"


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH, max_content_width=_WIDTH)
    context.help_option_names = ["-h", "--help"]
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _helps(found, below, context)


if __name__ == "__main__":
    click.echo(reference(), nl=False)
