"""One key-index file: RocketMQ's layout, its seal, and what damage does to it."""

import re
import struct
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.store.files.interface import Directory
from rockgate.store.keys.keyfile import ENTRY, HEADER, SLOT, UNORDERED, KeyFile, Shape, key_hash
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

PAGE = (Path(__file__).parents[3] / "docs" / "internals" / "key-index.md").read_text(
    encoding="utf-8"
)
SHAPE = Shape(7, 20)
KEYS = [b"a", b"b", b"c", b"key", b"7F0000010A5C18B4AAC2116BB6A80000"]
START_MS = 1_700_000_000_000
ALWAYS = (0, 2**63 - 1)


@pytest.fixture
def directory() -> Directory:
    return MemoryDisk().root()


def make(directory: Directory, shape: Shape = SHAPE, start: int = 100) -> KeyFile:
    return KeyFile(directory.allocate("a", shape.size), shape, start)


def reopen(directory: Directory, shape: Shape = SHAPE, start: int = 100) -> KeyFile:
    return KeyFile(directory.map("a", writable=True), shape, start)


def put(file: KeyFile, key: bytes, position: int, store_ms: int = START_MS) -> None:
    file.position = position
    assert file.put(b"topic", [key], position, store_ms) == 1


messages = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 2**40)), min_size=1, max_size=9)
"""Keys with how much later than the one before each lies: some in one slot, some the same."""


@given(st.lists(st.tuples(messages, st.integers(-(2**33), 2**44)), max_size=4), st.randoms())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_many_keys_put_together_are_those_put_one_by_one(
    batches: list[tuple[list[tuple[bytes, int]], int]], random: Random
) -> None:
    shape = Shape(7, 40)
    together, one_by_one = make(MemoryDisk().root(), shape), make(MemoryDisk().root(), shape)
    for file in together, one_by_one:
        # What a crash leaves: slots that name entries which are not there.
        for slot in range(0, shape.slot_count, 2):
            SLOT.pack_into(file.view, HEADER.size + SLOT.size * slot, 5 * slot)
    position = 100
    for batch, later_ms in batches:
        positions = []
        for key, distance in batch:
            position += distance
            positions.append(position)
            one_by_one.put(b"topic", [key], position, START_MS + later_ms)
        together.put_all(b"topic", [key for key, _ in batch], positions, START_MS + later_ms)
    for file in together, one_by_one:
        file.position = position
        file.flush()
    assert bytes(together.view) == bytes(one_by_one.view)


def find(file: KeyFile, key: bytes, begin_ms: int = 0, end_ms: int = 2**63 - 1) -> list[int]:
    hits = file.find(b"topic", key, begin_ms, end_ms)
    return [position for position in hits if position is not None]


# Layout


@pytest.mark.row("I-08")
def test_a_file_of_rocketmqs_numbers_has_rocketmqs_size() -> None:
    assert Shape(5_000_000, 20_000_000).size == 420_000_040
    assert (HEADER.size, SLOT.size, ENTRY.size) == (40, 4, 20)


@pytest.mark.row("I-08")
def test_header_slots_and_entries_lie_where_rocketmq_has_them(directory: Directory) -> None:
    file = make(directory)
    put(file, b"one", 100, START_MS)
    put(file, b"two", 150, START_MS + 61_500)
    put(file, b"one", 300, START_MS + 125_000)
    file.flush()
    data = bytes(file.view)
    header = struct.unpack(">qqqqii", data[:40])
    used = len({key_hash(b"topic", key) % 7 for key in (b"one", b"two")})
    assert header == (START_MS, START_MS + 125_000, 100, 300, used, 4)
    crc = key_hash(b"topic", b"one")
    slot_at = 40 + 4 * (crc % 7)
    assert struct.unpack(">i", data[slot_at : slot_at + 4]) == (3,)
    third = 40 + 4 * 7 + 20 * 3
    before = 1 if used == 2 else 2
    assert struct.unpack(">iqii", data[third : third + 20]) == (crc, 300, 125, before)


