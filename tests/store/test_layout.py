"""What a data directory is made of, on a real disk: mapped segments, and one index for each."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import pytest
from tests.house.checkout import ROOT
from tests.store.keeping import HOUR_MS, SEGMENT, Keeping
from tests.world import World

from rockgate.protocol.entry import read
from rockgate.store.config import StoreConfig
from rockgate.store.files import mapped
from rockgate.store.log.commitlog import Draft
from rockgate.store.queues.queueindex import UNIT_SIZE, parse_name
from rockgate.store.store import Store

CONFIG = StoreConfig(segment_bytes=1 << 20, populate_ahead_bytes=1 << 18, key_index=False)


def opened(path: Path) -> Store:
    world = World(CONFIG, path=path)
    world.ensure("orders", 2)
    return world.store


def put(store: Store, body: bytes, queue_id: int = 0) -> int:
    queue = store.queue(store.topics.get("orders"), queue_id)
    return store.appender.message(queue, Draft(b"", 0, 0, body)).position


@pytest.mark.row("S-19")
def test_an_append_is_in_the_file_at_once_and_in_no_buffer_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    synced: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr(mapped.DiskMapping, "sync", lambda *what: synced.append(what))
        position = put(store, b"seen by every other process")
        file = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()
    entry = read(memoryview(file)[position:])
    body = file[position + entry.body_at : position + entry.body_at + entry.body_size]
    assert body == b"seen by every other process"
    assert synced == [], "and no flush has brought it there"
    store.close()


@pytest.mark.row("S-21", "Q-05")
def test_a_segment_has_its_blocks_and_pages_before_the_writer_comes_and_nothing_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    populated: list[tuple[int, int]] = []
    plain = mapped.DiskMapping.populate

    def populate(self: mapped.DiskMapping, at: int, size: int, *, coarsely: bool = False) -> None:
        populated.append((at, at + size))
        plain(self, at, size, coarsely=coarsely)

    monkeypatch.setattr(mapped.DiskMapping, "populate", populate)
    store = opened(tmp_path)
    end = put(store, b"first")
    file = os.stat(tmp_path / "commitlog" / f"{0:020d}")
    assert file.st_size == CONFIG.segment_bytes
    assert file.st_blocks * 512 >= CONFIG.segment_bytes, "no write can find the disk full"
    assert populated[0][0] == 0 and populated[-1][1] >= end + CONFIG.populate_ahead_bytes // 2
    assert resident(tmp_path / "commitlog" / f"{0:020d}", populated[-1][1])
    locked = [
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmLck" in line
    ]
    assert locked[0].split()[1] == "0"
    store.close()


def resident(path: Path, size: int) -> bool:
    """Whether the first bytes of a file are in the page cache."""
    pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    found = (ctypes.c_ubyte * pages)()
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        anchor = ctypes.c_char.from_buffer(view)
        start = ctypes.c_void_p(ctypes.addressof(anchor))
        failed = libc.mincore(start, ctypes.c_size_t(size), found)
        del anchor
    assert not failed
    return all(each & 1 for each in found)


@pytest.mark.row("MODEL-5")
def test_segments_are_of_one_size_and_an_index_is_as_long_as_its_runs_and_goes_with_them() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    counts = [len(keeping.fill_segment("orders")["orders"]) for _ in range(3)]
    root = keeping.disk.root()
    segments, indexes = root.child("commitlog"), root.child("queueindex")
    names = segments.names()
    assert names == [f"{number * SEGMENT:020d}" for number in range(len(names))]
    assert {segments.open(name).size() for name in names} == {SEGMENT}
    keeping.pass_time(1_000)
    sealed = indexes.names()[:3]
    places = [(at * SEGMENT, (at + 1) * SEGMENT) for at in range(3)]
    assert [parse_name(name) for name in sealed] == places
    for name, count in zip(sealed, counts, strict=True):
        assert count * UNIT_SIZE <= indexes.open(name).size() < count * UNIT_SIZE + 1_024
    keeping.clock.advance(HOUR_MS)
    keeping.fill_segment("orders")
    keeping.pass_time(HOUR_MS // 2)
    start = keeping.store.log.start
    assert start == 3 * SEGMENT
    assert [name for name in indexes.names() if name in sealed] == []
    assert indexes.names()[0].startswith(f"{start:020d}-"), "what is left belongs to what is left"


@pytest.mark.row("Q-05")
def test_the_operations_page_says_which_file_systems_suit() -> None:
    page = (ROOT / "docs" / "reference" / "operations.md").read_text(encoding="utf-8")
    [told] = [each for each in page.split("\n\n") if each.startswith("**File systems.**")]
    for name in ("ext4", "XFS", "Btrfs", "ZFS", "NFS", "tmpfs"):
        assert name in told
