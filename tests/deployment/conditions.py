"""A template under values of its parameters: which resources there are then, and what each refers to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Conditions with what they are to be for this reference to be there.
Under = frozenset[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Reference:
    """One resource, output or condition's mention of a name."""

    place: str
    under: Under
    name: str


def references_of(template: Mapping[str, Any]) -> list[Reference]:
    """Return every Ref, GetAtt, Sub and DependsOn of resources and outputs."""
    found = []
    for section in ("Resources", "Outputs"):
        for place, one in template[section].items():
            under: Under = frozenset({(one["Condition"], True)} if "Condition" in one else ())
            body = {key: value for key, value in one.items() if key != "Condition"}
            found += [Reference(f"{section}.{place}", *pair) for pair in _mentioned(body, under)]
    return found


def holding(template: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, bool]:
    """Return which conditions hold under values of the parameters, the defaults where none is given."""
    values = {name: parameters.get(name, one.get("Default")) for name, one in template["Parameters"].items()}
    return {name: _truth(one, values, template["Conditions"]) for name, one in template["Conditions"].items()}


def unresolved(
    template: Mapping[str, Any], references: list[Reference], conditions: Mapping[str, bool]
) -> list[Reference]:
    """Return the references to what is not there while these conditions hold."""
    there = {
        name for name, one in template["Resources"].items() if "Condition" not in one or conditions[one["Condition"]]
    } | set(template["Parameters"])
    return [
        one
        for one in references
        if one.name not in there and all(conditions[name] is truth for name, truth in one.under)
    ]


def _mentioned(value: Any, under: Under) -> Iterator[tuple[Under, str]]:
    if isinstance(value, list):
        for one in value:
            yield from _mentioned(one, under)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if key == "Fn::If":
                condition, when, otherwise = one
                yield from _mentioned(when, under | {(condition, True)})
                yield from _mentioned(otherwise, under | {(condition, False)})
                continue
            # A pseudo parameter is always there.
            yield from ((under, name) for name in _names(key, one) if not name.startswith("AWS::"))
            yield from _mentioned(one, under)


def _names(key: str, operand: Any) -> list[str]:
    """Return what an intrinsic function or DependsOn names by itself, beside what lies within it."""
    if key in ("Ref", "DependsOn"):
        return [operand] if isinstance(operand, str) else operand
    if key == "Fn::GetAtt":
        return [operand.partition(".")[0] if isinstance(operand, str) else operand[0]]
    if key == "Fn::Sub":
        text, own = (operand, {}) if isinstance(operand, str) else operand
        names = re.findall(r"\$\{([^!}]+)\}", text)
        return [name if name.startswith("AWS::") else name.partition(".")[0] for name in names if name not in own]
    return []


def _truth(one: Any, values: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    ((operator, operands),) = one.items()
    if operator == "Condition":
        return _truth(conditions[operands], values, conditions)
    if operator == "Fn::Equals":
        left, right = (_value(each, values) for each in operands)
        return left == right
    found = [_truth(each, values, conditions) for each in operands]
    return {"Fn::Not": lambda: not found[0], "Fn::And": lambda: all(found), "Fn::Or": lambda: any(found)}[operator]()


def _value(one: Any, values: Mapping[str, Any]) -> str:
    if not isinstance(one, Mapping):
        return str(one)
    ((operator, operand),) = one.items()
    if operator == "Ref":
        return str(values[operand])
    # Fn::Join of a list parameter, whose value is written with commas.
    assert operator == "Fn::Join", operator
    return str(operand[0]).join(str(values[operand[1]["Ref"]]).split(","))
