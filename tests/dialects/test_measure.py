"""The measures are never smaller than what a tokenizer may see."""

import json
import re
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.dialects import measure
from spendgate.dialects.measure import json_bytes, schema_growth, text_bytes
from spendgate.errors import CostBoundUnknown
from tests.dialects.test_json_strict import json_values


@given(text=st.text())
def test_text_is_measured_after_its_dearest_normalisation(text: str) -> None:
    forms = [text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFKC", text)]

    assert text_bytes(text) == max(len(form.encode()) for form in forms)


@pytest.mark.parametrize(
    "text,expected",
    [
        ("", 0),
        ("<|endoftext|>", 13),
        ("é", 2),
        ("\ufdfa", 33),
        ("\U0001d160", 12),
        ("e\u0301", 3),
        ("\ud800", 3),
        ("\ud800\ufdfa", 36),
    ],
)
def test_the_known_traps_of_normalisation_are_measured(text: str, expected: int) -> None:
    assert text_bytes(text) == expected


def test_no_code_point_grows_more_than_the_factor_for_very_long_text() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        plain = len(character.encode("utf-8", "surrogatepass"))
        assert text_bytes(character) <= plain * measure.NORMALISATION_GROWTH_MAX


def test_very_long_text_is_measured_by_the_factor_and_not_normalised() -> None:
    assert text_bytes("\ufdfa" * 1_500_000) == 4_500_000 * 11


@given(value=json_values)
def test_json_is_measured_in_its_dearest_spelling(value: Any) -> None:
    plain = json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    # Doubled, as the bound takes it: never less than the text itself, and than each value with what stands around it.
    assert 2 * json_bytes(value) >= len(json.dumps(value, separators=(",", ":")))
    assert 2 * json_bytes(value) >= text_bytes(plain)


@given(value=json_values)
def test_json_laid_out_in_lines_has_no_more_words_and_signs_than_it_counts_for(value: Any) -> None:
    for indent in (None, 1, 4):
        laid_out = json.dumps(value, indent=indent, ensure_ascii=False)
        # Blanks run together, and a line break with the sign before it, as tokenizers have them (docs/pricing.md).
        pieces = re.findall(r"[\[\]{},]?\n|[ \t]+|[^ \t\n]", laid_out)
        assert sum(
            len(piece.encode("utf-8", "surrogatepass")) if piece.strip() and not piece.endswith(chr(10)) else 1
            for piece in pieces
        ) <= 2 * json_bytes(value)


def test_a_long_string_in_json_counts_once_beside_what_may_stand_around_it() -> None:
    prose = "a tool that looks things up " * 20

    assert 2 * json_bytes({"description": prose}) == len(prose) + 2 * len('{"description":""}') + 16


def test_a_string_of_line_breaks_counts_for_a_comment_on_every_line() -> None:
    # A schema's description becomes a comment of so many lines: each has its slashes, a blank and an end.
    assert 2 * json_bytes("\n" * 500) >= 500 * 4


def test_a_string_that_is_json_itself_counts_twice_since_it_may_be_laid_out_again() -> None:
    arguments = json.dumps({"numbers": [1] * 100}, separators=(",", ":"))

    assert json_bytes(arguments) >= len(arguments)


def test_json_that_grows_by_normalisation_is_measured_so() -> None:
    assert json_bytes(["\ufdfa"]) == 4 + 33


@pytest.mark.parametrize("value", [[1e16], {"a": -1e21}, [0, 1e20], '{"a": 1e16}', "[\n1e16]", "[\t-1.5E+20]"])
def test_a_number_with_an_exponent_may_be_printed_in_full(value: Any) -> None:
    # The bound takes JSON twice; the longest common spelling of such a number has 22 characters and a sign.
    assert 2 * json_bytes(value) >= 23 + 2


def test_a_schema_without_references_does_not_grow() -> None:
    assert schema_growth({"type": "object", "properties": {"$defs": {"type": "string"}}}, place="tools[0]") == 0


def test_definitions_used_once_do_not_grow_a_schema() -> None:
    inner = {"type": "object", "properties": {"street": {"type": "string"}, "town": {"$ref": "#/$defs/Town"}}}
    schema = {
        "$defs": {"Address": inner, "Town": {"type": "string", "description": "a town" * 20}},
        "type": "object",
        "properties": {"home": {"$ref": "#/$defs/Address"}, "$ref": {"type": "string"}},
    }

    assert schema_growth(schema, place="tools[0]") == 0


def test_a_definition_used_twice_is_counted_twice() -> None:
    town = {"type": "string", "description": "a town of the country " * 20}
    schema = {
        "definitions": {"a/b~c": town},
        "properties": {"a": {"$ref": "#/definitions/a~1b~0c"}, "b": {"$ref": "#/definitions/a~1b~0c"}},
        "anyOf": [{"$ref": "#/anyOf/1"}, {"type": "string"}],
    }

    spelled = len(json.dumps(town))
    assert spelled * 0.7 < schema_growth(schema, place="tools[0]") < spelled


@pytest.mark.parametrize(
    "schema,why",
    [
        ({"properties": {"child": {"$ref": "#"}}}, "itself"),
        ({"$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}, "$ref": "#/$defs/A"}, "itself"),
        ({"$dynamicRef": "#node"}, "itself"),
        ({"$recursiveRef": "#"}, "itself"),
        ({"$ref": "#/$defs/missing"}, "nowhere"),
        ({"$ref": "#/anyOf/7", "anyOf": [{}]}, "nowhere"),
        ({"$ref": "#/anyOf/" + "9" * 5000, "anyOf": [{}]}, "nowhere"),
        ({"$ref": "#/type/x", "type": "object"}, "nowhere"),
        ({"$defs": {"A": {"description": "x" * 400}}, "prefixItems": [{"$ref": "#/$defs/A"}] * 9}, "times as large"),
        (
            {
                "$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)}
                | {"d60": {"type": "string"}},
                "$ref": "#/$defs/d0",
            },
            "times as large",
        ),
        (
            {
                "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(900)} | {"d900": {}},
                "$ref": "#/$defs/d0",
            },
            "too deep",
        ),
    ],
)
def test_references_without_a_bound_are_refused(schema: Any, why: str) -> None:
    with pytest.raises(CostBoundUnknown, match=why) as refused:
        schema_growth(schema, place="tools[0].function.parameters")

    assert refused.value.facts.field == "tools[0].function.parameters"


def test_a_remote_reference_is_text() -> None:
    assert schema_growth({"$ref": "https://json-schema.org/draft/2020-12/schema"}, place="tools[0]") == 0