def test_a_hash_is_crc_32_of_topic_and_key_and_never_negative() -> None:
    assert key_hash(b"orders", b"order-17") == crc32(b"orders#order-17") & 0x7FFFFFFF
    assert all(0 <= key_hash(b"topic", b"%d" % number) < 2**31 for number in range(1000))


@pytest.mark.row("D-11")
def test_a_slot_counts_as_used_when_its_first_entry_comes(directory: Directory) -> None:
    file = make(directory, Shape(1000, 20))
    for position in (100, 150, 200):
        put(file, b"same", position)
    put(file, b"other", 250)
    assert file.used_slots == 2


def test_the_table_on_the_page_is_the_layout() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([a-z ]+) \|", PAGE, re.MULTILINE)
    sizes = [(int(at), int(size)) for at, size, _ in rows]
    assert sizes[:6] == [(0, 8), (8, 8), (16, 8), (24, 8), (32, 4), (36, 4)]
    assert sizes[6:10] == [(0, 4), (4, 8), (12, 4), (16, 4)]
    assert sizes[10:] == [(0, 4), (4, 4), (8, 4), (12, 4), (16, 4)]


# Putting and finding


@pytest.mark.row("I-08")
def test_entries_of_a_key_are_found_newest_first(directory: Directory) -> None:
    file = make(directory)
    for position in (100, 200, 300):
        put(file, b"key", position)
    assert find(file, b"key") == [300, 200, 100]
    assert find(file, b"no such key") == []


def test_an_empty_file_has_nothing(directory: Directory) -> None:
    assert find(make(directory), b"key") == []


@pytest.mark.row("I-09")
def test_a_full_file_takes_as_many_as_fit_and_says_so(directory: Directory) -> None:
    file = make(directory, Shape(3, 4))
    assert file.put(b"topic", [b"a", b"b", b"c", b"d", b"e"], 100, START_MS) == 3
    assert file.is_full
    assert file.put(b"topic", [b"f"], 150, START_MS) == 0
    assert (find(file, b"c"), find(file, b"d")) == ([100], [])


@pytest.mark.row("I-09")
def test_a_slot_with_a_senseless_value_counts_as_empty(directory: Directory) -> None:
    file = make(directory)
    slot_at = HEADER.size + SLOT.size * (key_hash(b"topic", b"key") % SHAPE.slot_count)
    for senseless in (1, 19, 20, 2**31, 2**32 - 1):
        SLOT.pack_into(file.view, slot_at, senseless)
        assert find(file, b"key") == []
    put(file, b"key", 100)
    assert find(file, b"key") == [100]
    assert file.used_slots == 1
    assert ENTRY.unpack_from(file.view, SHAPE.entries_at + ENTRY.size)[3] == 0


@pytest.mark.row("I-09")
def test_times_are_kept_in_seconds_since_the_first_entry_and_bounded(directory: Directory) -> None:
    file = make(directory)
    for position, store_ms in ((100, START_MS), (150, START_MS + 2999), (200, 2**62)):
        put(file, b"key", position, store_ms)
    seconds = [
        ENTRY.unpack_from(file.view, SHAPE.entries_at + ENTRY.size * at)[2] for at in (1, 2, 3)
    ]
    assert seconds == [0, 2, 2**31 - 1]


@pytest.mark.row("I-10")
@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0, 10_000, [400, 300, 200, 100]),
        (2000, 2999, [200]),
        (2001, 2001, [200]),
        (3000, 3999, [300]),
        (-5000, -1, []),
        (9000, 20_000, []),
    ],
)
def test_the_time_window_is_exact_to_the_second(
    directory: Directory, begin: int, end: int, expected: list[int]
) -> None:
    file = make(directory)
    for number in range(4):
        put(file, b"key", 100 * (number + 1), START_MS + 1000 * number + 1000 * (number > 0))
    assert find(file, b"key", START_MS + begin, START_MS + end) == expected


