"""DynamoDB's attribute values from and to plain ones.

Whole numbers, text, booleans, lists and maps only: there is no float in the tables, and no Decimal in our code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

NUMBER_DIGITS_MAX = 38
_NUMBER_END: Final = 10**NUMBER_DIGITS_MAX
# docs.aws.amazon.com/amazondynamodb, "Constraints": a partition key's and a sort key's bytes.
KEY_BYTES_MAX: Final = {"pk": 2048, "sk": 1024}


def encode(value: object) -> Value:
    """Return a value as DynamoDB's; TypeError for what has no place in the tables."""
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        if not -_NUMBER_END < value < _NUMBER_END:
            raise TypeError("DynamoDB holds 38 digits")
        return {"N": str(value)}
    if isinstance(value, Mapping):
        return {"M": {name: encode(part) for name, part in value.items()}}
    if isinstance(value, list | tuple):
        return {"L": [encode(part) for part in value]}
    raise TypeError(f"{type(value).__name__} has no place in the tables")


def decode(value: Mapping[str, Any]) -> Any:
    """Return the plain value of one of DynamoDB's."""
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return int(content)
        case "M":
            return {name: decode(part) for name, part in content.items()}
        case "L":
            return [decode(part) for part in content]
        case _:
            return content


def encode_item(item: Mapping[str, object]) -> dict[str, Value]:
    """Return an item, leaving out what is None."""
    return {name: encode(value) for name, value in item.items() if value is not None}


def may_be_key(key: Mapping[str, str]) -> bool:
    """Tell whether anything can be stored under a key: callers name models and runs, at any length."""
    return all(len(value.encode(errors="surrogatepass")) <= KEY_BYTES_MAX[name] for name, value in key.items())


def decode_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values of an item."""
    return {name: decode(value) for name, value in item.items()}
