"""One write of a transaction as data: what an UpdateItem or a PutItem is made of, and what its failed condition is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from spendgate.store.values import encode, encode_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

Subject = Literal["reservation", "idempotency", "budget", "usage", "event", "key", "block"]

# Keys an update may never touch, nor a path it may set twice: no emulator refuses all of this, so we do.
_KEY_ATTRIBUTES: Final = frozenset({"pk", "sk"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One write of a transaction, and what its failed condition is about.

    ``own`` says that its key is random and must be new: what is there already, this very transaction has written.
    """

    write: Write
    subject: Subject
    name: str
    own: bool = False


@dataclass(slots=True)
class Update:
    """Collects one UpdateItem: every name and value through a placeholder, so that no word is reserved.

    ValueError for a key attribute, or a path that is written twice.
    """

    table: str
    key: Mapping[str, str]
    _names: dict[str, str] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)
    _clauses: dict[str, list[str]] = field(default_factory=dict)
    _conditions: list[str] = field(default_factory=list)
    _written: set[str] = field(default_factory=set)

    def add(self, changes: Mapping[str, int]) -> Update:
        """Add to counters; zero changes nothing and is left out."""
        for attribute, change in changes.items():
            if change:
                self._write("ADD", attribute, f"{self._name(attribute)} {self._value(change)}")
        return self

    def touch(self, attribute: str) -> Update:
        """Begin a counter at nothing, or leave it as it is, so that there is something to write."""
        self._write("ADD", attribute, f"{self._name(attribute)} {self._value(0)}")
        return self

    def set(self, attributes: Mapping[str, object]) -> Update:
        """Set attributes; None removes one."""
        for attribute, value in attributes.items():
            if value is None:
                self.remove(attribute)
            else:
                self._write("SET", attribute, f"{self._name(attribute)} = {self._value(value)}")
        return self

    def set_once(self, attribute: str, value: object) -> Update:
        """Set an attribute unless it is there already."""
        name = self._name(attribute)
        self._write("SET", attribute, f"{name} = if_not_exists({name}, {self._value(value)})")
        return self

    def remove(self, *attributes: str) -> Update:
        """Remove attributes."""
        for attribute in attributes:
            self._write("REMOVE", attribute, self._name(attribute))
        return self

    def exists(self) -> Update:
        """Require that the item is there."""
        self._conditions.append(f"attribute_exists({self._name('pk')})")
        return self

    def absent(self, attribute: str = "pk") -> Update:
        """Require that the item, or one attribute of it, is not there."""
        self._conditions.append(f"attribute_not_exists({self._name(attribute)})")
        return self

    def equals(self, attribute: str, value: object) -> Update:
        """Require an attribute's value."""
        self._conditions.append(f"{self._name(attribute)} = {self._value(value)}")
        return self

    def at_most(self, attribute: str, most: int | str) -> Update:
        """Require that a counter, or an instant, is at most this, or has not begun."""
        name = self._name(attribute)
        self._conditions.append(f"(attribute_not_exists({name}) OR {name} <= {self._value(most)})")
        return self

    def later_than(self, attribute: str, instant_text: str) -> Update:
        """Require that an instant lies after this, or is not there."""
        name = self._name(attribute)
        self._conditions.append(f"(attribute_not_exists({name}) OR {name} > {self._value(instant_text)})")
        return self

    @property
    def writes(self) -> bool:
        """Tell whether anything is changed at all; DynamoDB refuses an update without a clause."""
        return bool(self._written)

    def write(self) -> Write:
        """Return the write."""
        expression = " ".join(f"{verb} {', '.join(parts)}" for verb, parts in self._clauses.items())
        update: dict[str, Any] = {
            "TableName": self.table,
            "Key": encode_item(self.key),
            "UpdateExpression": expression,
            "ExpressionAttributeNames": {placeholder: name for name, placeholder in self._names.items()},
        }
        if self._values:
            update["ExpressionAttributeValues"] = self._values
        if self._conditions:
            update["ConditionExpression"] = " AND ".join(self._conditions)
            update["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        # Put together member by member, which its type cannot follow.
        return {"Update": update}  # type: ignore[typeddict-item]

    def _write(self, verb: str, attribute: str, clause: str) -> None:
        if attribute in _KEY_ATTRIBUTES or attribute in self._written:
            raise ValueError(f"attribute {attribute!r} cannot be written here, or is written twice")
        self._written.add(attribute)
        self._clauses.setdefault(verb, []).append(clause)

    def _name(self, attribute: str) -> str:
        return self._names.setdefault(attribute, f"#n{len(self._names)}")

    def _value(self, value: object) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = encode(value)
        return placeholder


def put_new(table: str, item: Mapping[str, object]) -> Write:
    """Return the write of an item that must not be there yet."""
    return {
        "Put": {
            "TableName": table,
            "Item": encode_item(item),
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }
