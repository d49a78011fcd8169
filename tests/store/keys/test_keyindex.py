"""The key index against a model: what is put is found, whatever happens in between."""

import errno
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.seeds import seeded
from tests.store.keymodel import (
    KEYS,
    TOPICS,
    ModelLog,
    every_answer,
    every_query,
    indexed_positions,
    put_from,
)

from rockgate.protocol.entry import (
    MOVED,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from rockgate.store.clock import ManualClock
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.keys.entrykeys import Loaded, keys_of, loader
from rockgate.store.keys.keyfile import Shape, key_hash
from rockgate.store.keys.keyindex import DEFAULT_SHAPE, KeyIndex
from rockgate.store.log.commitlog import CommitLog, Draft
from rockgate.store.log.segments import Segments
from rockgate.store.testing.memory_files import MemoryDisk, Operation

SMALL = Shape(5, 12)
START_MS = 1_700_000_000_000


def opened(disk: MemoryDisk, log: ModelLog, shape: Shape = SMALL) -> KeyIndex:
    index = KeyIndex(disk.root(), shape)
    put_from(index, log, index.recover(log_end=log.end, rebuild_from=log.start))
    return index


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log() -> ModelLog:
    return ModelLog()


@pytest.fixture
def index(disk: MemoryDisk, log: ModelLog) -> KeyIndex:
    return opened(disk, log)


def append(index: KeyIndex, log: ModelLog, *keys: bytes, topic: bytes = b"orders") -> int:
    position = log.append(topic, list(keys))
    index.put(topic, list(keys), position, log.store_ms)
    return position


# Putting


@pytest.mark.row("I-07")
def test_a_message_is_found_by_its_unique_key_and_by_each_of_its_keys(index: KeyIndex) -> None:
    properties = b"KEYS\x01one two  three \x02UNIQ_KEY\x01FD01\x02TAGS\x01t\x02"
    assert keys_of(properties) == [b"FD01", b"one", b"two", b"three"]
    index.put_entry(b"orders", properties, 0, START_MS)
    for key in keys_of(properties):
        found = index.query(
            b"orders", key, load=lambda at: Loaded(b"orders", keys_of(properties), 1), limit=5
        )
        assert found == [0], key


@pytest.mark.parametrize("properties", [b"", b"TAGS\x01t\x02", b"KEYS\x01\x02", b"KEYS\x01  \x02"])
def test_a_message_without_keys_takes_no_entry(index: KeyIndex, properties: bytes) -> None:
    index.put_entry(b"orders", properties, 0, START_MS)
    assert indexed_positions(index) == []


@pytest.mark.row("I-07")
def test_the_rollback_of_a_transaction_is_not_indexed(index: KeyIndex) -> None:
    kinds = (TRANSACTION_ROLLBACK, TRANSACTION_PREPARED, TRANSACTION_COMMIT, MOVED, 0)
    for position, sys_flag in enumerate(kinds):
        index.put_entry(b"orders", b"KEYS\x01k\x02", position, START_MS, sys_flag)
    assert indexed_positions(index) == [1, 2, 3, 4]


@pytest.mark.row("I-05")
def test_indexing_the_same_entry_again_changes_nothing(index: KeyIndex, log: ModelLog) -> None:
    for number in range(30):
        append(index, log, b"key-%d" % (number % 7), b"key-8")
    before = indexed_positions(index)
    put_from(index, log, 0)
    assert indexed_positions(index) == before


def test_the_same_key_twice_in_a_message_gives_the_message_once(
    index: KeyIndex, log: ModelLog
) -> None:
    position = append(index, log, b"key", b"key")
    assert index.query(b"orders", b"key", load=log.load, limit=5) == [position]


@pytest.mark.row("I-09")
@pytest.mark.row("D-12")
def test_a_full_file_rolls_to_the_next_and_all_topics_share_one_row(
    disk: MemoryDisk, index: KeyIndex, log: ModelLog
) -> None:
    for number in range(40):
        append(index, log, b"key-%d" % (number % 3), topic=TOPICS[number % 3])
    names = disk.root().names()
    assert len(names) == 4
    assert all(name.endswith("-5-12") and len(name) == 25 for name in names)
    assert every_query(index, log) == every_answer(log)


def test_a_message_with_more_keys_than_a_file_holds_is_found_by_the_first_of_them(
    index: KeyIndex, log: ModelLog
) -> None:
    append(index, log, b"first")
    many = [b"%d" % number for number in range(30)]
    position = append(index, log, *many)
    last = append(index, log, b"last")
    found = [bool(index.query(b"orders", key, load=log.load, limit=5)) for key in many]
    # What was left of the first file, and one whole file behind it.
    assert found == [True] * 21 + [False] * 9
    assert index.query(b"orders", b"last", load=log.load, limit=5) == [last]
    assert index.query(b"orders", many[0], load=log.load, limit=5) == [position]


@pytest.mark.row("I-07")
def test_a_full_disk_never_fails_a_message_and_is_made_up_for_later(
    disk: MemoryDisk, index: KeyIndex, log: ModelLog
) -> None:
    disk.capacity = disk.used
    for number in range(30):
        append(index, log, b"key-%d" % (number % 5))
    missed_from = index.missed_from
    assert missed_from is not None
    index.flush()
    assert index.durable_position == missed_from
    index.prepare()
    assert not index.has_room
    index.catch_up(log.walk(missed_from), end=log.end, is_all=True)
    assert index.missed_from == missed_from
    disk.capacity = 1 << 30
    while index.missed_from is not None:
        index.prepare()
        behind = list(log.walk(index.missed_from))
        end = behind[4][2] if len(behind) > 4 else log.end
        if len(behind) > 8:
            # What is appended meanwhile waits for its turn.
            append(index, log, b"key-1")
        index.catch_up(behind[:4], end=end, is_all=end == log.end)
    append(index, log, b"key-1")
    assert every_query(index, log) == every_answer(log)


def test_a_broken_disk_never_fails_a_message(disk: MemoryDisk, log: ModelLog) -> None:
    def refuse(operation: Operation) -> OSError | None:
        return OSError(errno.EIO, "broken") if operation.kind == "allocate" else None

    index = opened(disk, log)
    disk.plan = refuse
    for _ in range(20):
        append(index, log, b"key-1")
    assert index.missed_from == log.positions()[11]
    index.prepare()
    assert not index.has_room


def test_the_next_file_is_made_before_it_is_needed(
    disk: MemoryDisk, index: KeyIndex, log: ModelLog
) -> None:
    index.prepare()
    assert "next" not in disk.root().names()
    for _ in range(9):
        append(index, log, b"key-1")
    index.prepare()
    index.prepare()
    assert disk.root().names()[1:] == ["next"]
    before = disk.operation_count
    for _ in range(5):
        append(index, log, b"key-1")
    assert [operation.kind for operation in disk.operations[before:]] == ["rename"]
    assert every_query(index, log) == every_answer(log)


# Asking


@pytest.mark.row("I-10")
def test_a_query_gives_the_newest_first_up_to_its_limit(index: KeyIndex, log: ModelLog) -> None:
    positions = [append(index, log, b"key") for _ in range(30)]
    for limit in (1, 2, 13, 30, 100):
        found = index.query(b"orders", b"key", load=log.load, limit=limit)
        assert found == positions[::-1][:limit]
    assert index.query(b"orders", b"key", load=log.load, limit=0) == []


@pytest.mark.row("I-10")
def test_a_key_is_found_only_under_its_own_topic(index: KeyIndex, log: ModelLog) -> None:
    append(index, log, b"key", topic=b"orders")
    other = append(index, log, b"key", topic=b"orders-of-a-shop")
    assert index.query(b"orders-of-a-shop", b"key", load=log.load, limit=5) == [other]
    assert index.query(b"no-such-topic", b"key", load=log.load, limit=5) == []


@pytest.mark.row("I-10")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((b"orders", b"order-730025292-yz"), (b"orders", b"order-2123977432-x")),
        # Topic and key are hashed as one text, so these two are one to the hash.
        ((b"a#b", b"c"), (b"a", b"b#c")),
    ],
)
def test_keys_whose_hashes_collide_are_distinguished(
    index: KeyIndex, log: ModelLog, one: tuple[bytes, bytes], other: tuple[bytes, bytes]
) -> None:
    assert key_hash(*one) == key_hash(*other)
    for topic, key in (one, other):
        position = append(index, log, key, topic=topic)
        assert index.query(topic, key, load=log.load, limit=5) == [position]
    assert index.query(*one, load=log.load, limit=5) == [0]