def test_a_walk_ends_at_the_first_entry_that_is_too_old(directory: Directory) -> None:
    file = make(directory, Shape(1, 200))
    for number in range(100):
        put(file, b"key-%d" % number, 100 + number, START_MS + 1000 * number)
    walked = list(file.find(b"topic", b"key-99", START_MS + 90_000, START_MS + 99_000))
    assert len(walked) == 10


def test_an_older_entry_behind_newer_ones_is_found_in_its_own_time(directory: Directory) -> None:
    file = make(directory)
    put(file, b"key", 100, START_MS)
    put(file, b"key", 200, START_MS + 60_000)
    put(file, b"key", 300, START_MS - 3_600_000)
    put(file, b"key", 400, START_MS + 61_000)
    assert find(file, b"key", START_MS - 3_600_999, START_MS - 3_600_000) == [300]
    assert find(file, b"key", START_MS, START_MS + 60_000) == [200, 100]
    file.flush()
    assert HEADER.unpack_from(file.view)[4] & UNORDERED
    assert find(reopened(directory), b"key", 0, START_MS - 1) == [300]


def reopened(directory: Directory) -> KeyFile:
    file = reopen(directory)
    assert file.load()
    return file


# Flushing


def test_what_was_flushed_is_there_when_the_file_is_opened_again(directory: Directory) -> None:
    file = make(directory)
    put(file, b"one", 100)
    put(file, b"two", 200, START_MS + 5000)
    assert file.flush()
    assert file.durable_position == 200
    again = reopened(directory)
    assert (again.count, again.position, again.used_slots) == (3, 200, file.used_slots)
    assert (again.begin_ms, again.end_ms) == (START_MS, START_MS + 5000)
    assert (find(again, b"one"), find(again, b"two")) == ([100], [200])


def test_flushing_again_without_a_change_writes_nothing() -> None:
    disk = MemoryDisk()
    file = make(disk.root())
    put(file, b"one", 100)
    assert file.flush()
    before = disk.operation_count
    assert not file.flush()
    assert disk.operation_count == before


def test_a_file_that_was_never_flushed_is_not_opened(directory: Directory) -> None:
    put(make(directory), b"one", 100)
    assert not reopen(directory).load()


def test_a_file_of_another_start_or_shape_is_not_opened(directory: Directory) -> None:
    file = make(directory)
    put(file, b"one", 100)
    file.flush()
    assert not reopen(directory, start=101).load()
    other = Shape(SHAPE.slot_count + 5, SHAPE.entry_count - 1)
    assert other.size == SHAPE.size
    assert not reopen(directory, other).load()


def test_every_cut_within_a_flush_leaves_the_header_before_or_after_it() -> None:
    for number in range(1, 5):
        for seed in range(20):
            disk = MemoryDisk()
            root = disk.root()
            file = make(root)
            put(file, b"one", 100)
            file.flush()
            root.sync()
            put(file, b"two", 200)
            disk.crash_at = disk.operation_count + number
            with pytest.raises(PowerCut):
                file.flush()
            again = reopened(disk.power_cut(Random(seed)).root())
            assert (again.count, again.position) in ((2, 100), (3, 200))


# Cutting


def test_a_cut_forgets_all_from_a_position_on_and_mends_the_slots(directory: Directory) -> None:
    file = make(directory)
    for number in range(15):
        put(file, b"key-%d" % (number % 4), 100 + 10 * number, START_MS)
    file.flush()
    again = reopened(directory)
    again.cut(185)
    assert [again.position_at(at) for at in range(1, again.count)] == list(range(100, 185, 10))
    for number in range(4):
        positions = [100 + 10 * other for other in range(9) if other % 4 == number]
        assert find(again, b"key-%d" % number) == positions[::-1]
    assert again.durable_position == 185
    assert find(reopened(directory), b"key-3") == find(again, b"key-3")


