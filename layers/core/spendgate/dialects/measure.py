"""How large a request is for a tokenizer, in bytes.

A byte-level tokenizer makes at most one token of a byte, but some normalise first, and providers print JSON again in
their own way. So text is measured after the dearest normalisation, and JSON in its dearest spelling.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

from spendgate.core.media import Media, MediaKind
from spendgate.errors import CostBoundUnknown, RefusalFacts

# No code point grows more than 11 times under NFKC (U+FDFA: 3 bytes become 33).
NORMALISATION_GROWTH_MAX: Final = 11
# Above this, text outgrows every context window anyway; normalising it would only cost memory.
_NORMALISED_BYTES_MAX: Final = 4 * 1024 * 1024
# A number such as 1e16 may be printed again as 10000000000000000, 22 characters at most in the common printers.
# It follows a bracket, colon or comma, in JSON inside a string also a blank or an escaped one.
_EXPONENT: Final = re.compile(r"[\[:, nrt]-?[0-9][0-9.]*[eE][+-]?[0-9]")
_EXPONENT_BYTES: Final = 12
# What may stand around a string, and around each line of it, beside its own text: quotes, blanks, ``// `` of a comment.
_AROUND_A_STRING: Final = 16
_AROUND_A_LINE: Final = 4
# Down to here the blanks before a line of JSON are a token or two, which the doubling pays for. Deeper they are more: o200k
# makes 1,220 tokens of 150 arrays in each other, indented by four, which are 300 bytes. Two a level are above all measured.
_DEPTH_DOUBLED: Final = 16
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_DEFINITIONS: Final = ("$defs", "definitions")
_INDEX: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_SCHEMA_DEPTH_MAX: Final = 200
_GROWTH_MAX: Final = 2


def text_bytes(text: str) -> int:
    """Return the greatest of the UTF-8 lengths of a text as it is, after NFC and after NFKC."""
    if text.isascii():
        return len(text)
    length = _utf8_length(text)
    if length > _NORMALISED_BYTES_MAX:
        return length * NORMALISATION_GROWTH_MAX
    if unicodedata.is_normalized("NFKC", text):
        # What is in NFKC is in NFC too.
        return length
    return max(length, *(_utf8_length(unicodedata.normalize(form, text)) for form in ("NFC", "NFKC")))


def json_bytes(value: Any) -> int:
    """Return the bytes that JSON counts for, to be doubled: its dearest compact spelling, of long strings a half.

    What doubles is what stands between the values: indentation, blanks, a comment's slashes. Inside a string nothing is
    added, so of a string's characters only the first few, and those around its line breaks, count twice.
    """
    # What is added for several values is added once for each, so nothing is lost by rounding down here.
    return _spelled(value) - _printed_once(value) // 2 + _indented_deep(value)


def _spelled(value: Any) -> int:
    """Return the length of JSON in its dearest compact spelling."""
    escaped = _ascii(value)
    # Escaping is never shorter than UTF-8, but can be shorter than normalised text: U+FDFA has 6 and 33 bytes.
    dearest = len(escaped) if "\\u" not in escaped else max(len(escaped), text_bytes(_plain(value)))
    return dearest + _EXPONENT_BYTES * len(_EXPONENT.findall(escaped))


def _printed_once(value: Any) -> int:
    """Return how many characters of the strings in JSON a provider prints once, however it lays the JSON out."""
    total, left = 0, [value]
    while left:
        node = left.pop()
        if isinstance(node, str):
            if len(node) > _AROUND_A_STRING and not node.lstrip().startswith(("{", "[")):
                # A string that is JSON itself (the arguments of a call) may be read and laid out again.
                total += max(0, len(node) - _AROUND_A_STRING - _AROUND_A_LINE * node.count("\n"))
        elif isinstance(node, dict):
            left += node.values()
        elif isinstance(node, list):
            left += node
    return total


def _indented_deep(value: Any) -> int:
    """Return a byte for each level below those that doubling pays for, of every value: each stands on a line of its own."""
    total, depth = 0, 0
    level = [value]
    while level:
        total += max(0, depth - _DEPTH_DOUBLED) * len(level)
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (node.values() if isinstance(node, dict) else node)
        ]
        depth += 1
    return total


def schema_growth(schema: Any, *, place: str) -> int:
    """Return what a JSON schema grows by when its local references are inlined, as providers may do.

    CostBoundUnknown where a reference leads to itself or nowhere, or where inlining more than doubles the schema.
    """
    spelled = _ascii(schema)
    if not any(f'"{name}"' in spelled for name in _REFERENCES):
        return 0
    plain = _spelled(schema)
    inlined = _Inliner(root=schema, place=place).size(schema, depth=0, at_root=True)
    if inlined > _GROWTH_MAX * plain:
        raise _unbounded(place, f"its references make it more than {_GROWTH_MAX} times as large when they are inlined")
    return max(0, inlined - plain)


@dataclass(slots=True)
class MediaFound:
    """The media met while a request is walked, counted by kind and detail."""

    items: dict[tuple[MediaKind, str | None], Media] = field(default_factory=dict)

    def add(self, kind: MediaKind, place: str, *, detail: str | None = None) -> None:
        """Count one more; the place of the first is kept."""
        known = self.items.get((kind, detail))
        self.items[kind, detail] = (
            Media(kind=kind, field=place, detail=detail) if known is None else replace(known, count=known.count + 1)
        )

    def found(self) -> tuple[Media, ...]:
        """Return all that was met."""
        return tuple(self.items.values())


@dataclass(slots=True)
class _Inliner:
    root: Any
    place: str
    # The size of each reference's target; None while it is being measured, so that a cycle is seen.
    sizes: dict[str, int | None] = field(default_factory=dict)

    def size(self, node: Any, *, depth: int, at_root: bool = False) -> int:
        if depth > _SCHEMA_DEPTH_MAX:
            raise _unbounded(self.place, "its references nest too deep")
        if isinstance(node, list):
            return 2 - bool(node) + sum(1 + self.size(item, depth=depth + 1) for item in node)
        if not isinstance(node, dict):
            return _spelled(node)
        # Two braces, and a comma between any two members.
        total = 2 - bool(node)
        for key, value in node.items():
            if key in _REFERENCES and isinstance(value, str) and value.startswith("#"):
                total += 1 + self._target_size(value, depth=depth + 1)
            elif not (at_root and key in _DEFINITIONS):
                total += 2 + _spelled(key) + self.size(value, depth=depth + 1)
        return total

    def _target_size(self, reference: str, *, depth: int) -> int:
        if reference in self.sizes:
            known = self.sizes[reference]
            if known is None:
                raise _unbounded(self.place, "one of its references leads to itself")
            return known
        self.sizes[reference] = None
        target = self._target(reference)
        size = self.size(target, depth=depth, at_root=target is self.root)
        self.sizes[reference] = size
        return size

    def _target(self, reference: str) -> Any:
        node = self.root
        for part in unquote(reference[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and name in node:
                node = node[name]
            elif isinstance(node, list) and _INDEX.fullmatch(name) and int(name) < len(node):
                node = node[int(name)]
            else:
                raise _unbounded(self.place, "one of its references leads nowhere")
        return node


def _ascii(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _plain(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _utf8_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _unbounded(place: str, why: str) -> CostBoundUnknown:
    return CostBoundUnknown(
        f"The cost of {place} is not bounded: {why}.",
        facts=RefusalFacts(field=place, next_action="Write the schema without that reference."),
    )