@pytest.mark.row("I-10")
def test_the_time_window_is_exact_to_the_millisecond(index: KeyIndex, log: ModelLog) -> None:
    positions = []
    for _ in range(30):
        log.store_ms += 300
        positions.append(append(index, log, b"key"))
    for first in range(0, 30, 3):
        for last in range(first, 30, 4):
            begin_ms = START_MS + 300 * (first + 1)
            end_ms = START_MS + 300 * (last + 1)
            for early, late in ((0, 0), (1, 0), (0, -1), (-1, 1)):
                window = (begin_ms + early, end_ms + late)
                found = index.query(
                    b"orders",
                    b"key",
                    load=log.load,
                    limit=99,
                    begin_ms=window[0],
                    end_ms=window[1],
                )
                assert found == log.find(b"orders", b"key", *window)


def test_a_message_that_is_gone_is_not_shown(index: KeyIndex, log: ModelLog) -> None:
    append(index, log, b"key")
    second = append(index, log, b"key")
    log.start = second
    assert index.query(b"orders", b"key", load=log.load, limit=5) == [second]


def test_a_query_gives_up_after_so_many_steps(index: KeyIndex, log: ModelLog) -> None:
    positions = [append(index, log, b"key-%d" % (number % 2)) for number in range(100)]
    whole = index.query(b"orders", b"key-0", load=log.load, limit=100)
    assert whole == positions[-2::-2]
    part = index.query(b"orders", b"key-0", load=log.load, limit=100, steps_max=10)
    assert 0 < len(part) <= 10
    assert part == whole[: len(part)]


