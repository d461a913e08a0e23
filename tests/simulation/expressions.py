"""DynamoDB's expressions, as far as Spendgate writes them: conditions, updates and key conditions on whole attributes.

What an expression may hold beside that (nested paths, arithmetic, sets, NOT, BETWEEN, IN ...) raises Unsupported, which
nothing catches: a simulation never goes on after something that it does not understand. A parsed expression is kept,
since the code has few of them; names and values are placeholders until it is met by an item.
(docs.aws.amazon.com/amazondynamodb, "Expressions".)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import eq, ge, gt, le, lt
from typing import Any, Final

Value = Mapping[str, Any]
Item = dict[str, Any]
Names = Mapping[str, str]
Values = Mapping[str, Value]
Holds = Callable[[Mapping[str, Value], Names, Values], bool]

EXPRESSION_BYTES_MAX: Final = 4096
OPERATORS_MAX: Final = 300
DIGITS_MAX: Final = 38

# Bare words that the code writes, none of which DynamoDB reserves ("Reserved words in DynamoDB").
_BARE: Final = frozenset({"pk", "sk", "claimed_at", "rearms_at"})
_TOKEN: Final = re.compile(r"\s*([#:]?[A-Za-z0-9_]+|<=|>=|<>|[^\s])")
_PLACEHOLDER: Final = re.compile(r"[#:][A-Za-z0-9_]+")
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_OPERATORS: Final = frozenset({*_COMPARISONS, "AND", "OR", ",", "+"})
_CLAUSES: Final = frozenset({"SET", "ADD", "REMOVE"})


class Unsupported(Exception):
    """Something that DynamoDB may know and the simulation does not."""


class ExpressionInvalid(Exception):
    """An expression, or what it is used with, that DynamoDB refuses."""


class OperandInvalid(Exception):
    """A value in an item that an update cannot be applied to."""


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
    """``hash = value``, and maybe a comparison of the range."""

    paths: tuple[str, ...]
    first: str
    compare: Callable[[Any, Any], bool]
    bound: str | None
    placeholders: frozenset[str]

    def partition_of(self, values: Values) -> str:
        """Return the partition that is asked for."""
        return str(values[self.first]["S"])

    def takes(self, second: str, values: Values) -> bool:
        """Tell whether a range is asked for."""
        return self.bound is None or self.compare(second, values[self.bound]["S"])


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


@lru_cache(maxsize=4096)
def condition(text: str) -> Condition:
    """Return a parsed condition; ExpressionInvalid, Unsupported."""
    parser = _Parser(text)
    holds = parser.alternatives()
    parser.end()
    return Condition(holds, parser.placeholders)


def update(text: str) -> Update:
    """Return a parsed update; ExpressionInvalid, Unsupported."""
    parser = _Parser(text)
    sets: list[Assignment] = []
    adds: list[tuple[str, str]] = []
    removes: list[str] = []
    seen: set[str] = set()
    while parser.ahead:
        clause = parser.take()
        if clause not in _CLAUSES:
            raise Unsupported(f"the clause {clause} of {text!r}")
        if clause in seen:
            raise ExpressionInvalid(f'The "{clause}" section can only be used once in an update expression')
        seen.add(clause)
        while True:
            match clause:
                case "SET":
                    sets.append(parser.assignment())
                case "ADD":
                    adds.append((parser.path(), parser.value()))
                case _:
                    removes.append(parser.path())
            if parser.ahead != ",":
                break
            parser.take()
    if not seen:
        raise ExpressionInvalid("The expression can not be empty")
    paths = (*(one.path for one in sets), *(path for path, _ in adds), *removes)
    return Update(tuple(sets), tuple(adds), tuple(removes), paths, parser.placeholders)


@lru_cache(maxsize=4096)
def parsed(
    condition_text: str | None, update_text: str | None
) -> tuple[Condition | None, Update | None, frozenset[str]]:
    """Return a write's expressions, and the placeholders of both; ExpressionInvalid, Unsupported."""
    first = None if condition_text is None else condition(condition_text)
    second = None if update_text is None else update(update_text)
    used = [one.placeholders for one in (first, second) if one is not None]
    return first, second, frozenset[str]().union(*used)


@lru_cache(maxsize=256)
def key_condition(text: str) -> KeyCondition:
    """Return a parsed key condition; Unsupported."""
    parser = _Parser(text)
    paths = [parser.path()]
    parser.expect("=")
    first, sign, bound = parser.value(), "=", None
    if parser.ahead == "AND":
        parser.take()
        paths.append(parser.path())
        sign, bound = parser.sign(), parser.value()
    parser.end()
    return KeyCondition(tuple(paths), first, _COMPARISONS[sign], bound, parser.placeholders)


