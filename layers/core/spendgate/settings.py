"""The gateway's settings, read once from a mapping; every problem is told in one error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from spendgate.errors import ConfigurationInvalid, Problem

PREFIX: Final = "SPENDGATE_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Names of the tables, and limits; docs/settings.md lists them.

    ``call_seconds_max`` is how long a call may last: the gateway ends it then, before the platform does, and its
    reservation's deadline is ``deadline_grace_seconds`` later. ``cache_seconds`` is how long keys, routes, providers
    and prices may be old; nothing strict rests on it. ``idle_seconds_max`` is after how long a pooled connection is
    not used again. ``deadline_header`` names the header by which a trusted adapter tells the platform's deadline.
    ``settlement_queue_url`` is where settlements go that DynamoDB does not take; without one they are only logged.
    """

    ledger_table: str = "spendgate-ledger"
    config_table: str = "spendgate-config"
    region: str = "us-east-1"
    endpoint_url: str | None = None
    call_seconds_max: int = 600
    deadline_grace_seconds: int = 10
    cache_seconds: int = 60
    connect_seconds_max: int = 5
    idle_seconds_max: int = 4
    body_bytes_max: int = 10_000_000
    answer_bytes_max: int = 64_000_000
    store_threads: int = 16
    ledger_deadline_seconds: int = 2
    deadline_header: str | None = None
    settlement_queue_url: str | None = None


_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "call_seconds_max": (1, 900),
    "deadline_grace_seconds": (0, 3600),
    "cache_seconds": (0, 60),
    "connect_seconds_max": (1, 60),
    "idle_seconds_max": (0, 60),
    "body_bytes_max": (1, 10_000_000),
    "answer_bytes_max": (1, 1_000_000_000),
    "store_threads": (1, 256),
    "ledger_deadline_seconds": (1, 60),
}


DEFAULTS: Final = Settings()


def read(environ: Mapping[str, str], defaults: Settings = DEFAULTS) -> Settings:
    """Return the settings of an environment: ``SPENDGATE_CALL_SECONDS_MAX`` and so on; ConfigurationInvalid."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for field in fields(Settings):
        name = PREFIX + field.name.upper()
        if name not in environ:
            continue
        try:
            values[field.name] = _parsed(field.name, environ[name])
        except ValueError as error:
            problems.append(Problem(place=name, message=str(error)))
    if problems:
        raise ConfigurationInvalid(problems)
    return replace(defaults, **values)


def _parsed(name: str, text: str) -> int | str:
    parse: Callable[[str], int | str] = _whole(name) if name in _BOUNDS else _text
    return parse(text)


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _whole(name: str) -> Callable[[str], int]:
    least, most = _BOUNDS[name]

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
            raise ValueError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return parse