def test_the_newest_entry_is_known(index: KeyIndex, log: ModelLog) -> None:
    assert (index.last_position, index.last_store_ms) == (-1, 0)
    for _ in range(12):
        log.store_ms += 7
        position = append(index, log, b"key")
        assert (index.last_position, index.last_store_ms) == (position, log.store_ms)


@settings(deadline=None, max_examples=budget("property_examples"))
@given(st.integers(0, 2**32), st.integers(0, 120))
def test_every_answer_is_the_models(seed: int, count: int) -> None:
    random = Random(seed)
    log = ModelLog()
    index = opened(MemoryDisk(), log, Shape(random.randint(1, 9), random.randint(4, 20)))
    for _ in range(count):
        index.put(*log.entry(log.append_random(random)))
        if random.random() < 0.1:
            random.choice((index.prepare, index.flush))()
    assert every_query(index, log) == every_answer(log)
    for _ in range(10):
        topic, key = random.choice(TOPICS), random.choice(KEYS)
        begin_ms, end_ms = sorted(START_MS + random.randint(-(10**9), 200_000) for _ in range(2))
        found = index.query(topic, key, load=log.load, limit=7, begin_ms=begin_ms, end_ms=end_ms)
        assert found == log.find(topic, key, begin_ms, end_ms)[:7]


# The commit log


def real_log() -> CommitLog:
    segments = Segments(MemoryDisk().root(), 1 << 16, 1 << 16)
    segments.start_at(0)
    return CommitLog(segments, ManualClock())


def message(keys: bytes, **changes: Any) -> Draft:
    properties = b"UNIQ_KEY\x01U" + keys + b"\x02KEYS\x01" + keys + b"\x02"
    return Draft(b"orders", 0, 7, b"body", properties, **changes)


