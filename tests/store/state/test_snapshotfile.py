"""A snapshot's bytes: layout, checks, and what each kind of damage is called."""

import struct
from zlib import crc32

import pytest

from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.files.interface import Directory, File
from rockgate.store.state.snapshotfile import (
    END_MAGIC,
    FRAME_SIZE,
    HEAD_SIZE,
    HEADER_SIZE_MAX,
    MAGIC,
    TRAILER_SIZE,
    Section,
    SnapshotBuilder,
    SnapshotReader,
    header_size,
    pack_header,
    read_header,
)
from rockgate.store.testing.memory_files import MemoryDisk

SLICES = [(0, b"first"), (0, b"second"), (2, b"third" * 1000), (2, b"")]
NAMES = ("topics", "empty", "progress")


def built(directory: Directory, slices: list[tuple[int, bytes]] = SLICES) -> File:
    file = directory.create("s")
    builder = SnapshotBuilder(file, NAMES, replay_from=1000, created_ms=1_700_000_000_000)
    for index, data in slices:
        builder.add(index, data)
    assert builder.finish(needs=2000) == file.size()
    return directory.open("s")


def content(reader: SnapshotReader) -> list[tuple[str, list[bytes]]]:
    found = [(name, list(slices)) for name, slices in reader.sections()]
    reader.check_end()
    return found


def test_slices_come_back_by_fold_in_the_order_they_were_added() -> None:
    reader = SnapshotReader(built(MemoryDisk().root()))
    assert content(reader) == [
        ("topics", [b"first", b"second"]),
        ("empty", []),
        ("progress", [b"third" * 1000, b""]),
    ]


def test_the_header_says_where_a_replay_starts_and_how_much_log_is_needed() -> None:
    header = read_header(built(MemoryDisk().root()))
    assert (header.replay_from, header.needs, header.created_ms) == (1000, 2000, 1_700_000_000_000)
    assert [section.slice_count for section in header.sections] == [2, 0, 2]


def test_the_layout_is_header_slices_trailer_each_with_its_checksum() -> None:
    directory = MemoryDisk().root()
    file = directory.create("s")
    builder = SnapshotBuilder(file, ["f"], replay_from=1, created_ms=3)
    builder.add(0, b"ab")
    builder.finish(needs=2)
    header = (
        MAGIC
        + struct.pack(">HHI", 1, 0, 60)
        + struct.pack(">qqq", 1, 2, 3)
        + struct.pack(">H", 1)
        + b"\x01f"
        + struct.pack(">IQ", 1, 10)
    )
    header += struct.pack(">I", crc32(header))
    frame = struct.pack(">II", 2, crc32(b"ab")) + b"ab"
    trailer = struct.pack(">QI", 90, crc32(frame + header)) + END_MAGIC
    assert file.read(0, 1000) == header + frame + trailer
    assert (len(header), HEAD_SIZE, FRAME_SIZE, TRAILER_SIZE) == (60, 42, 8, 20)
    assert header_size(["f"]) == 60


def test_a_file_that_was_not_finished_has_no_magic() -> None:
    file = MemoryDisk().root().create("s")
    builder = SnapshotBuilder(file, NAMES, 0, 0)
    builder.add(0, bytes(2 << 20))
    assert file.size() > 1 << 20
    with pytest.raises(StoreCorrupt, match="not a snapshot"):
        read_header(file)


def test_slices_a_reader_leaves_are_checked_anyway() -> None:
    directory = MemoryDisk().root()
    file = built(directory)
    at = read_header(file).size + FRAME_SIZE
    file.write(at, b"F")
    reader = SnapshotReader(file)
    with pytest.raises(StoreCorrupt, match="slice checksum mismatch"):
        for _ in reader.sections():
            pass


def test_a_large_file_is_written_in_large_pieces_and_synced_on_the_way() -> None:
    disk = MemoryDisk()
    directory = disk.root()
    built(directory, [(0, bytes(100_000))] * 300)
    kinds = [operation.kind for operation in disk.operations]
    assert kinds.count("write") < 35
    assert kinds.count("sync") == 4


def test_a_whole_file_of_a_later_format_is_refused_and_not_called_damaged() -> None:
    file = built(MemoryDisk().root())
    header = bytearray(file.read(0, read_header(file).size))
    header[9] = 2
    header[-4:] = struct.pack(">I", crc32(header[:-4]))
    file.write(0, header)
    with pytest.raises(FormatTooNew, match="s has format 2; the newest supported is 1"):
        read_header(file)


def test_a_flipped_version_is_damage_and_not_a_later_format() -> None:
    file = built(MemoryDisk().root())
    file.write(9, b"\x02")
    with pytest.raises(StoreCorrupt, match="header checksum mismatch"):
        read_header(file)


def with_header(file: File, header: bytes) -> File:
    file.write(0, header[:-4] + struct.pack(">I", crc32(header[:-4])))
    return file


@pytest.mark.parametrize("size", [0, 45, HEADER_SIZE_MAX + 1, 0xFFFFFFFF])
def test_a_header_size_out_of_bounds_is_never_read(size: int) -> None:
    file = built(MemoryDisk().root())
    file.write(12, struct.pack(">I", size))
    with pytest.raises(StoreCorrupt, match=f"header size {size} is out of range"):
        read_header(file)


@pytest.mark.parametrize("count", [0, 2, 4, 0xFFFF])
def test_a_number_of_folds_that_the_header_does_not_hold_is_refused(count: int) -> None:
    file = built(MemoryDisk().root())
    header = bytearray(file.read(0, read_header(file).size))
    header[40:42] = struct.pack(">H", count)
    with pytest.raises(StoreCorrupt, match="list of folds"):
        read_header(with_header(file, bytes(header)))


def lying_about(section: Section) -> SnapshotReader:
    """A reader of one whole slice of 2 bytes, under a header that says something else of it."""
    directory = MemoryDisk().root()
    file = directory.create("s")
    builder = SnapshotBuilder(file, ["f"], 0, 0)
    builder.add(0, b"ab")
    builder.finish(0)
    file.write(0, pack_header(0, 0, 0, [section]))
    return SnapshotReader(file)


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (Section("f", 0, 10), "has an unexpected length"),
        (Section("f", 2, 10), "frame exceeds its section"),
        (Section("f", 1, 10 + 20), "file size is not"),
        (Section("f", 0xFFFFFFFF, 10), "frame exceeds its section"),
    ],
)
def test_counts_and_sizes_that_do_not_fit_the_slices_are_refused(
    section: Section, reason: str
) -> None:
    with pytest.raises(StoreCorrupt, match=reason):
        content(lying_about(section))


def test_a_slice_longer_than_its_section_is_never_read() -> None:
    file = built(MemoryDisk().root())
    file.write(read_header(file).size, struct.pack(">I", 0xFFFFFFFF))
    with pytest.raises(StoreCorrupt, match="slice size 4294967295 exceeds its section"):
        content(SnapshotReader(file))
