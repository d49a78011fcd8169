"""Every kind of damage in every kind of file is found, and named by file, position and reason."""

from __future__ import annotations

from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded
from tests.store.inspected import flip, furnished
from tests.store.keeping import SEGMENT, Keeping

from rockgate.protocol.entry import Entry
from rockgate.protocol.entry.layout import LAYOUTS
from rockgate.store.check.inspect import Report, check
from rockgate.store.check.logwalk import COMMITLOG, Filler, Row, Whole
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.segments import segment_name
from rockgate.store.testing.memory_files import MemoryDisk


def report_on(disk: MemoryDisk) -> Report:
    before = disk.operation_count
    report = check(disk.root())
    assert disk.operation_count == before, "an inspection changes nothing"
    return report


def entries(disk: MemoryDisk) -> list[Whole]:
    row = Row(disk.root().child(COMMITLOG))
    return [piece for piece in row.walk(row.start, row.end) if isinstance(piece, Whole)]


# Nothing is wrong


def test_a_directory_of_which_nothing_is_damaged_is_clean() -> None:
    keeping = furnished()
    report = report_on(keeping.disk)
    assert report.damage == []
    assert report.notes == []
    assert report.is_clean
    assert report.log_start == SEGMENT
    assert report.log_end == report.flushed
    assert report.segment_count >= 2
    assert report.index_count >= 2
    assert report.key_file_count >= 1
    assert report.snapshot_count == 2
    whole = entries(keeping.disk)
    assert report.entry_count == len(whole)
    assert report.batch_count == sum(piece.entry.is_batch for piece in whole) > 0


def test_an_empty_directory_is_clean() -> None:
    report = report_on(MemoryDisk())
    assert report.is_clean
    assert report.entry_count == 0


def test_a_directory_in_use_is_clean_too() -> None:
    keeping = furnished(is_closed=False)
    report = report_on(keeping.disk)
    assert report.damage == []
    keeping.fill("long", 5)
    assert report_on(keeping.disk).entry_count == report.entry_count + 5


def test_what_was_appended_behind_the_flushed_position_counts_as_log() -> None:
    keeping = furnished(is_closed=False)
    flushed = keeping.store.flusher.flushed
    keeping.fill("long", 3)
    report = report_on(keeping.disk.killed())
    assert report.is_clean
    assert report.flushed == flushed < report.log_end == keeping.store.log.end


def test_progress_adds_up_to_the_files() -> None:
    keeping = furnished()
    told: list[int] = []
    report = check(keeping.disk.root(), told.append)
    assert sum(told) == report.segment_count * SEGMENT


# An entry


def _kinds(disk: MemoryDisk) -> dict[str, Whole]:
    """One whole entry of each kind."""
    kinds: dict[str, Whole] = {}
    for piece in entries(disk):
        entry = piece.entry
        kind = "batch" if entry.is_batch else "state" if entry.queue_offset < 0 else "message"
        kinds.setdefault(f"moved {kind}" if entry.sys_flag >> 16 & 1 else kind, piece)
    assert kinds.keys() >= {"message", "batch", "state", "moved message", "moved batch"}
    return kinds


def _fields(entry: Entry, view: memoryview) -> dict[str, int]:
    """Where each field of an entry begins, by the declared layout."""
    at = {"total_size": 0, "magic": 4, "body_crc": 8, "queue_id": 12, "flag": 16}
    at |= {"queue_offset": 20, "position": 28, "sys_flag": 36, "born_ms": 40, "born_host": 48}
    at |= {"store_ms": 56, "store_host": 64, "reconsume_times": 72, "prepared_offset": 76}
    at |= {"body size": 84, "topic size": 88 + entry.body_size}
    if entry.body_size:
        at["body"] = 88
    topic_at = at["topic size"] + (1 if entry.magic & 0xFF == 0xA7 else 2)
    at |= {"topic": topic_at, "properties size": topic_at + len(entry.topic)}
    at |= {"properties": entry.properties_at - entry.start, "checksum": entry.total_size - 5}
    layout = LAYOUTS[entry.magic, False, False]
    declared = {sub.name for sub in layout.subcons}
    assert declared <= at.keys() | {"body"}
    return at


def _damage_each_field() -> list[tuple[str, str]]:
    kinds = _kinds(furnished().disk)
    return [
        (kind, field) for kind, piece in kinds.items() for field in _fields(piece.entry, piece.view)
    ]


