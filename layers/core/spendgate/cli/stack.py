"""A gateway in an AWS account: which stack, and with whose identity. botocore is imported only when a stack is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from spendgate.cli import exit_codes
from spendgate.cli.client import Deployed, Gateway
from spendgate.cli.failure import Failed

if TYPE_CHECKING:
    from spendgate.store.stack import Aws, Stack

ENDPOINT: Final = "SPENDGATE_ADMIN_ENDPOINT"
_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}


class StackUnreachable(Failed):
    """AWS did not lead to the stack."""

    exit_code = exit_codes.UNREACHABLE

    def __init__(self, message: str) -> None:
        super().__init__(message, code="stack_unreachable")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackName:
    """A stack, and as whom it is asked; None is what AWS's own tools would take."""

    name: str
    region: str | None = None
    profile: str | None = None


def open_stack(named: StackName) -> tuple[Aws, Stack]:
    """Return AWS and the stack in it; StackUnreachable."""
    # botocore takes a while to import, and only a deployed gateway needs it.
    from spendgate.store.stack import Aws, StackFailed  # noqa: PLC0415

    try:
        aws = Aws(region=named.region, profile=named.profile)
        return aws, aws.stack(named.name)
    except StackFailed as error:
        raise StackUnreachable(str(error)) from error


def stack_gateway(named: StackName, environ: Mapping[str, str]) -> Gateway:
    """Return the gateway of a stack; StackUnreachable."""
    from spendgate.store.stack import StackFailed  # noqa: PLC0415 - as above

    aws, stack = open_stack(named)
    try:
        url = environ.get(ENDPOINT) or stack.output("AdminUrl")
    except StackFailed as error:
        raise StackUnreachable(str(error)) from error

    def signed(method: str, url: str, body: bytes) -> Mapping[str, str]:
        try:
            return aws.signed(method, url, body)
        except StackFailed as error:
            raise StackUnreachable(str(error)) from error

    return Gateway(_checked(url), signed, Deployed(stack=stack.name, arn_of=stack.invoke_arn))


def _checked(url: str) -> str:
    """A signed request carries a session's token: it travels by https, or stays on this machine."""
    parts = urlsplit(url)
    if not parts.hostname or (
        parts.scheme != "https" and (parts.scheme, parts.hostname in _LOOPBACK) != ("http", True)
    ):
        raise click.UsageError(f"{ENDPOINT} must be an https URL, not {url!r}")
    return url.rstrip("/")