def test_entries_behind_the_header_are_cut_without_a_look_at_them(directory: Directory) -> None:
    file = make(directory)
    put(file, b"one", 100)
    file.position = 150
    file.flush()
    put(file, b"one", 150)
    put(file, b"two", 200)
    again = reopened(directory)
    again.cut(again.position)
    assert (find(again, b"one"), find(again, b"two")) == ([100], [])
    assert again.used_slots == 1


def test_a_file_cut_to_nothing_starts_its_time_anew(directory: Directory) -> None:
    file = make(directory)
    put(file, b"one", 100, START_MS)
    file.flush()
    file.cut(100)
    put(file, b"one", 100, START_MS - 5000)
    assert (file.begin_ms, file.is_unordered) == (START_MS - 5000, False)
    assert find(file, b"one", START_MS - 5000, START_MS - 5000) == [100]


def test_a_file_that_needs_no_cut_is_not_written() -> None:
    disk = MemoryDisk()
    file = make(disk.root())
    put(file, b"one", 100)
    file.position = 150
    file.flush()
    before = disk.operation_count
    file.cut(150)
    assert [operation.kind for operation in disk.operations[before:]] == ["sync"]


# Damage


def damaged_file() -> tuple[MemoryDisk, KeyFile, dict[bytes, list[int]]]:
    disk = MemoryDisk()
    file = make(disk.root())
    positions: dict[bytes, list[int]] = {}
    for number in range(18):
        key = b"key-%d" % (number % 5)
        put(file, key, 100 + 10 * number, START_MS + 700 * number)
        positions.setdefault(key, []).insert(0, 100 + 10 * number)
    file.position = 500
    file.flush()
    return disk, file, positions


def test_no_flipped_bit_makes_a_walk_long_or_leads_out_of_the_files_stretch() -> None:
    _, file, positions = damaged_file()
    for bit in range(SHAPE.size * 8):
        file.view[bit // 8] ^= 1 << bit % 8
        for key in positions:
            walked = list(file.find(b"topic", key, *ALWAYS))
            assert len(walked) < SHAPE.entry_count
            assert all(100 <= hit <= 500 for hit in walked if hit is not None)
        file.view[bit // 8] ^= 1 << bit % 8
    assert all(find(file, key) == positions[key] for key in positions)


def test_a_slot_that_leads_in_a_circle_ends() -> None:
    _, file, _ = damaged_file()
    for index in range(1, file.count):
        ENTRY.pack_into(file.view, SHAPE.entries_at + ENTRY.size * index, 1, 100, 0, index)
    for slot in range(SHAPE.slot_count):
        SLOT.pack_into(file.view, HEADER.size + SLOT.size * slot, file.count - 1)
    assert len(list(file.find(b"topic", b"key-1", *ALWAYS))) == 1


def test_every_flipped_bit_of_header_and_seal_is_seen_when_the_file_is_opened() -> None:
    disk, file, _ = damaged_file()
    seal = range(SHAPE.entries_at * 8, (SHAPE.entries_at + ENTRY.size) * 8)
    old_checksum = range(seal.start + 12 * 8, seal.start + 16 * 8)
    for bit in (*range(HEADER.size * 8), *seal):
        file.view[bit // 8] ^= 1 << bit % 8
        # The checksum of the header before this one is no longer needed.
        assert reopen(disk.root()).load() == (bit in old_checksum)
        file.view[bit // 8] ^= 1 << bit % 8
    assert reopen(disk.root()).load()


def test_slots_that_name_entries_behind_the_count_are_mended_when_the_file_is_cut() -> None:
    disk, file, positions = damaged_file()
    for slot in range(SHAPE.slot_count):
        SLOT.pack_into(file.view, HEADER.size + SLOT.size * slot, 2**31 + slot)
    again = reopened(disk.root())
    again.cut(again.position)
    assert all(find(again, key) == positions[key] for key in positions)