def test_entries_of_the_log_are_indexed_by_dispatch_as_appends_index_them(index: KeyIndex) -> None:
    log = real_log()
    positions = [
        log.append(draft).position
        for draft in (
            message(b"one"),
            Draft(b"rmq_sys_rockgate_topics", 0, -1, b"state", b"KEYS\x01one\x02"),
            Draft(b"orders", 0, 8, b"batch", b"KEYS\x01one\x02", batch_count=3),
            message(b"one", sys_flag=TRANSACTION_ROLLBACK),
            message(b"one two"),
        )
    ]
    for view, entry in log.walk(0):
        index.dispatch(view, entry)
    load = loader(log, log.end)
    assert index.query(b"orders", b"one", load=load, limit=9) == [positions[4], positions[0]]
    assert index.query(b"orders", b"Uone two", load=load, limit=9) == [positions[4]]
    assert len(indexed_positions(index)) == 5


def test_a_loader_shows_whole_entries_in_front_of_its_end_and_nothing_else() -> None:
    log = real_log()
    starts = [log.append(message(b"k%d" % number)).position for number in range(5)]
    load = loader(log, starts[4], lambda view, entry: entry.position != starts[1])
    shown = [position for position in range(log.end + 100) if load(position)]
    assert shown == [starts[0], starts[2], starts[3]]
    assert load(1 << 40) is None
    assert load(starts[2]) == Loaded(b"orders", [b"Uk2", b"k2"], START_MS)


# Opening and expiring


def test_an_index_opened_again_needs_nothing_of_the_log(disk: MemoryDisk, log: ModelLog) -> None:
    index = opened(disk, log)
    for number in range(30):
        append(index, log, b"key-%d" % (number % 5))
    index.reached(log.end)
    index.flush()
    assert index.durable_position == log.end
    index.close()
    again = KeyIndex(disk.root(), SMALL)
    assert again.recover(log_end=log.end, rebuild_from=0) == log.end
    assert every_query(again, log) == every_answer(log)


def test_a_log_without_keys_is_not_read_twice(disk: MemoryDisk, log: ModelLog) -> None:
    index = opened(disk, log)
    log.end = 1_000_000
    index.reached(log.end)
    index.flush()
    assert KeyIndex(disk.root(), SMALL).recover(log_end=log.end, rebuild_from=0) == log.end


def test_a_lost_index_is_built_again_from_the_log(disk: MemoryDisk, log: ModelLog) -> None:
    index = opened(disk, log)
    for number in range(30):
        append(index, log, b"key-%d" % (number % 5))
    index.flush()
    for name in disk.root().names():
        disk.root().remove(name)
    again = KeyIndex(disk.root(), SMALL)
    assert again.recover(log_end=log.end, rebuild_from=0) == 0
    put_from(again, log, 0)
    assert every_query(again, log) == every_answer(log)


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_file_has_the_log_put_again_from_there(
    disk: MemoryDisk, log: ModelLog, missing: int
) -> None:
    index = opened(disk, log)
    for number in range(40):
        append(index, log, b"key-%d" % (number % 5))
    index.flush()
    disk.root().remove(disk.root().names()[missing])
    again = KeyIndex(disk.root(), SMALL)
    start = again.recover(log_end=log.end, rebuild_from=0)
    assert start == (log.positions()[11 * missing] if missing else 0)
    put_from(again, log, start)
    assert every_query(again, log) == every_answer(log)


def test_files_keep_the_shape_they_were_made_with(disk: MemoryDisk, log: ModelLog) -> None:
    index = opened(disk, log)
    for number in range(30):
        append(index, log, b"key-%d" % (number % 5))
    index.reached(log.end)
    index.flush()
    again = KeyIndex(disk.root(), Shape(3, 50))
    assert again.recover(log_end=log.end, rebuild_from=0) == log.end
    for number in range(30):
        append(again, log, b"key-%d" % (number % 5))
    assert [name[21:] for name in disk.root().names()] == ["5-12", "5-12", "5-12", "3-50"]
    assert every_query(again, log) == every_answer(log)


def test_files_that_are_not_ours_or_not_whole_are_removed(disk: MemoryDisk, log: ModelLog) -> None:
    root = disk.root()
    for name in ("next", "junk", "00000000000000000000-5-12", "00000000000000000000-0-5"):
        root.create(name).write(0, bytes(140))
    index = opened(disk, log)
    append(index, log, b"key-1")
    assert root.names() == ["00000000000000000000-5-12"]
    assert every_query(index, log) == every_answer(log)


