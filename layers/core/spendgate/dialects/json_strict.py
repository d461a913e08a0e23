"""JSON read so that no two parsers can disagree about it.

What the gateway bounds is what the provider reads only if both see the same document: so a duplicate key, a lone
surrogate, a number that is none or a compressed body is refused here, before anything is reserved.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NoReturn

from spendgate.errors import RefusalFacts, RequestInvalid

BODY_BYTES_MAX: Final = 10_000_000
DEPTH_MAX: Final = 128
# The longest whole number of any known API is a 64-bit seed, 20 digits with its sign.
INTEGER_CHARACTERS_MAX: Final = 40
_NAME_CHARACTERS_MAX: Final = 64
_BOM: Final = b"\xef\xbb\xbf"


def parse_object(
    raw: bytes,
    *,
    content_encoding: str | None = None,
    bytes_max: int = BODY_BYTES_MAX,
    depth_max: int = DEPTH_MAX,
) -> dict[str, Any]:
    """Return the JSON object of a request body; RequestInvalid names what is wrong with it."""
    if (content_encoding or "").strip().lower() not in {"", "identity"}:
        _refuse("The body is compressed; send it without Content-Encoding.", field="content-encoding")
    if len(raw) > bytes_max:
        _refuse(f"The body has {len(raw)} bytes; at most {bytes_max} are allowed.")
    if raw.startswith(_BOM):
        _refuse("The body starts with a byte order mark; send plain UTF-8.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid(f"The body is not UTF-8: byte {error.start} is wrong.") from error
    body = _parse(text, depth_max)
    if not isinstance(body, dict):
        _refuse("The body must be a JSON object.")
    _check_values(body, depth_max)
    return body


def parse_answer(raw: bytes) -> Any | None:
    """Return a provider's JSON with exact decimals, or None where it cannot be used; never raises."""
    try:
        return _ANSWER.decode(raw.decode("utf-8-sig"))
    except (ValueError, ArithmeticError, RecursionError):
        return None


def compact(body: Any) -> bytes:
    """Return a body that was parsed here as the shortest UTF-8 JSON."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def shown(name: str) -> str:
    """Return a caller's field name so that it is safe and short enough to print."""
    printable = name.encode("ascii", "backslashreplace").decode()
    return printable if len(printable) <= _NAME_CHARACTERS_MAX else f"{printable[:_NAME_CHARACTERS_MAX]}..."


def _parse(text: str, depth_max: int) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_float=_finite_float,
            parse_int=_short_integer,
            parse_constant=_reject_constant,
        )
    except json.JSONDecodeError as error:
        raise _invalid(f"The body is not JSON: {error.msg} at line {error.lineno} column {error.colno}.") from error
    except RecursionError as error:
        raise _too_deep(depth_max) from error
    except ValueError as error:
        raise _invalid(f"The body has a number that JSON does not know: {error}.") from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        # add() returns None, so a key that is new is remembered and passed over.
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        # Which of the two a provider takes differs from server to server: the bound could be for the other.
        _refuse(f"The key {shown(twice)!r} occurs twice in one object.", field=shown(twice))
    return found


def _agreeing_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs) and any(found[key] != value for key, value in pairs):
        # A count that is there twice has two values, and whoever bills may go by the other one.
        raise ValueError("one key has two values")
    return found


def _finite_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{shown(text)} is out of range")
    return value


def _short_integer(text: str) -> int:
    if len(text) > INTEGER_CHARACTERS_MAX:
        raise ValueError(f"a whole number of {len(text)} digits")
    return int(text)


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _check_values(body: dict[str, Any], depth_max: int) -> None:
    """Refuse what lies deeper than ``depth_max`` and text that UTF-8 cannot carry; walks without recursion."""
    level: list[Any] = [body]
    for _ in range(depth_max):
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    # Scalars do not nest: a value on the last level is fine unless it is itself a container.
    if any(isinstance(value, dict | list) for value in level):
        raise _too_deep(depth_max)
    for value in level:
        _check_text(value)


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in value:
            _check_text(key)
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    else:
        _check_text(value)


def _check_text(value: Any) -> None:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            _refuse("The body has half of a surrogate pair (like \\ud800), which is no character.")


def _too_deep(depth_max: int) -> RequestInvalid:
    return _invalid(f"The body is nested more than {depth_max} deep.")


def _invalid(message: str, *, field: str | None = None) -> RequestInvalid:
    return RequestInvalid(message, facts=RefusalFacts(field=field))


def _refuse(message: str, *, field: str | None = None) -> NoReturn:
    raise _invalid(message, field=field)


# Made once: a decoder costs as much to make as a frame of a stream to read.
_ANSWER: Final = json.JSONDecoder(
    parse_float=Decimal, parse_constant=_reject_constant, object_pairs_hook=_agreeing_keys
)
