"""DynamoDB's expressions on whole attributes, parsed: what a condition holds of, and what an update makes of an item.

Names and values are placeholders until an item is met. (docs.aws.amazon.com/amazondynamodb, "Expressions".)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt
from typing import Any, Final

from tests.simulation.memory_values import ExpressionInvalid, Item, Unsupported, Value, added

Names = Mapping[str, str]
Values = Mapping[str, Value]
Holds = Callable[[Mapping[str, Value], Names, Values], bool]

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, or a filter; ``placeholders`` are the names and values that it uses."""

    holds: Holds
    placeholders: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assignment:
    """``SET path = value``, or ``if_not_exists(path, value)`` of the same path."""

    path: str
    value: str
    once: bool


@dataclass(frozen=True, slots=True)
class Update:
    """The clauses of an update."""

    sets: tuple[Assignment, ...]
    adds: tuple[tuple[str, str], ...]
    removes: tuple[str, ...]
    paths: tuple[str, ...]
    placeholders: frozenset[str]

    def written(self, names: Names) -> set[str]:
        """Return the attributes that are written; ExpressionInvalid where one is written twice."""
        attributes = {_attribute(path, names) for path in self.paths}
        if len(attributes) < len(self.paths):
            raise ExpressionInvalid("Two document paths overlap with each other")
        return attributes

    def applied(self, item: Mapping[str, Value], names: Names, values: Values) -> Item:
        """Return the item that it makes of another; values are shared with both. OperandInvalid."""
        changed = dict(item)
        for one in self.sets:
            attribute = _attribute(one.path, names)
            if not one.once or attribute not in item:
                changed[attribute] = values[one.value]
        for path, value in self.adds:
            attribute = _attribute(path, names)
            changed[attribute] = added(item.get(attribute), values[value])
        for path in self.removes:
            changed.pop(_attribute(path, names), None)
        return changed


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """``hash = value``, and maybe what the range compares with: one value, or two that it lies between."""

    paths: tuple[str, ...]
    first: str
    bounds: tuple[tuple[str, str], ...]
    placeholders: frozenset[str]

    def partition_of(self, values: Values) -> str:
        """Return the partition that is asked for."""
        return str(values[self.first]["S"])

    def takes(self, second: str, values: Values) -> bool:
        """Tell whether a range is asked for."""
        return all(COMPARISONS[sign](second, values[value]["S"]) for sign, value in self.bounds)


def any_of(parts: tuple[Holds, ...]) -> Holds:
    """Return what holds where one of the parts does."""

    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        return any(part(item, names, values) for part in parts)

    return holds


def all_of(parts: tuple[Holds, ...]) -> Holds:
    """Return what holds where all of the parts do."""

    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        return all(part(item, names, values) for part in parts)

    return holds


def exists(path: str, *, wanted: bool) -> Holds:
    """Return what holds where an attribute is there, or is not."""

    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        return (_attribute(path, names) in item) is wanted

    return holds


def begins(path: str, value: str) -> Holds:
    """Return what holds where a text begins with another."""

    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        held, prefix = item.get(_attribute(path, names)), values[value]
        if "S" not in prefix:
            raise Unsupported(f"begins_with of {set(prefix)}")
        return held is not None and "S" in held and held["S"].startswith(prefix["S"])

    return holds


def compares(path: str, sign: str, value: str) -> Holds:
    """Return what holds where a comparison does."""
    compare = COMPARISONS[sign]

    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        held = item.get(_attribute(path, names))
        if held is None:
            # What is not there compares with nothing.
            return False
        wanted = values[value]
        if "N" in held and "N" in wanted:
            return compare(int(held["N"]), int(wanted["N"]))
        if "S" in held and "S" in wanted:
            return compare(held["S"], wanted["S"])
        if sign == "=":
            return held == wanted
        if set(wanted) <= {"N", "S"}:
            # Of two types neither is less.
            return False
        raise Unsupported(f"{sign} on {set(wanted)}")

    return holds


def _attribute(path: str, names: Names) -> str:
    return names[path] if path[0] == "#" else path
