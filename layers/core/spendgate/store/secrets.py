"""Providers' secrets, read where they are used: from the environment, or AWS Secrets Manager for a few seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, cast

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from spendgate.errors import LedgerUnavailable

CACHED: Final = timedelta(seconds=60)
_NEVER: Final = (datetime.min.replace(tzinfo=UTC), "")


class SecretsManager(Protocol):
    """What is used of AWS Secrets Manager's client."""

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803 - AWS's own name
        """Return a secret with its ``SecretString``."""
        ...


def secrets_manager(region: str) -> SecretsManager:
    """Return a client of AWS Secrets Manager."""
    return cast("SecretsManager", botocore.session.get_session().create_client("secretsmanager", region_name=region))


class Secrets:
    """Resolves references: ``env:NAME`` and ``secretsmanager:NAME``. A value is never in an error or a log."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        manager: Callable[[], SecretsManager],
        clock: Callable[[], datetime],
    ) -> None:
        self._environ = environ
        self._manager = manager
        self._clock = clock
        self._known: dict[str, tuple[datetime, str]] = {}

    def known(self, reference: str) -> str | None:
        """Return the secret that a reference names where nobody has to be asked for it; None elsewhere."""
        kind, _, name = reference.partition(":")
        if kind == "env":
            return self._environ.get(name, "").strip() or None
        at, value = self._known.get(name, _NEVER)
        return value if kind == "secretsmanager" and self._clock() - at < CACHED else None

    def read(self, reference: str) -> str:
        """Return the secret that a reference names; LedgerUnavailable, naming the reference, where there is none."""
        known = self.known(reference)
        if known is not None:
            return known
        kind, _, name = reference.partition(":")
        match kind:
            case "env":
                raise LedgerUnavailable(f"the provider's secret is missing: environment variable {name} is not set")
            case "secretsmanager":
                return self._from_manager(name)
            case _:
                raise LedgerUnavailable("the provider's secret is of no known kind: env: or secretsmanager:")

    def _from_manager(self, name: str) -> str:
        now = self._clock()
        try:
            value = str(self._manager().get_secret_value(SecretId=name)["SecretString"]).strip()
        except (ClientError, BotoCoreError, KeyError) as error:
            raise LedgerUnavailable(f"the provider's secret {name} cannot be read: {type(error).__name__}") from error
        self._known[name] = (now, value)
        return value
