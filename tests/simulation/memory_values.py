"""Attribute values as DynamoDB keeps them: whole numbers, texts, booleans, lists and maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Value = Mapping[str, Any]
Item = dict[str, Any]

DIGITS_MAX: Final = 38


class Unsupported(BaseException):
    """Something that DynamoDB may know and the store in memory does not; no Exception, so that nothing goes on after it."""


class ExpressionInvalid(Exception):
    """An expression, or what it is used with, that DynamoDB refuses."""


class OperandInvalid(Exception):
    """A value in an item that an update cannot be applied to."""


def number(text: str) -> int:
    """Return a number; Unsupported where it is not whole, ExpressionInvalid beyond DynamoDB's digits."""
    try:
        found = int(text)
    except ValueError as error:
        raise Unsupported(f"the number {text!r}") from error
    if len(text) > DIGITS_MAX and len(str(abs(found)).rstrip("0")) > DIGITS_MAX:
        raise ExpressionInvalid("Attempting to store more than 38 significant digits in a Number")
    return found


def added(held: Value | None, change: Value) -> Value:
    """Return what ADD makes of a value, that of an attribute that is not there being nothing."""
    if "N" not in change:
        raise Unsupported(f"ADD of {set(change)}")
    if held is None:
        return change
    if "N" not in held:
        raise OperandInvalid("An operand in the update expression has an incorrect data type")
    total = str(int(held["N"]) + int(change["N"]))
    if len(total) > DIGITS_MAX:
        try:
            number(total)
        except ExpressionInvalid as error:
            raise OperandInvalid(str(error)) from error
    return {"N": total}


def taken(value: Mapping[str, Any]) -> Value:
    """Return a value of a request as it is kept: a copy; ExpressionInvalid for what is none."""
    # The most frequent first: every value of every request comes through here.
    ((kind, content),) = value.items()
    if kind == "N":
        return {"N": str(number(content))}
    if kind in ("S", "BOOL"):
        return {kind: content}
    if kind == "M":
        return {"M": {name: taken(part) for name, part in content.items()}}
    if kind == "L":
        return {"L": [taken(part) for part in content]}
    raise Unsupported(f"a value of type {kind}")


def given(item: Mapping[str, Value]) -> Item:
    """Return a copy of an item for an answer."""
    return {name: _given(value) for name, value in item.items()}


def _given(value: Value) -> Value:
    if "M" in value:
        return {"M": given(value["M"])}
    if "L" in value:
        return {"L": [_given(part) for part in value["L"]]}
    return dict(value)


def size(item: Mapping[str, Value]) -> int:
    """Return an item's size as DynamoDB counts it ("DynamoDB item sizes and formats")."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Value) -> int:
    kind: str
    content: Any
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(str(content).encode())
        case "N":
            return (len(str(content).lstrip("-").strip("0")) + 1) // 2 + 1 + str(content).startswith("-")
        case "M":
            return 3 + len(content) + size(content)
        case "L":
            return 3 + len(content) + sum(_value_size(part) for part in content)
        case _:
            return 1
