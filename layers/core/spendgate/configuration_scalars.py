"""The single values of ``spendgate.yaml``: amounts, rates, counts, instants, spans, names and addresses.

Each takes what the YAML reader gives and raises ValueError with a sentence that says what is allowed. No sentence
repeats the value, since any may be a secret that was pasted into the wrong line.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field, PlainValidator

from spendgate.core.address import check_host, check_port, is_loopback
from spendgate.core.feature import USES_MAX
from spendgate.core.money import rate_per_million, usd
from spendgate.core.price import FACTOR_ONE
from spendgate.core.run import DELEGATE_DEPTH_MAX
from spendgate.core.usage import COUNT_MAX

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FACTOR_PLACES_MAX: Final = 6
EXPIRE_AFTER_MAX: Final = timedelta(days=366)

_FIELD_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_AMOUNT = re.compile(r"(?:0|[1-9][0-9]{0,23})(?:\.[0-9]+)?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)
_SPAN = re.compile(r"([1-9][0-9]{0,5})([mhd])", re.ASCII)
_SPAN_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
# What can stand in a URL: no space, no control character, no backslash that parsers read differently.
_URL = re.compile(r"[!-\[\]-~]{1,2048}", re.ASCII)
# Parts of a path that no server reads as another path; a slash at the end is dropped.
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~:$!*+,=-]+)*/?", re.ASCII)
_CATALOGUE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_API_VERSION = re.compile(r"[a-z0-9][a-z0-9.-]{0,31}", re.ASCII)
_MODEL = re.compile(r"[!-~]{1,256}", re.ASCII)


def _text_of_number(value: object, what: str) -> str:
    # A bool is an int in Python, and `usd: true` is a mistake, not one dollar.
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if _AMOUNT.fullmatch(text) is None:
        raise ValueError(f'must be {what}, written like 5 or "0.25": no sign, exponent, unit or leading zero')
    return text


def _usd(value: object) -> int:
    text = _text_of_number(value, "an amount in USD")
    try:
        return usd(text)
    except ValueError as error:
        raise ValueError("must be an amount in USD with at most 12 decimal places") from error


def _rate(value: object) -> int:
    text = _text_of_number(value, "a rate in USD per million tokens")
    try:
        return rate_per_million(text)
    except ValueError as error:
        raise ValueError("must be a rate in USD per million tokens with at most 6 decimal places") from error


def _factor(value: object) -> int:
    text = _text_of_number(value, "a factor")
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > FACTOR_PLACES_MAX:
        raise ValueError(f"must be a factor with at most {FACTOR_PLACES_MAX} decimal places")
    millionths = int(whole) * FACTOR_ONE + int(fraction.ljust(FACTOR_PLACES_MAX, "0"))
    if not millionths:
        raise ValueError("must be a factor above 0: a price of nothing is written as rates of 0")
    return millionths


def _whole(least: int, most: int = COUNT_MAX) -> Callable[[object], int]:
    def count(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return value

    return count


def _instant(value: object) -> datetime:
    text = value if isinstance(value, str) else ""
    if not _DATE.fullmatch(text) and not _INSTANT.fullmatch(text):
        raise ValueError("must be a date like 2027-01-31 (its start, in UTC) or an instant like 2027-01-31T18:00:00Z")
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError("is not a date of the calendar") from error
    if at < EPOCH:
        raise ValueError("must not be before 1970")
    return at


def _date_text(value: object) -> str:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError("must be a date like 2026-11-29")
    _instant(value)
    return value


def _span(value: object) -> timedelta:
    match = _SPAN.fullmatch(value) if isinstance(value, str) else None
    span = int(match.group(1)) * _SPAN_UNITS[match.group(2)] if match else timedelta(0)
    if not timedelta(0) < span <= EXPIRE_AFTER_MAX:
        raise ValueError(f"must be a time span like 30m, 24h or 7d, at most {EXPIRE_AFTER_MAX.days}d")
    return span


def _field_name(value: object) -> str:
    if not isinstance(value, str) or _FIELD_NAME.fullmatch(value) is None:
        raise ValueError("must be a name of 1 to 64 letters, digits, '.', '_' and '-'")
    return value


def _model_name(value: object) -> str:
    if not isinstance(value, str) or not _MODEL.fullmatch(value):
        raise ValueError(
            "must be a name of 1 to 256 printable ASCII characters without spaces (a number goes in quotes)"
        )
    return value


def _api_version(value: object) -> str:
    if not isinstance(value, str) or _API_VERSION.fullmatch(value) is None:
        raise ValueError("must be a version such as 2024-10-21 or preview, in quotes")
    return value


def _catalogue_name(value: object) -> str:
    if not isinstance(value, str) or not _CATALOGUE.fullmatch(value):
        raise ValueError("must be the name of a shipped catalogue, like openai, or none")
    return value


Usd = Annotated[int, PlainValidator(_usd)]
Rate = Annotated[int, PlainValidator(_rate)]
Factor = Annotated[int, PlainValidator(_factor)]
Count = Annotated[int, PlainValidator(_whole(0))]
Delegation = Annotated[int, PlainValidator(_whole(0, DELEGATE_DEPTH_MAX))]
Positive = Annotated[int, PlainValidator(_whole(1))]
Instant = Annotated[datetime, PlainValidator(_instant)]
DateText = Annotated[str, PlainValidator(_date_text)]
Span = Annotated[timedelta, PlainValidator(_span)]
ModelName = Annotated[str, PlainValidator(_model_name)]
FieldName = Annotated[str, PlainValidator(_field_name)]
ApiVersion = Annotated[str, PlainValidator(_api_version)]
CatalogueName = Annotated[str, PlainValidator(_catalogue_name)]
Uses = Annotated[int, PlainValidator(_whole(0, USES_MAX))]
Percent = Annotated[int, PlainValidator(_whole(1, 99))]
Text = Annotated[str, Field(max_length=500)]


def base_url(value: str, *, loopback_http: bool, private_network: bool = False) -> str:
    """Return a provider's address, scheme and host in small letters and no slash at its end.

    ValueError where it is none that may be called.
    """
    if _URL.fullmatch(value) is None:
        raise ValueError("must be a URL of at most 2048 characters without spaces")
    if "?" in value or "#" in value or "@" in value:
        raise ValueError("must have no query, no fragment, and no credentials: those go into secret")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError("is not a URL with a host and, where it has one, a port up to 65535") from error
    if not host or port == 0 or parts.scheme not in ("https", "http") or ("[" in parts.netloc and ":" not in host):
        raise ValueError("must be a URL like https://api.example.com/v1")
    if _PATH.fullmatch(parts.path) is None:
        raise ValueError("must have a plain path: no empty part, no '.' or '..', no ';' and nothing encoded")
    # Scheme and host mean the same in any letters (RFC 3986, 6.2.2.1): one address is kept in one spelling.
    address = f"{parts.scheme}://{parts.netloc.lower()}{parts.path}".rstrip("/")
    if loopback_http and is_loopback(host):
        return address
    if parts.scheme == "http" and not private_network:
        raise ValueError("must be https (http is for loopback hosts in local runs, and for private_network: true)")
    check_host(host, private=private_network)
    check_port(port, scheme=parts.scheme)
    return address
