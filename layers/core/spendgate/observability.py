"""What is logged and counted: a line of JSON a call, by Powertools' logger, and CloudWatch's embedded metrics.

Never a secret, a prompt or a completion. Metrics are written here and not by Powertools' Metrics: these are collected in one
place a process until a handler returns, and here several calls end at once, each after its handler.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import IO, Any, Final

from aws_lambda_powertools import Logger

SERVICE: Final = "spendgate"
# docs/operations.md says what each means.
UNITS: Final[Mapping[str, str]] = {
    "Calls": "Count",
    "Refusals": "Count",
    "OwnLatency": "Milliseconds",
    "LedgerConflicts": "Count",
    "SettlementsDeferred": "Count",
    "SettledUsd": "None",
    "BoundViolations": "Count",
    "UnknownUsd": "None",
    "ReservedUsd": "None",
    "UnknownOldestSeconds": "Seconds",
}


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


class EmbeddedMetrics:
    """Metrics in CloudWatch's embedded format: each line is whole, and out at once."""

    def __init__(self, *, namespace: str, service: str, stream: IO[str], now: Callable[[], datetime]) -> None:
        self._namespace = namespace
        self._service = service
        self._stream = stream
        self._now = now

    def add(self, values: Mapping[str, int | str], /, **dimensions: str) -> None:
        """Write values, by service and again by ``dimensions``; a number may be its exact decimal text."""
        sets = [["service"], ["service", *dimensions]] if dimensions else [["service"]]
        told = {
            "Timestamp": round(self._now().timestamp() * 1000),
            "CloudWatchMetrics": [
                {
                    "Namespace": self._namespace,
                    "Dimensions": sets,
                    "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
                }
            ],
        }
        head = json.dumps({"_aws": told, "service": self._service, **dimensions}, separators=(",", ":"))
        # Written as the digits that they are: an amount is a number of JSON already, and no float on its way.
        numbers = "".join(f',"{name}":{value}' for name, value in values.items())
        self._stream.write(f"{head[:-1]}{numbers}}}\n")
        self._stream.flush()


def metrics_of(environ: Mapping[str, str], *, stream: IO[str], now: Callable[[], datetime]) -> EmbeddedMetrics | None:
    """Return what counts, named as Powertools would from the same environment; None where nobody collects metrics."""
    namespace = environ.get("POWERTOOLS_METRICS_NAMESPACE")
    if not namespace:
        return None
    service = environ.get("POWERTOOLS_SERVICE_NAME") or SERVICE
    return EmbeddedMetrics(namespace=namespace, service=service, stream=stream, now=now)