@pytest.mark.parametrize(("kind", "field"), _damage_each_field())
def test_a_flipped_bit_in_any_field_of_an_entry_is_found(kind: str, field: str) -> None:
    keeping = furnished()
    piece = _kinds(keeping.disk)[kind]
    place = piece.position % SEGMENT + _fields(piece.entry, piece.view)[field]
    start = piece.position - piece.position % SEGMENT
    for mask in (0x01, 0x80):
        disk = keeping.disk.killed()
        flip(disk, COMMITLOG, segment_name(start), place, mask)
        report = report_on(disk)
        assert not report.is_clean
        [finding] = [each for each in report.damage if not each.is_repairable]
        assert finding.file == f"/commitlog/{start:020d}"
        assert finding.position == piece.position
        assert finding.reason
        # The next entry is found again, and so is the end of the log.
        assert f"{piece.size:,} bytes up to the next valid entry" in finding.reason
        assert report.log_end == report.flushed


def test_a_flipped_bit_in_any_byte_of_a_message_is_found() -> None:
    keeping = furnished()
    piece = _kinds(keeping.disk)["message"]
    start = piece.position - piece.position % SEGMENT
    for place in range(piece.size):
        disk = keeping.disk.killed()
        flip(disk, COMMITLOG, segment_name(start), piece.position % SEGMENT + place)
        [finding] = [each for each in report_on(disk).damage if not each.is_repairable]
        assert finding.position == piece.position, place


def test_two_damaged_entries_are_both_named() -> None:
    keeping = furnished()
    first, _, third = entries(keeping.disk)[:3]
    for piece in (first, third):
        flip(keeping.disk, COMMITLOG, segment_name(SEGMENT), piece.position % SEGMENT + 50)
    report = report_on(keeping.disk)
    assert [each.position for each in report.damage] == [first.position, third.position]


def test_a_damaged_filler_is_found() -> None:
    keeping = furnished()
    row = Row(keeping.disk.root().child(COMMITLOG))
    filler = next(p for p in row.walk(row.start, row.end) if isinstance(p, Filler))
    start = filler.position - filler.position % SEGMENT
    for place in range(8):
        disk = keeping.disk.killed()
        flip(disk, COMMITLOG, segment_name(start), filler.position % SEGMENT + place)
        [finding] = report_on(disk).damage
        assert finding.position == filler.position


# The rest of the log


def _cut_file(disk: MemoryDisk, name: str, size: int) -> None:
    directory = disk.root().child(COMMITLOG)
    content = directory.open(name).read(0, size)
    directory.remove(name)
    file = directory.create(name)
    file.write(0, content)


def test_a_missing_segment_is_found() -> None:
    keeping = furnished()
    names = keeping.disk.root().child(COMMITLOG).names()
    assert len(names) >= 3
    keeping.disk.root().child(COMMITLOG).remove(names[1])
    report = report_on(keeping.disk)
    assert any("a segment is missing" in each.reason for each in report.damage)


@pytest.mark.parametrize("size", [0, 100, 4096, SEGMENT - 1])
def test_a_segment_that_is_too_short_is_found(size: int) -> None:
    keeping = furnished()
    name = keeping.disk.root().child(COMMITLOG).names()[0]
    _cut_file(keeping.disk, name, size)
    report = report_on(keeping.disk)
    assert any(name in each.file for each in report.damage)


def test_a_log_that_is_gone_is_found() -> None:
    keeping = furnished()
    directory = keeping.disk.root().child(COMMITLOG)
    for name in directory.names():
        directory.remove(name)
    assert any(
        "the checkpoint covers the log up to" in each.reason
        for each in report_on(keeping.disk).damage
    )


def test_zeros_in_the_middle_of_the_log_are_found() -> None:
    keeping = furnished()
    _, second, third = entries(keeping.disk)[:3]
    directory = keeping.disk.root().child(COMMITLOG)
    mapping = directory.map(segment_name(SEGMENT), writable=True)
    at = second.position - SEGMENT
    mapping.view[at : at + second.size] = bytes(second.size)
    [finding] = report_on(keeping.disk).damage
    assert (finding.position, third.position - second.position) == (second.position, second.size)
    assert "unwritten space before written entries" in finding.reason


def test_what_a_power_cut_leaves_behind_the_flushed_position_is_a_note() -> None:
    keeping = furnished(is_closed=False)
    end = keeping.store.log.end
    keeping.fill("long", 2)
    disk = keeping.disk.killed()
    start = end - end % SEGMENT
    flip(disk, COMMITLOG, segment_name(start), end % SEGMENT + 60)
    report = report_on(disk)
    assert report.is_clean
    assert report.log_end == end
    [note] = report.notes
    assert f"The log ends at {end}" in note
    assert "checksum" in note


