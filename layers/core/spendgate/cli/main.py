"""The command line: operators' commands, and the gateway on one's own machine."""

from pathlib import Path

import click

from spendgate import __version__
from spendgate.cli import (
    alerts,
    blocks,
    budgets,
    configuration,
    conformance,
    keys,
    prices,
    report,
    reservations,
    secrets,
    trail,
)
from spendgate.cli.failure import Commands, failing_locally
from spendgate.cli.session import console_for_people


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="""\b
Start here:
  spendgate demo          a runaway agent meets its budget
  spendgate local         the whole gateway on this machine
  spendgate status        what is spent, held and free
""",
)
@click.version_option(__version__, prog_name="spendgate")
def cli() -> None:
    """Hard budgets for LLM agents: the call that would break one is refused before it leaves.

    Commands find the gateway by --stack in an AWS account, by --url and --token, by the environment
    (SPENDGATE_STACK, or SPENDGATE_URL and SPENDGATE_ADMIN_TOKEN), or else talk to the one that `spendgate local` runs
    in this folder.
    """


@cli.command(
    short_help="Run the whole gateway on this machine.",
    epilog="""\b
Examples:
  spendgate local
  spendgate local --config spendgate.yaml --port 8080
""",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A spendgate.yaml; default: a built-in one with a demo provider.",
)
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="[default: 8787, or a free one]")
@click.option(
    "--state",
    "state_dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where budgets and reservations are kept. [default: .spendgate; env: SPENDGATE_STATE]",
)
@click.option("--ephemeral", is_flag=True, help="Keep nothing after the end.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON when ready: urls, admin token, keys.")
@click.pass_context
def local(
    context: click.Context,
    config: Path | None,
    port: int | None,
    state_dir: Path | None,
    *,
    ephemeral: bool,
    as_json: bool,
) -> None:
    """Run the whole gateway on this machine, on loopback, until Ctrl-C."""
    # Imported here: what runs a gateway is much, and no other command needs it.
    from spendgate.local.server import run_local  # noqa: PLC0415

    with failing_locally():
        context.exit(run_local(config, port, state_dir, ephemeral=ephemeral, as_json=as_json))


@cli.command(
    short_help="Watch a runaway agent meet its budget.",
    epilog="""\b
Examples:
  spendgate demo
  spendgate demo --json
""",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.pass_context
def demo(context: click.Context, *, as_json: bool) -> None:
    """Watch a runaway agent meet its budget: nothing is spent, nothing leaves this machine."""
    from spendgate.local.demo import run_demo  # noqa: PLC0415 - as above

    context.exit(run_demo(console=console_for_people(), as_json=as_json))


for command in (
    configuration.plan,
    configuration.apply,
    budgets.status,
    keys.keys,
    budgets.stop,
    budgets.resume,
    prices.prices,
    secrets.secrets,
    blocks.blocks,
    alerts.alerts,
    reservations.reservations,
    reservations.reconcile,
    report.report,
    trail.audit,
    trail.events,
    conformance.conformance,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; always leaves with an exit code."""
    cli(prog_name="spendgate")


if __name__ == "__main__":
    main()