def test_an_index_that_is_behind_the_logs_start_continues_from_there(
    disk: MemoryDisk, log: ModelLog
) -> None:
    index = opened(disk, log)
    append(index, log, b"key-1")
    index.reached(log.end)
    index.flush()
    for _ in range(5):
        log.append(b"orders", [b"key-2"])
    log.start = log.positions()[4]
    again = KeyIndex(disk.root(), SMALL)
    assert again.recover(log_end=log.end, rebuild_from=log.start) == log.start
    put_from(again, log, log.start)
    assert every_query(again, log) == every_answer(log)


def test_files_wholly_below_a_position_are_removed_and_no_others(
    disk: MemoryDisk, log: ModelLog
) -> None:
    index = opened(disk, log)
    for number in range(40):
        append(index, log, b"key-%d" % (number % 5))
    index.flush()
    names = disk.root().names()
    for below, kept in ((0, 0), (10, 0), (11, 1), (21, 1), (22, 2), (39, 3), (40, 3)):
        index.expire([*log.positions(), log.end][below])
        index.prepare()
        assert [name for name in disk.root().names() if name != "next"] == names[kept:]
    log.start = log.positions()[33]
    assert every_query(index, log) == every_answer(log)
    index.flush()
    again = KeyIndex(disk.root(), SMALL)
    assert again.recover(log_end=log.end, rebuild_from=log.start) <= log.end


# Threads


def test_a_sync_that_failed_stops_the_durable_position_for_good(
    disk: MemoryDisk, index: KeyIndex, log: ModelLog
) -> None:
    append(index, log, b"key-1")
    index.flush()
    durable = index.durable_position
    disk.plan = lambda operation: OSError(errno.EIO, "broken") if operation.kind == "sync" else None
    append(index, log, b"key-2")
    with pytest.raises(OSError, match="broken"):
        index.flush()
    disk.plan = None
    append(index, log, b"key-3")
    index.flush()
    assert index.durable_position == durable
    assert every_query(index, log) == every_answer(log)


def test_flushing_while_another_thread_puts_never_counts_what_is_not_there() -> None:
    disk, log, random = MemoryDisk(), ModelLog(), seeded()
    index = opened(disk, log, Shape(50, 100_000))
    failed: list[BaseException] = []
    is_done = threading.Event()

    def flush() -> None:
        try:
            # At least once, however late this thread has its turn.
            is_last = False
            while not is_last:
                is_last = is_done.is_set()
                index.flush()
        except BaseException as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=flush)
    thread.start()
    for _ in range(5000):
        index.put(*log.entry(log.append_random(random)))
    is_done.set()
    thread.join()
    assert not failed
    after = disk.power_cut(random, keep="none")
    again = KeyIndex(after.root(), SMALL)
    start = again.recover(log_end=log.end, rebuild_from=0)
    assert start >= index.durable_position > 0
    put_from(again, log, start)
    assert every_query(again, log) == every_answer(log)


# The real disk


def test_the_default_file_is_allocated_whole_on_a_real_disk(tmp_path: Path) -> None:
    index = KeyIndex(DiskDirectory(tmp_path / "keys"))
    index.recover(log_end=0, rebuild_from=0)
    [file] = list((tmp_path / "keys").iterdir())
    assert file.stat().st_size == DEFAULT_SHAPE.size == 42_000_040
    assert file.stat().st_blocks * 512 >= DEFAULT_SHAPE.size
    index.close()


def test_an_index_on_a_real_disk_is_opened_again(tmp_path: Path) -> None:
    log = ModelLog()
    index = KeyIndex(DiskDirectory(tmp_path), SMALL)
    index.recover(log_end=0, rebuild_from=0)
    for number in range(40):
        append(index, log, b"key-%d" % (number % 5))
        index.prepare()
    index.expire(log.positions()[15])
    index.flush()
    index.prepare()
    index.close()
    log.start = log.positions()[15]
    again = KeyIndex(DiskDirectory(tmp_path), SMALL)
    put_from(again, log, again.recover(log_end=log.end, rebuild_from=log.start))
    assert every_query(again, log) == every_answer(log)
    again.close()