def _attribute(path: str, names: Names) -> str:
    return names[path] if path[0] == "#" else path


class _Parser:
    """Reads an expression from left to right, by one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self.placeholders = frozenset(_PLACEHOLDER.findall(text))
        functions = sum(following == "(" and token not in _OPERATORS for token, following in self._pairs())
        if len(text.encode()) > EXPRESSION_BYTES_MAX:
            raise ExpressionInvalid("Expression size has exceeded the maximum allowed size")
        if functions + sum(token in _OPERATORS for token in self._tokens) > OPERATORS_MAX:
            raise ExpressionInvalid("The expression contains too many operators")

    def _pairs(self) -> Sequence[tuple[str, str]]:
        return list(zip(self._tokens, self._tokens[1:], strict=False))

    @property
    def ahead(self) -> str:
        """The next token, nothing at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self) -> str:
        """Go past the next token."""
        token = self.ahead
        self._at += 1
        return token

    def expect(self, token: str) -> None:
        """Go past a token that has to be there."""
        if self.take() != token:
            raise Unsupported(f"no {token!r} at token {self._at} of {self.text!r}")

    def end(self) -> None:
        """Require that everything was read."""
        if self.ahead:
            raise Unsupported(f"{self.ahead!r} in {self.text!r}")

    def path(self) -> str:
        """Read an attribute's name or its placeholder."""
        token = self.take()
        if token not in _BARE and not (token.startswith("#") and len(token) > 1):
            raise Unsupported(f"the path {token!r} in {self.text!r}")
        return token

    def sign(self) -> str:
        """Read a comparison."""
        token = self.take()
        if token not in _COMPARISONS:
            raise Unsupported(f"the comparison {token!r} in {self.text!r}")
        return token

    def value(self) -> str:
        """Read a value's placeholder."""
        token = self.take()
        if not (token.startswith(":") and len(token) > 1):
            raise Unsupported(f"the operand {token!r} in {self.text!r}")
        return token

    def assignment(self) -> Assignment:
        """Read one assignment of a SET."""
        path = self.path()
        self.expect("=")
        if self.ahead != "if_not_exists":
            return Assignment(path, self.value(), once=False)
        self.take()
        self.expect("(")
        if self.path() != path:
            raise Unsupported(f"if_not_exists of another attribute in {self.text!r}")
        self.expect(",")
        value = self.value()
        self.expect(")")
        return Assignment(path, value, once=True)

    def alternatives(self) -> Holds:
        """Read conditions between ORs."""
        parts = [self._conjunction()]
        while self.ahead == "OR":
            self.take()
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else _any(tuple(parts))

    def _conjunction(self) -> Holds:
        parts = [self._single()]
        while self.ahead == "AND":
            self.take()
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else _all(tuple(parts))

    def _single(self) -> Holds:
        match self.ahead:
            case "(":
                self.take()
                inner = self.alternatives()
                self.expect(")")
                return inner
            case "attribute_exists" | "attribute_not_exists" | "begins_with":
                return self._function()
            case _:
                return _compares(self.path(), self.sign(), self.value())

    def _function(self) -> Holds:
        name = self.take()
        self.expect("(")
        path = self.path()
        if name == "begins_with":
            self.expect(",")
            holds = _begins(path, self.value())
        else:
            holds = _exists(path, wanted=name == "attribute_exists")
        self.expect(")")
        return holds


def _any(parts: tuple[Holds, ...]) -> Holds:
    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        return any(part(item, names, values) for part in parts)

    return holds


def _all(parts: tuple[Holds, ...]) -> Holds:
    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        return all(part(item, names, values) for part in parts)

    return holds


def _exists(path: str, *, wanted: bool) -> Holds:
    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        return (_attribute(path, names) in item) is wanted

    return holds


def _begins(path: str, value: str) -> Holds:
    def holds(item: Mapping[str, Value], names: Names, values: Values) -> bool:
        held, prefix = item.get(_attribute(path, names)), values[value]
        if "S" not in prefix:
            raise Unsupported(f"begins_with of {set(prefix)}")
        return held is not None and "S" in held and held["S"].startswith(prefix["S"])

    return holds


def _compares(path: str, sign: str, value: str) -> Holds:
    compare = _COMPARISONS[sign]

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
