"""What is logged: one line of JSON a call, by Powertools' logger, and never a secret, a prompt or a completion."""

from __future__ import annotations

import sys
from typing import IO, Any, Final

from aws_lambda_powertools import Logger

SERVICE: Final = "spendgate"


class JsonLog:
    """Logs messages with named fields; lines go to standard error, so that standard output stays free."""

    def __init__(self, *, stream: IO[str] | None = None, level: str = "INFO") -> None:
        self._logger = Logger(service=SERVICE, stream=stream or sys.stderr, level=level, use_rfc3339=True, utc=True)

    def info(self, message: str, /, **fields: Any) -> None:
        """Log what happened."""
        self._logger.info(message, extra=fields)

    def exception(self, message: str, /, **fields: Any) -> None:
        """Log the exception that is being handled, with its traceback."""
        self._logger.exception(message, extra=fields)  # noqa: LOG004 - the caller is in a handler
