"""JSON is read so that no two parsers can disagree about it."""

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.dialects.json_strict import compact, parse_answer, parse_object, shown
from spendgate.errors import RequestInvalid

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "raw,named",
    [
        (b'{"a":1,"a":2}', "'a' occurs twice"),
        (b'{"a":[{"b":{"max":1,"x":2,"max":3}}]}', "'max' occurs twice"),
        (b'{"a":1,"\\u0061":2}', "'a' occurs twice"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "-Infinity"),
        (b'{"a":1e400}', "out of range"),
        (b'{"a":[-1e999]}', "out of range"),
        (b'{"a":' + b"9" * 5000 + b"}", "5000 digits"),
        (b'{"a":' + b"9" * 41 + b"}", "41 digits"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b'{"a":["\\ude00\\ud83d"]}', "surrogate"),
        (b'\xef\xbb\xbf{"a":1}', "byte order mark"),
        (b'{"a":"\xff"}', "not UTF-8: byte 6"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a":1}x', "Extra data"),
        (b'{"a":1}{"a":1}', "Extra data"),
        (b'{"a":1', "not JSON"),
        (b'{"a":"\n"}', "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b"", "not JSON"),
        (b"[1]", "must be a JSON object"),
        (b'"a"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "more than 128 deep"),
        (b'{"a":' + b"[" * 128 + b"]" * 128 + b"}", "more than 128 deep"),
        (b'{"a":' + b"[" * 500_000, "more than 128 deep"),
    ],
)
def test_a_body_that_two_parsers_could_read_differently_is_refused_by_name(raw: bytes, named: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        parse_object(raw)

    assert named in str(refused.value)


def test_the_duplicate_key_is_the_field_of_the_refusal() -> None:
    with pytest.raises(RequestInvalid) as refused:
        parse_object(b'{"max_tokens":1,"max_tokens":99999}')

    assert refused.value.facts.field == "max_tokens"


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "identity, gzip", "GZIP"])
def test_a_compressed_body_is_refused_unread(encoding: str) -> None:
    with pytest.raises(RequestInvalid, match="compressed") as refused:
        parse_object(b"{}", content_encoding=encoding)

    assert refused.value.facts.field == "content-encoding"


@pytest.mark.parametrize("encoding", [None, "", "identity", " Identity "])
def test_a_plain_body_is_read(encoding: str | None) -> None:
    assert parse_object(b"{}", content_encoding=encoding) == {}


def test_a_body_of_the_largest_size_passes_and_one_byte_more_does_not() -> None:
    assert parse_object(b'{"a":1}', bytes_max=7) == {"a": 1}

    with pytest.raises(RequestInvalid, match="8 bytes; at most 7"):
        parse_object(b'{"a":10}', bytes_max=7)


def test_a_body_of_the_greatest_depth_passes() -> None:
    deepest = b'{"a":' + b"[" * 127 + b'1,"x","\xc3\xa9"' + b"]" * 127 + b"}"

    assert parse_object(deepest)

    with pytest.raises(RequestInvalid, match="more than 2 deep"):
        parse_object(b'{"a":{"b":{}}}', depth_max=2)


def test_text_on_the_deepest_level_is_checked_too() -> None:
    with pytest.raises(RequestInvalid, match="surrogate"):
        parse_object(b'{"a":["\\ud800"]}', depth_max=2)


def test_numbers_keep_their_kind() -> None:
    body = parse_object(b'{"a":1,"b":1.0,"c":1e2,"d":-0.5,"e":18446744073709551615}')

    assert [type(value) for value in body.values()] == [int, float, float, float, int]
    assert body["e"] == 18446744073709551615


@given(body=st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_what_is_parsed_is_what_is_sent(body: dict[str, Any]) -> None:
    assert parse_object(compact(parse_object(compact(body)))) == body


@given(
    raw=st.binary()
    | st.text().map(str.encode)
    | st.text(alphabet='{}[]",:0123456789eE+-.nulltrufas\\ ').map(str.encode)
)
def test_no_body_raises_anything_but_a_refusal(raw: bytes) -> None:
    with suppress(RequestInvalid):
        parse_object(raw)


def test_a_name_is_printed_short_and_in_ascii() -> None:
    assert shown("é" * 100) == "\\xe9" * 16 + "..."
    assert shown("\ud800") == "\\ud800"


def test_an_answers_decimals_stay_exact() -> None:
    assert parse_answer(b'{"cost":0.1,"n":512.0,"large":1e400}') == {
        "cost": Decimal("0.1"),
        "n": Decimal("512.0"),
        "large": Decimal("1e400"),
    }


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e99999999999999999999}',
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 500_000,
        b"[1]x",
        b'{"usage":{"output":100,"output":0}}',
        b'{"usage":{"output":100},"usage":{"output":0}}',
    ],
)
def test_an_answer_that_cannot_be_used_is_none(raw: bytes) -> None:
    assert parse_answer(raw) is None


def test_a_key_that_an_answer_has_twice_is_read_where_both_say_the_same() -> None:
    assert parse_answer(b'{"a":{"b":[1]},"a":{"b":[1]}}') == {"a": {"b": [1]}}


@given(raw=st.binary())
def test_no_answer_raises(raw: bytes) -> None:
    parse_answer(raw)
