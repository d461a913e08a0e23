"""Amazon's binary event stream: what is written is what botocore reads, and nothing is lost on the way through."""

from typing import Any

from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from spendgate.dialects.eventstream import FrameReader, encoded, event, exception

names = st.text(min_size=1, max_size=20)
headers = st.dictionaries(names, st.text(max_size=40), max_size=5)
messages = st.lists(st.tuples(headers, st.binary(max_size=200)), max_size=5)


@given(headers=headers, payload=st.binary(max_size=300))
def test_botocore_reads_what_is_written(headers: dict[str, str], payload: bytes) -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(encoded(headers, payload))
    message = buffer.next()
    found: tuple[Any, bytes] = (message.headers, message.payload)
    assert found == (headers, payload)


@given(messages=messages)
def test_byte_by_byte_gives_the_same_frames_as_all_at_once(messages: list[tuple[dict[str, str], bytes]]) -> None:
    whole = b"".join(encoded(headers, payload) for headers, payload in messages)
    slow = FrameReader()
    frames = [frame for at in range(len(whole)) for frame in slow.feed(whole[at : at + 1])]
    assert frames == FrameReader().feed(whole)
    assert [(frame.headers, frame.payload) for frame in frames] == messages
    assert not slow.is_cut


@given(data=st.binary(max_size=400), good=st.booleans())
def test_every_byte_belongs_to_one_frame_or_to_one_that_has_begun(data: bytes, good: bool) -> None:
    data = (event("metadata", b"{}") if good else b"") + data
    reader = FrameReader()
    passed = b"".join(frame.raw for frame in reader.feed(data))
    assert data.startswith(passed)
    assert reader.is_cut == (passed != data)


def test_a_damaged_frame_has_nothing_but_its_bytes() -> None:
    damaged = bytearray(event("metadata", b"{}"))
    damaged[-6] ^= 1
    (frame,) = FrameReader().feed(bytes(damaged))
    assert (frame.readable, frame.raw, frame.kind) == (False, bytes(damaged), "")


def test_after_a_damaged_length_nothing_is_read_any_more() -> None:
    damaged = bytearray(event("metadata", b"{}"))
    damaged[3] ^= 1
    reader = FrameReader()
    frames = reader.feed(bytes(damaged) + event("metadata", b"{}")) + reader.feed(event("metadata", b"{}"))
    assert [frame.readable for frame in frames] == [False, False]


def test_a_frame_above_the_limit_is_not_kept() -> None:
    reader = FrameReader(frame_bytes_max=64)
    (frame,) = reader.feed(event("metadata", b"x" * 100)[:40])
    assert not frame.readable
    assert not reader.is_cut


def test_an_exception_says_its_name_and_that_it_is_one() -> None:
    (frame,) = FrameReader().feed(exception("throttlingException", b"{}"))
    assert (frame.kind, frame.is_error) == ("throttlingException", True)
