"""Requests made up from an OpenAPI document: what it allows, and now and then something that it does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from hypothesis import strategies as st

from tests.gateway.test_hostile_bodies import mutated

_NAME: Final = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
_TEXT: Final = st.text(max_size=12) | st.sampled_from(["", " ", "\0", "é", "a" * 300])
_NUMBER: Final = st.sampled_from([0, 1, 2, 16, 20, 4096, 2**31, 2**53])
_SCALARS: Final[Mapping[str, st.SearchStrategy[Any]]] = {"boolean": st.booleans(), "null": st.none()}
_ITEMS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Made:
    """One request. The path is encoded."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes | None


def requests(
    document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]
) -> st.SearchStrategy[Made]:
    """Return requests of one operation."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Made:
        where, query, headers = path, [], {}
        for parameter in operation.get("parameters", ()):
            name, value = parameter["name"], values(parameter["schema"], document)
            if parameter["in"] == "path":
                where = where.replace(f"{{{name}}}", quote(str(draw(value | _NAME)) or "x", safe=":"))
            elif draw(st.integers(0, 2)) == 0:
                drawn_value = str(draw(value | _NAME))
                if parameter["in"] == "query":
                    query.append((name, drawn_value))
                else:
                    # No client sends more than printable ASCII; what does is in odd.py.
                    headers[name] = "".join(one for one in drawn_value if " " <= one <= "~").strip()
        body = None
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            whole = draw(values(schema, document))
            body = draw(st.just(json.dumps(whole).encode()) | mutated(whole) | st.binary(max_size=8))
        return Made(method, where, tuple(query), headers, body)

    return drawn()


def values(schema: Mapping[str, Any], document: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of a JSON schema: of the few words that our documents use."""
    if "$ref" in schema:
        return values(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if "anyOf" in schema:
        return st.one_of([values(one, document) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object":
            properties = {name: values(one, document) for name, one in schema.get("properties", {}).items()}
            required = {name: properties.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(required, optional=properties)
        case "array":
            return st.lists(values(schema["items"], document), min_size=schema.get("minItems", 0), max_size=_ITEMS_MAX)
        case "integer" | "number":
            return _NUMBER.filter(lambda number: number >= schema.get("minimum", 0))
        case kind:
            return _SCALARS.get(str(kind), _TEXT)
