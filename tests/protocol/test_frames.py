import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.frames import LENGTH, MAPPED_SIZE, FrameReader
from rockgate.protocol.kafka.errors import MalformedFrame

MIB = 1024 * 1024


def framed(*bodies: bytes) -> bytes:
    return b"".join(LENGTH.pack(len(body)) + body for body in bodies)


def read_in_pieces(reader: FrameReader, stream: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cuts), len(stream)]
    frames = [
        frame
        for start, end in itertools.pairwise(places)
        for frame in reader.feed(stream[start:end])
    ]
    return [bytes(frame) for frame in frames]


@given(st.data())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_any_split_of_the_stream_gives_the_same_frames(data: st.DataObject) -> None:
    bodies = data.draw(st.lists(st.binary(max_size=40), max_size=6))
    stream = framed(*bodies)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=30))
    assert read_in_pieces(FrameReader(100), stream, cuts) == bodies


def test_one_byte_at_a_time_gives_the_same_frames() -> None:
    bodies = [b"", b"a", bytes(300), b""]
    stream = framed(*bodies)
    assert read_in_pieces(FrameReader(300), stream, list(range(len(stream)))) == bodies


def test_a_frame_in_one_chunk_is_a_slice_of_it() -> None:
    chunk = framed(b"first", b"second")
    frames = FrameReader(100).feed(chunk)
    assert [frame.obj for frame in frames] == [chunk, chunk]


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (-1, "Negative frame length -1, at byte 9 of the stream."),
        (-(2**31), "Negative frame length -2147483648, at byte 9 of the stream."),
        (101, "Frame of 101 bytes exceeds the maximum of 100, at byte 9 of the stream."),
        (
            2**31 - 1,
            "Frame of 2,147,483,647 bytes exceeds the maximum of 100, at byte 9 of the stream.",
        ),
    ],
)
@pytest.mark.parametrize("cuts", [[], [9], [10], [12], list(range(13))])
def test_a_length_that_cannot_be_ends_the_stream_after_the_frames_before_it(
    length: int, reason: str, cuts: list[int]
) -> None:
    reader = FrameReader(100)
    stream = framed(b"whole") + LENGTH.pack(length) + framed(b"never")
    assert read_in_pieces(reader, stream, cuts) == [b"whole"]
    assert isinstance(reader.error, MalformedFrame)
    assert str(reader.error) == reason
    assert reader.feed(framed(b"later")) == []


def test_a_frame_of_the_largest_size_passes() -> None:
    assert read_in_pieces(FrameReader(100), framed(bytes(100)), [50]) == [bytes(100)]


def test_a_length_alone_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        readers = [FrameReader(2**31 - 1) for _ in range(100)]
        for reader in readers:
            reader.feed(LENGTH.pack(2**31 - 1) + b"x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 1024


def test_a_large_frame_in_small_chunks_takes_little_more_than_its_size() -> None:
    size, chunk = 32 * MIB, bytes(64 * 1024)
    reader = FrameReader(size)
    tracemalloc.start()
    try:
        frames = reader.feed(LENGTH.pack(size))
        for _ in range(size // len(chunk)):
            frames += reader.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(frame) for frame in frames] == [size]
    assert peak < 2.5 * size


def test_a_large_frame_is_received_where_it_stays() -> None:
    """What came of it is moved once at most, and its memory is its own."""
    size = 5 * MAPPED_SIZE
    reader = FrameReader(2 * size)
    reader.feed(LENGTH.pack(size) + b"a" * (64 << 10))
    moved = 0
    frames: list[memoryview] = []
    while not frames:
        room = reader.room()
        if room is None:
            frames = reader.feed(b"z" * (64 << 10))
            continue
        count = min(len(room), 64 << 10)
        before = reader._view.obj
        room[:count] = b"z" * count
        frames = reader.filled(count)
        moved += reader._have > MAPPED_SIZE and reader._view.obj is not before
    assert moved == 0
    assert len(frames[0]) == size
    assert bytes(frames[0][:3]) + bytes(frames[0][-3:]) == b"aaazzz"