def test_a_group_without_its_end_is_found_where_it_begins() -> None:
    keeping = furnished()
    pieces = entries(keeping.disk)
    index = max(i for i, p in enumerate(pieces) if p.entry.sys_flag >> 17 & 1)
    first, last = pieces[index - 1], pieces[index + 1]
    directory = keeping.disk.root().child(COMMITLOG)
    start = last.position - last.position % SEGMENT
    mapping = directory.map(segment_name(start), writable=True)
    mapping.view[last.position - start + 60] ^= 1
    report = report_on(keeping.disk)
    assert [each.position for each in report.damage] == [first.position]
    assert "checksum" in report.damage[0].reason
    assert "incomplete group of entries" in report.damage[0].reason


# The other files


def _files(disk: MemoryDisk, folder: str) -> list[tuple[str, int]]:
    directory = disk.root().child(folder) if folder else disk.root()
    return [(name, directory.open(name).size()) for name in directory.names()]


def _flip_some(folder: str, random: Random, count: int) -> list[tuple[str, int, Report]]:
    keeping = furnished()
    files = [item for item in _files(keeping.disk, folder) if item[1]]
    found = []
    for _ in range(count):
        name, size = random.choice(files)
        at = random.randrange(size)
        disk = keeping.disk.killed()
        flip(disk, folder, name, at, 1 << random.randrange(8))
        found.append((name, at, report_on(disk)))
    return found


@pytest.mark.parametrize("folder", ["queueindex", "snapshots"])
def test_a_flipped_bit_anywhere_in_a_file_is_found(folder: str) -> None:
    for name, at, report in _flip_some(folder, seeded(), budget("flips")):
        [finding] = report.damage
        assert finding.file == f"/{folder}/{name}", at
        assert finding.is_repairable


def test_a_flipped_bit_in_a_checkpoint_slot_is_found() -> None:
    keeping = furnished()
    for slot in (0, 4096):
        for place in range(52):
            disk = keeping.disk.killed()
            flip(disk, "", "checkpoint", slot + place)
            [finding] = report_on(disk).damage
            assert (finding.file, finding.position) == ("//checkpoint", slot)
            assert "using the other slot" in finding.reason


def test_a_checkpoint_without_a_whole_slot_is_found() -> None:
    keeping = furnished()
    for slot in (0, 4096):
        flip(keeping.disk, "", "checkpoint", slot + 20)
    report = report_on(keeping.disk)
    assert [each.is_repairable for each in report.damage] == [False, False]
    assert "the other slot is invalid too" in report.damage[0].reason
    with pytest.raises(StoreCorrupt):
        keeping.open()


def test_a_flipped_bit_in_what_the_key_index_uses_is_found() -> None:
    keeping = furnished()
    [(name, _), *_] = _files(keeping.disk, "index")
    file = keeping.disk.root().child("index").open(name)
    count = int.from_bytes(file.read(36, 4), "big")
    assert count > 10
    slots_at, entries_at = 40, 40 + 40 * 4
    places = [
        *range(40),
        *range(slots_at, entries_at),
        *range(entries_at + 20, entries_at + 20 * count),
    ]
    missed = []
    for place in places:
        disk = keeping.disk.killed()
        flip(disk, "index", name, place)
        report = report_on(disk)
        if not any(each.file == f"/index/{name}" for each in report.damage):
            missed.append(place)
    # Nothing behind the count is read, nor anything before the log's start.
    for place in missed:
        if place < entries_at:
            assert place >= slots_at
        else:
            entry_at = place - (place - entries_at) % 20
            assert int.from_bytes(file.read(entry_at + 4, 8), "big") < SEGMENT
    assert len(missed) < len(places) / 3


def test_a_unit_that_points_elsewhere_is_found_though_its_checksums_hold() -> None:
    keeping = Keeping()
    keeping.topic("orders")
    keeping.fill_segment("orders")
    index = keeping.queue("orders")
    index._tail[8:16] = (77).to_bytes(8, "big")
    keeping.store.checkpointer.take()
    report = report_on(keeping.disk)
    findings = [each for each in report.damage if "queueindex" in each.file]
    assert any("is not at position 77" in each.reason for each in findings)
    assert all(each.is_repairable for each in findings)


# Snapshots


def test_a_log_that_begins_later_without_a_whole_snapshot_is_found() -> None:
    keeping = furnished()
    directory = keeping.disk.root().child("snapshots")
    for name in directory.names():
        flip(keeping.disk, "snapshots", name, 30)
    report = report_on(keeping.disk)
    assert [each.is_repairable for each in report.damage] == [True, True, False]
    assert "there is no valid snapshot" in report.damage[-1].reason
    with pytest.raises(StoreCorrupt):
        keeping.open()
