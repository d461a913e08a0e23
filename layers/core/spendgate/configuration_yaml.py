"""YAML text as plain values, each with its line: what ``configuration_reader.py`` reads.

A narrower YAML than the library's default, because its conveniences are traps in a file about money: ``0.50`` stays
the text that was written (no float exists here), ``no`` and ``on`` are names, dates are text, keys are always text,
a key written twice is an error, and aliases, which can make a small file huge, are refused.
"""

import re
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from spendgate.errors import ConfigurationInvalid, Problem

Place = tuple[str | int, ...]

TEXT_LENGTH_MAX: Final = 512 * 1024
DEPTH_MAX: Final = 16

_TAG = "tag:yaml.org,2002:"
_SHOWN_LENGTH_MAX: Final = 80
_UNCLOSED: Final = "a quote, a [ or a { is opened and never closed"
# Words of the library, and what to do about them.
_PLAINER: Final = (
    ("'\\t'", "a tab, which cannot indent: use spaces"),
    (
        "mapping values are not allowed",
        "a second ': ' on one line, or too much indentation: put text with ': ' in quotes",
    ),
    ("cannot start any token", "a value that begins with a special character: put it in quotes"),
    ("end of stream", _UNCLOSED),
    ("<stream end>", _UNCLOSED),
    ("expected <block end>", "a line that is indented unlike those around it"),
)
_TELLTALES: Final = ("sg-", "sk-", "sk_", "xai-", "gsk_", "AIza", "AKIA")


class Findings:
    """The problems of one text; each place is told with the line that it stands on."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._lines: dict[Place, int] = {}
        self._refused: set[Place] = set()
        self._spoiled: set[Place] = set()

    def locate(self, place: Place, line: int) -> None:
        """Remember the line of a place."""
        self._lines[place] = line

    def refuse(self, place: Place, message: str) -> None:
        """Add a problem that makes any further word about this place, or what is in it, misleading."""
        self.add(place, message)
        self._refused.add(place)

    def add(self, place: Place, message: str, *, line: int | None = None) -> None:
        """Add a problem; nothing is added to what was refused before."""
        above = [place[:length] for length in range(len(place) + 1)]
        if self._refused.intersection(above):
            return
        self._spoiled.update(above)
        self._problems.append(Problem(_dotted(place), message, self._line(place) if line is None else line))

    def spoiled(self, place: Place) -> bool:
        """Tell whether a place, or anything in it, has a problem."""
        return place in self._spoiled

    def raise_any(self) -> None:
        """Raise ConfigurationInvalid with all problems in the order of their lines, if there are any."""
        if self._problems:
            raise ConfigurationInvalid(sorted(self._problems, key=lambda problem: problem.line or 0))

    def _line(self, place: Place) -> int | None:
        # What is missing has no line of its own: that of the mapping it should be in is the nearest.
        return next((self._lines[place[:n]] for n in range(len(place), -1, -1) if place[:n] in self._lines), None)


def read(text: str, findings: Findings) -> Any:
    """Return the one document of a YAML text: dicts with text keys, lists, text, whole numbers, booleans.

    ConfigurationInvalid where it cannot be read at all. What is refused by itself is a finding and stands as None.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise ConfigurationInvalid(
            [Problem("", f"the file is longer than {TEXT_LENGTH_MAX // 1024} KiB, the most that is read")]
        )
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigurationInvalid(
            [Problem("", "a character that YAML does not allow, such as a control character: delete it", line)]
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line_or_none = None if mark is None else mark.line + 1
        raise ConfigurationInvalid([Problem("", _not_yaml(error), line_or_none)]) from error
    except (ValueError, OverflowError) as error:
        # The library hands "\Uffffffff" and a version number of 5000 digits to chr() and int() as they are.
        raise ConfigurationInvalid(
            [Problem("", "not YAML: an escape or a number out of range", None if loader is None else loader.line + 1)]
        ) from error
    if node is None:
        raise ConfigurationInvalid([Problem("", "the file is empty: it needs at least version: 1", 1)])
    findings.locate((), node.start_mark.line + 1)
    return _value(node, (), findings)


def _not_yaml(error: yaml.MarkedYAMLError) -> str:
    """Return the library's sentence, or a plainer one for the mistakes that people make most."""
    problem = error.problem or error.context or ""
    said = next((plain for words, plain in _PLAINER if words in problem), problem)
    begun, noticed = error.context_mark, error.problem_mark
    where = (
        f" (on line {begun.line + 1})" if said == _UNCLOSED and begun and noticed and begun.line < noticed.line else ""
    )
    return f"not YAML: {said}{where}"


def shown(segment: str) -> str:
    """Return a name from the file as an error may show it: short, printable, and never what looks like a secret."""
    if any(telltale in segment for telltale in _TELLTALES):
        return "<hidden: looks like a secret>"
    segment = segment if segment.isprintable() else ascii(segment)
    return segment if len(segment) <= _SHOWN_LENGTH_MAX else f"{segment[:_SHOWN_LENGTH_MAX]}..."


class _Loader(yaml.BaseLoader):
    """The library's reader with YAML 1.2's few plain types and no aliases."""

    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # the stubs leave it so
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not allowed; write it out", problem_mark=mark)
        if self.depth == DEPTH_MAX:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEPTH_MAX} levels", problem_mark=mark)
        self.depth += 1
        node: Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
# 24 digits are more than any amount here; longer ones stay text, which no number field takes.
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,23})\Z", re.ASCII)

_Loader.add_implicit_resolver(f"{_TAG}bool", _BOOL, list("tTfF"))
_Loader.add_implicit_resolver(f"{_TAG}null", _NULL, ["~", "n", "N", ""])
_Loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-0123456789"))


def _value(node: Node, place: Place, findings: Findings) -> Any:
    if isinstance(node, MappingNode) and node.tag == f"{_TAG}map":
        return _mapping(node, place, findings)
    if isinstance(node, SequenceNode) and node.tag == f"{_TAG}seq":
        for index, item in enumerate(node.value):
            findings.locate((*place, index), item.start_mark.line + 1)
        return [_value(item, (*place, index), findings) for index, item in enumerate(node.value)]
    if isinstance(node, ScalarNode):
        return _scalar(node, place, findings)
    findings.refuse(place, "YAML tags (!name) are not allowed")
    return None


def _mapping(node: MappingNode, place: Place, findings: Findings) -> dict[str, Any]:
    values: dict[str, Any] = {}
    first_lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, ScalarNode) or not _is_text(key_node.value):
            findings.add(place, "a key must be plain text", line=line)
            continue
        key = key_node.value
        if key in values:
            findings.add((*place, key), f"written twice; the first is on line {first_lines[key]}", line=line)
            continue
        first_lines[key] = line
        findings.locate((*place, key), line)
        values[key] = _value(value_node, (*place, key), findings)
    return values


def _scalar(node: ScalarNode, place: Place, findings: Findings) -> str | int | bool | None:
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "str" if _is_text(text):
            return text
        case "str":
            findings.refuse(
                place, "has an escape from \\ud800 to \\udfff, which alone is no character: write the character itself"
            )
        case "int" if _INT.match(text):
            return int(text)
        case "bool" if _BOOL.match(text):
            return text.lower() == "true"
        case "null" if _NULL.match(text):
            findings.refuse(place, "has no value: give it one, or leave the line out")
        case _:
            findings.refuse(place, "YAML tags (!name) are not allowed")
    return None


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _dotted(place: Place) -> str:
    dotted = ""
    for segment in place:
        dotted += f"[{segment}]" if isinstance(segment, int) else f".{shown(segment)}"
    return dotted.removeprefix(".")
