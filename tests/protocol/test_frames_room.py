"""Frames that are received where they belong."""

import random

import pytest
from tests.protocol.test_frames import framed

from rockgate.protocol.frames import (
    LENGTH,
    ROOM_MIN,
    SPARE_SIZE,
    SPARES_MAX,
    FrameReader,
    Spares,
)

LARGE = 300_000


def receive(reader: FrameReader, stream: bytes, sizes: list[int]) -> list[bytes]:
    """Read a stream as a socket would: into the room if there is one, else in a chunk."""
    frames = []
    at = turn = 0
    while at < len(stream):
        room = reader.room()
        count = min(sizes[turn % len(sizes)], len(stream) - at)
        turn += 1
        if room is None:
            found = reader.feed(stream[at : at + count])
        else:
            count = min(count, len(room))
            room[:count] = stream[at : at + count]
            found = reader.filled(count)
        frames += [bytes(frame) for frame in found]
        at += count
    return frames


@pytest.mark.parametrize("spares", [None, Spares()], ids=["own", "spare"])
@pytest.mark.parametrize("sizes", [[LARGE * 9], [70_000], [3, 50_000], [1, 2, 5, 40_000, 20_000]])
def test_frames_received_in_place_are_those_of_the_stream(
    spares: Spares | None, sizes: list[int]
) -> None:
    make = random.Random(6).randbytes
    bodies = [make(size) for size in (LARGE, 0, 10, LARGE - 1, SPARE_SIZE + 7, ROOM_MIN, 5, LARGE)]
    reader = FrameReader(2 * SPARE_SIZE, spares)
    assert receive(reader, framed(*bodies), sizes) == bodies


def test_there_is_no_room_where_no_large_frame_is_under_way() -> None:
    reader = FrameReader(LARGE)
    assert reader.room() is None
    reader.feed(framed(b"whole"))
    assert reader.room() is None
    reader.feed(LENGTH.pack(ROOM_MIN - 1))
    assert reader.room() is None


def test_the_room_of_a_frame_ends_with_the_frame() -> None:
    reader = FrameReader(LARGE, Spares())
    reader.feed(LENGTH.pack(LARGE) + bytes(100))
    room = reader.room()
    assert room is not None and len(room) == LARGE - 100


def test_a_length_alone_takes_no_more_than_a_spare() -> None:
    reader = FrameReader(2**31 - 1, Spares())
    reader.feed(LENGTH.pack(2**31 - 1) + bytes(1000))
    room = reader.room()
    assert room is not None and len(room) <= 2000


def test_a_buffer_is_used_again_once_no_one_sees_it() -> None:
    spares = Spares()
    first = spares.take(LARGE)
    assert first is not None
    kept = first[100:200]
    buffer = first.obj
    del first
    other = spares.take(LARGE)
    assert other is not None and other.obj is not buffer, "a slice of it is still kept"
    del kept
    again = spares.take(LARGE)
    assert again is not None and again.obj is buffer


def test_there_are_few_spares_and_none_for_a_frame_that_is_larger() -> None:
    spares = Spares()
    assert spares.take(SPARE_SIZE + 1) is None
    taken = [spares.take(SPARE_SIZE) for _ in range(SPARES_MAX)]
    assert None not in taken
    assert spares.take(1) is None
    taken.pop()
    assert spares.take(1) is not None
