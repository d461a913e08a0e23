"""Real tokenizers make no more tokens of a text, or of JSON however it is laid out, than are counted for it.

OpenAI's o200k and cl100k come with the package bpe-openai; what others were tried by hand stands in docs/pricing.md.
"""

from __future__ import annotations

import json
import warnings
from random import Random
from typing import Any, Final

import pytest

from spendgate.core.intake import JSON_FACTOR
from spendgate.dialects.measure import json_bytes, text_bytes
from tests.fuzz import values

with warnings.catch_warnings():
    # It reads its files by a function that Python 3.11 and 3.12 called deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import bpe_openai

_ENCODINGS: Final[dict[str, Any]] = {name: bpe_openai.get_encoding(name) for name in ("o200k_base", "cl100k_base")}
# Python's printer and JavaScript's, by the indentations that are in use.
_LAYOUTS: Final[tuple[dict[str, Any], ...]] = (
    {"separators": (",", ":")},
    {},
    {"indent": 1},
    {"indent": 2},
    {"indent": 4},
    {"indent": 2, "ensure_ascii": False},
    {"ensure_ascii": False},
)
CASES: Final = 3000


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_no_text_has_more_tokens_than_it_is_counted_for(encoding: str) -> None:
    random = Random(11)  # noqa: S311 - it is to be repeated

    for text in (values.text(random, most=40) for _ in range(CASES)):
        assert len(_ENCODINGS[encoding].encode(text, disallowed_special=())) <= text_bytes(text), text


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_no_character_however_often_has_more_tokens_than_it_is_counted_for(encoding: str) -> None:
    # Every 97th of all code points: all of them are tried by the figures of docs/pricing.md.
    for point in range(0, 0x110000, 97):
        if not 0xD800 <= point <= 0xDFFF:
            text = chr(point) * 3
            assert len(_ENCODINGS[encoding].encode(text, disallowed_special=())) <= text_bytes(text), hex(point)


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_json_that_is_nested_deep_has_no_more_tokens_than_it_is_counted_for(encoding: str) -> None:
    for depth in (*range(0, 30, 5), 40, 64, 100, 127):
        for inner in ([], [1] * 60, [[1]] * 60, {"a": [1, "b"]}, [{"a": 1}] * 20):
            value: Any = inner
            for _ in range(depth):
                value = [value]
            counted = JSON_FACTOR * json_bytes(value)
            for layout in _LAYOUTS:
                text = json.dumps(value, **layout)
                assert len(_ENCODINGS[encoding].encode(text, disallowed_special=())) <= counted, (depth, text[-200:])


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_json_in_every_layout_has_no_more_tokens_than_it_is_counted_for(encoding: str) -> None:
    random = Random(12)  # noqa: S311 - it is to be repeated

    for number in range(CASES // 4):
        value = values.schema(random, references=False) if number % 2 else values.value(random, depth=4)
        counted = JSON_FACTOR * json_bytes(value)
        for layout in _LAYOUTS:
            text = json.dumps(value, **layout)
            assert len(_ENCODINGS[encoding].encode(text, disallowed_special=())) <= counted, text
