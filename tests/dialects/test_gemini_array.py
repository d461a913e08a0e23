"""Every byte of an array belongs to exactly one frame, however the stream is split, and memory stays bounded."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spendgate.dialects.gemini_array import ArrayReader
from spendgate.dialects.sse import Frame
from tests.dialects.test_json_strict import json_values
from tests.dialects.test_sse import split

elements = st.lists(st.dictionaries(st.text(max_size=6), json_values, max_size=3), max_size=5)
spellings = st.sampled_from([{}, {"indent": 2}, {"ensure_ascii": False}, {"separators": (" ,\r\n", " : ")}])
cuts = st.lists(st.integers(0, 10_000), max_size=20)


def frames(pieces: list[bytes], *, frame_bytes_max: int = 100_000) -> list[Frame]:
    reader = ArrayReader(frame_bytes_max=frame_bytes_max)
    return [frame for piece in pieces for frame in reader.feed(piece)] + reader.end()


@given(values=elements, spelling=spellings, cuts=cuts)
def test_every_element_is_a_frame_and_any_split_gives_the_same(
    values: list[dict[str, Any]], spelling: dict[str, Any], cuts: list[int]
) -> None:
    stream = b" " + json.dumps(values, **spelling).encode("utf-8", "surrogatepass") + b"\n"
    whole = frames([stream])

    assert frames(split(stream, cuts)) == whole
    assert frames([stream[at : at + 1] for at in range(len(stream))]) == whole
    assert b"".join(frame.raw for frame in whole) == stream
    assert [json.loads(frame.data) for frame in whole if frame.data is not None] == json.loads(stream)
    assert all(frame.ended and frame.readable for frame in whole)


@given(stream=st.text(alphabet='[]{},":\\ a1\n').map(str.encode), cuts=cuts)
def test_whatever_comes_no_byte_is_lost_and_none_is_read_twice(stream: bytes, cuts: list[int]) -> None:
    for pieces in ([stream], split(stream, cuts)):
        found = frames(pieces)
        assert b"".join(frame.raw for frame in found) == stream
        assert all(frame.data is None or frame.data in frame.raw for frame in found)


@given(size=st.integers(0, 60), cuts=cuts)
def test_an_element_above_the_limit_passes_unread_and_so_does_what_follows(size: int, cuts: list[int]) -> None:
    stream = json.dumps([{"a": 1}, {"b": "x" * size}, {"c": 3}]).encode()
    found = frames(split(stream, cuts), frame_bytes_max=40)

    assert b"".join(frame.raw for frame in found) == stream
    assert all(len(frame.raw) <= 40 for frame in found if frame.readable)
    unread = next((at for at, frame in enumerate(found) if not frame.readable), len(found))
    assert all(not frame.readable for frame in found[unread:])
