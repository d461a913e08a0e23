"""Reads DynamoDB's expressions, as far as Spendgate writes them.

What one may hold beside that (nested paths, arithmetic, sets, NOT, IN ...) raises Unsupported, which nothing
catches: a simulation never goes on after something that it does not understand. What was parsed is kept, since the code
has few expressions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from tests.simulation.expressions import (
    COMPARISONS,
    Assignment,
    Condition,
    Holds,
    KeyCondition,
    Update,
    all_of,
    any_of,
    begins,
    compares,
    exists,
)
from tests.simulation.memory_values import ExpressionInvalid, Unsupported

EXPRESSION_BYTES_MAX: Final = 4096
OPERATORS_MAX: Final = 300

# Bare words that the code writes, none of which DynamoDB reserves ("Reserved words in DynamoDB").
_BARE: Final = frozenset({"pk", "sk", "claimed_at", "rearms_at"})
_TOKEN: Final = re.compile(r"\s*([#:]?[A-Za-z0-9_]+|<=|>=|<>|[^\s])")
_PLACEHOLDER: Final = re.compile(r"[#:][A-Za-z0-9_]+")
_OPERATORS: Final = frozenset({*COMPARISONS, "AND", "OR", ",", "+"})
_CLAUSES: Final = frozenset({"SET", "ADD", "REMOVE"})


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
    first = parser.value()
    bounds: tuple[tuple[str, str], ...] = ()
    if parser.ahead == "AND":
        parser.take()
        paths.append(parser.path())
        bounds = parser.bounds()
    parser.end()
    return KeyCondition(tuple(paths), first, bounds, parser.placeholders)


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
        if token not in COMPARISONS:
            raise Unsupported(f"the comparison {token!r} in {self.text!r}")
        return token

    def bounds(self) -> tuple[tuple[str, str], ...]:
        """Read a comparison with one value, or BETWEEN two."""
        if self.ahead != "BETWEEN":
            return ((self.sign(), self.value()),)
        self.take()
        low = self.value()
        self.expect("AND")
        return ((">=", low), ("<=", self.value()))

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
        return parts[0] if len(parts) == 1 else any_of(tuple(parts))

    def _conjunction(self) -> Holds:
        parts = [self._single()]
        while self.ahead == "AND":
            self.take()
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else all_of(tuple(parts))

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
                return compares(self.path(), self.sign(), self.value())

    def _function(self) -> Holds:
        name = self.take()
        self.expect("(")
        path = self.path()
        if name == "begins_with":
            self.expect(",")
            holds = begins(path, self.value())
        else:
            holds = exists(path, wanted=name == "attribute_exists")
        self.expect(")")
        return holds
