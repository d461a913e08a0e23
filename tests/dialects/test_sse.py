"""Every byte of a stream belongs to exactly one frame, however the stream is split."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spendgate.dialects.sse import Frame, SseReader

streams = st.lists(
    st.sampled_from(
        ["data: a", "data:b", "data", "event: x", ": note", "id: 7", "data: é😀", "retry", "x" * 30, "", "", ""]
    ).flatmap(lambda line: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda end: line + end)),
    max_size=30,
).map(lambda lines: "".join(lines).encode())


def frames(pieces: list[bytes], *, frame_bytes_max: int = 1000) -> list[Frame]:
    reader = SseReader(frame_bytes_max=frame_bytes_max)
    return [frame for piece in pieces for frame in reader.feed(piece)] + reader.end()


def split(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(places)]


@given(stream=streams, cuts=st.lists(st.integers(0, 10_000), max_size=20))
def test_any_split_gives_the_same_frames_and_loses_no_byte(stream: bytes, cuts: list[int]) -> None:
    whole = frames([stream])

    assert frames(split(stream, cuts)) == whole
    assert frames([stream[i : i + 1] for i in range(len(stream))]) == whole
    assert b"".join(frame.raw for frame in whole) == stream


@given(stream=streams, cuts=st.lists(st.integers(0, 10_000), max_size=20))
def test_a_frame_above_the_limit_passes_raw_and_the_next_is_read_again(stream: bytes, cuts: list[int]) -> None:
    whole = frames([stream], frame_bytes_max=20)
    pieces = frames(split(stream, cuts), frame_bytes_max=20)

    assert b"".join(frame.raw for frame in pieces) == stream
    assert [frame for frame in pieces if frame.readable] == [frame for frame in whole if frame.readable]
    assert all(len(frame.raw) <= 20 for frame in whole if frame.readable)


def test_line_ends_comments_and_data_lines_are_read_as_the_standard_says() -> None:
    stream = b"\xef\xbb\xbf: hello\nevent: a\ndata: 1\ndata:2\ndata:  3\n\n:\r\n\r\ndata\r\rid: 1\n\n"

    assert [(frame.event, frame.data) for frame in frames([stream])] == [
        ("a", b"1\n2\n 3"),
        ("", None),
        ("", b""),
        ("", None),
    ]


def test_a_blank_line_that_ends_nothing_is_a_frame_of_its_own() -> None:
    assert [frame.raw for frame in frames([b"\n\r\ndata: a\n\n\n"])] == [b"\n", b"\r\n", b"data: a\n\n", b"\n"]


def test_a_frame_flows_as_soon_as_it_is_complete() -> None:
    reader = SseReader()

    assert reader.feed(b"data: a\r\n") == []
    assert reader.feed(b"\r") == []
    assert reader.feed(b"\n")[0].data == b"a"


def test_a_last_frame_without_its_blank_line_is_read_at_the_end() -> None:
    for tail in (b"data: a", b"data: a\n", b"data: a\r"):
        assert frames([tail]) == [Frame(raw=tail, data=b"a", ended=False)]


def test_a_last_frame_with_a_bare_return_for_a_blank_line_is_complete_at_the_end() -> None:
    assert frames([b"data: a\n\r"]) == [Frame(raw=b"data: a\n\r", data=b"a")]


def test_memory_is_bounded_by_the_limit_of_a_frame() -> None:
    reader = SseReader(frame_bytes_max=100)

    flowed = [frame for _ in range(1000) for frame in reader.feed(b"x" * 50)]

    assert sum(len(frame.raw) for frame in flowed) >= 1000 * 50 - 150
    assert not any(frame.readable for frame in flowed)


def test_an_oversize_last_frame_stays_unreadable() -> None:
    assert not any(frame.readable for frame in frames([b"x" * 30, b"yy\r"], frame_bytes_max=20))
