"""Which offsets later ones supersede, in memory and with a scratch file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from random import Random

import pytest
from tests.seeds import seeded

from rockgate.store.delay.offset_set import OffsetSet
from rockgate.store.errors import StoreFull
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.upkeep.compaction.bodies import EXPIRED, PINNED
from rockgate.store.upkeep.compaction.keymap import KeyMap, row_key
from rockgate.store.workers import InlineJobs


def make(disk: MemoryDisk, *, has_room: bool = True) -> KeyMap:
    return KeyMap(disk.root, lambda: has_room)


def superseded(keys: KeyMap) -> OffsetSet:
    drop = OffsetSet()
    for _ in keys.supersede(InlineJobs, drop):
        pass
    return drop


@pytest.mark.parametrize("writes", [False, True])
def test_all_but_the_last_offset_of_a_key_are_superseded(writes: bool) -> None:
    random: Random = seeded()
    disk = MemoryDisk()
    keys, last = make(disk), {}
    count = 30_000
    for offset in range(count):
        key = b"key %d" % random.randrange(40) * random.choice((1, 1, 1, 5))
        keys.add(row_key(key), offset, 0)
        last[key] = offset
        if writes and keys.wants_write:
            keys.write()
    assert ("keys" in disk.root().names()) == writes
    drop = superseded(keys)
    assert [offset for offset in range(count) if offset not in drop] == sorted(last.values())
    keys.close()
    assert "keys" not in disk.root().names()


def test_keys_of_every_length_are_told_apart() -> None:
    texts = [b"", b"\0", b"a", b"a\0", b"a" * 15, b"a" * 16, b"a" * 15 + b"\0", b"b" * 400]
    rows = {row_key(text) for text in texts}
    assert len(rows) == len(texts)
    assert {len(row) for row in rows} == {16}


def test_an_expired_one_goes_unless_an_older_one_stays() -> None:
    keys = make(MemoryDisk())
    a, b = row_key(b"a"), row_key(b"b")
    keys.add(a, 1, 0)
    keys.add(a, 2, EXPIRED)
    keys.add(b, 3, PINNED)
    keys.add(b, 4, EXPIRED)
    drop = superseded(keys)
    assert [offset for offset in range(5) if offset in drop] == [1, 2]


def test_an_expired_one_that_is_superseded_supersedes_what_is_older() -> None:
    keys = make(MemoryDisk())
    a = row_key(b"a")
    for offset, flags in ((1, 0), (2, EXPIRED), (3, 0)):
        keys.add(a, offset, flags)
    drop = superseded(keys)
    assert [offset for offset in range(5) if offset in drop] == [1, 2]


def test_without_space_nothing_is_written() -> None:
    disk = MemoryDisk()
    keys = make(disk, has_room=False)
    with pytest.raises(StoreFull):
        keys.write()
    assert disk.root().names() == []


def peak_bytes(folder: Path, count: int, *, is_hot: bool) -> int:
    """The most memory that a cleaning of `count` records takes, of one key or of as many."""
    root, drop = DiskDirectory(folder), OffsetSet()
    tracemalloc.start()
    try:
        keys = KeyMap(lambda: root, lambda: True)
        for offset in range(count):
            keys.add(row_key(b"hot" if is_hot else b"key %d" % offset), offset, 0)
            if keys.wants_write:
                keys.write()
        for _ in keys.supersede(InlineJobs, drop):
            pass
        assert len(drop) == (count - 1 if is_hot else 0)
        keys.close()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.row("CMP-4")
@pytest.mark.parametrize("is_hot", [False, True])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, *, is_hot: bool) -> None:
    few, many = (peak_bytes(tmp_path, count, is_hot=is_hot) for count in (80_000, 160_000))
    # Both fill every block once. Rows of 24 bytes would be 1,920,000 bytes more; places of blocks
    # and bits of offsets are not.
    assert many - few < 500_000
