"""How a command fails: one line on stderr that says what is wrong; with ``--json`` an object. Never a traceback."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NoReturn

import click

from spendgate.cli import exit_codes
from spendgate.errors import ConfigurationInvalid, LedgerUnavailable, LocalStoreFailed, Problem


class Failed(click.ClickException):
    """A command that cannot do what was asked. ``code`` is a stable word, ``problems`` those of a configuration."""

    def __init__(self, message: str, *, code: str, problems: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.problems = problems


class Unreachable(Failed):
    """No gateway was found, or what answers is none."""

    exit_code = exit_codes.UNREACHABLE

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unreachable")


class RefusedByGateway(Failed):
    """The gateway understood, and said no."""

    exit_code = exit_codes.REFUSED


class ConfigurationWrong(Failed):
    """The configuration file has problems."""

    exit_code = exit_codes.CONFIGURATION_INVALID


class Interrupted(Failed):
    """Somebody pressed Ctrl-C, or a question had no answer."""

    exit_code = exit_codes.INTERRUPTED

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(message, code="interrupted")


class Commands(click.Group):
    """A group whose commands fail in this module's way."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's own signature
        **extra: Any,
    ) -> Any:
        """Run a command; in standalone mode leave with its exit code."""
        given = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            result = super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort:
            _leave(Interrupted(), given)
        except click.ClickException as error:
            _leave(error, given)
        sys.exit(result if isinstance(result, int) else exit_codes.OK)


@contextmanager
def failing_locally() -> Iterator[None]:
    """Tell why a gateway on this machine cannot run: its configuration, its settings, its store or its port."""
    try:
        yield
    except ConfigurationInvalid as error:
        problems = [asdict(problem) for problem in error.problems]
        raise ConfigurationWrong(
            "the configuration is wrong; nothing was started", code="configuration_invalid", problems=problems
        ) from error
    except (LocalStoreFailed, LedgerUnavailable) as error:
        raise RefusedByGateway(str(error), code="local_failed") from error


def _leave(error: click.ClickException, args: Sequence[str]) -> NoReturn:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    elif "--json" in args:
        click.echo(json.dumps({"error": _as_object(error)}, ensure_ascii=False), err=True)
    else:
        click.echo(_as_text(error), err=True)
    sys.exit(error.exit_code)


def _as_object(error: click.ClickException) -> dict[str, Any]:
    if not isinstance(error, Failed):
        return {"code": "usage", "message": error.format_message()}
    problems = {"problems": list(error.problems)} if error.problems else {}
    return {"code": error.code, "message": error.message, **problems}


def _as_text(error: click.ClickException) -> str:
    lines = [f"error: {error.format_message()}"]
    if isinstance(error, Failed):
        lines += [f"  {_problem(problem)}" for problem in error.problems]
    if isinstance(error, click.UsageError) and error.ctx is not None:
        lines.append(f"see: {error.ctx.command_path} --help")
    return "\n".join(lines)


def _problem(problem: Mapping[str, Any]) -> str:
    # Of a gateway's answer, which may leave things out.
    return str(Problem(problem.get("place") or "", problem.get("message", ""), problem.get("line")))
