"""One contract for both kinds of files, then what only a real disk does."""

import ctypes
import errno
import mmap
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import wait_until

from rockgate.store.errors import StoreFull, StoreLocked
from rockgate.store.files.interface import (
    PAGE_SIZE,
    Directory,
    DiskDirectory,
    Mapping,
    replace_file,
)
from rockgate.store.testing.memory_files import MemoryDisk

SIZE = 64 << 10


@pytest.fixture(params=["disk", "memory"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Directory:
    if request.param == "disk":
        return DiskDirectory(tmp_path / "data")
    return MemoryDisk().root()


def content(directory: Directory, name: str) -> bytes:
    file = directory.open(name)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def fill(directory: Directory, name: str, data: bytes) -> None:
    file = directory.create(name)
    file.write(0, data)
    file.close()


# Mappings


def test_an_allocated_file_is_all_zeros_and_of_its_full_size(directory: Directory) -> None:
    mapping = directory.allocate("a", SIZE)
    assert (mapping.name, mapping.size, bytes(mapping.view)) == ("a", SIZE, bytes(SIZE))
    assert content(directory, "a") == bytes(SIZE)
    mapping.close()


def test_allocating_over_a_file_leaves_nothing_of_it(directory: Directory) -> None:
    fill(directory, "a", b"x" * (SIZE + 1))
    mapping = directory.allocate("a", SIZE)
    assert bytes(mapping.view) == bytes(SIZE)
    mapping.close()


def test_what_is_written_to_a_mapping_is_seen_by_every_other_way_to_the_file(
    directory: Directory,
) -> None:
    mapping = directory.allocate("a", SIZE)
    other = directory.map("a", writable=False)
    mapping.write(10, b"one")
    mapping.write(13, memoryview(bytearray(b"two")))
    mapping.view[16:21] = b"three"
    assert bytes(other.view[10:21]) == b"onetwothree"
    assert content(directory, "a")[10:21] == b"onetwothree"
    mapping.close()
    other.close()


def test_a_write_past_the_end_of_a_mapping_is_refused(directory: Directory) -> None:
    mapping = directory.allocate("a", SIZE)
    with pytest.raises(ValueError):
        mapping.write(SIZE - 1, b"xy")
    assert bytes(mapping.view) == bytes(SIZE)
    mapping.close()


def test_a_mapping_for_reading_cannot_be_written(directory: Directory) -> None:
    directory.allocate("a", SIZE).close()
    mapping = directory.map("a", writable=False)
    assert mapping.view.readonly
    with pytest.raises(TypeError):
        mapping.write(0, b"x")
    mapping.close()


def test_a_file_mapped_for_writing_keeps_its_content(directory: Directory) -> None:
    fill(directory, "a", b"abc" * 1000)
    mapping = directory.map("a", writable=True)
    mapping.write(3, b"XYZ")
    mapping.sync()
    mapping.close()
    assert content(directory, "a") == b"abcXYZ" + b"abc" * 998


def test_an_empty_file_cannot_be_mapped(directory: Directory) -> None:
    fill(directory, "a", b"")
    with pytest.raises(ValueError):
        directory.map("a", writable=True)
    with pytest.raises(ValueError):
        directory.map("a", writable=False)


def test_slices_keep_a_closed_and_removed_mapping_readable(directory: Directory) -> None:
    mapping = directory.allocate("a", SIZE)
    mapping.write(0, b"still here")
    part = mapping.view[:10]
    mapping.close()
    directory.remove("a")
    assert bytes(part) == b"still here"


def test_closing_twice_is_as_good_as_once(directory: Directory) -> None:
    mapping = directory.allocate("a", SIZE)
    mapping.close()
    mapping.close()
    file = directory.open("a")
    file.close()
    file.close()


def test_a_closed_file_can_no_longer_be_synced(directory: Directory) -> None:
    mapping, file = directory.allocate("a", SIZE), directory.create("b")
    mapping.close()
    file.close()
    with pytest.raises(ValueError):
        mapping.sync()
    with pytest.raises(ValueError):
        mapping.sync(0, 10)
    with pytest.raises(ValueError):
        file.sync()


@pytest.mark.parametrize("writable", [True, False])
def test_populating_and_prefetching_change_nothing(directory: Directory, writable: bool) -> None:
    first = directory.allocate("a", SIZE)
    first.write(5000, b"kept")
    first.close()
    mapping = directory.map("a", writable=writable)
    mapping.prefetch(100, SIZE)
    if writable:
        mapping.populate(100, SIZE)
    assert bytes(mapping.view[5000:5004]) == b"kept"
    mapping.close()


# Plain files


def test_a_file_reads_what_was_written_and_no_further(directory: Directory) -> None:
    file = directory.create("a")
    file.write(0, b"hello")
    file.write(3, b"p!")
    assert (file.name, file.size(), file.read(1, 100)) == ("a", 5, b"elp!")
    assert file.read(5, 10) == b""
    assert file.read(100, 10) == b""
    assert file.read(0, 0) == b""
    file.sync()
    file.close()


def test_a_write_past_the_end_of_a_file_fills_the_gap_with_zeros(directory: Directory) -> None:
    file = directory.create("a")
    file.write(3, memoryview(b"x"))
    assert file.read(0, 10) == b"\0\0\0x"
    file.close()


def test_creating_over_a_file_empties_it(directory: Directory) -> None:
    fill(directory, "a", b"old")
    file = directory.create("a")
    assert file.size() == 0
    file.close()


@pytest.mark.parametrize("act", ["open", "map", "rename", "remove"])
def test_a_file_that_is_not_there_is_reported_so(directory: Directory, act: str) -> None:
    with pytest.raises(FileNotFoundError):
        if act == "map":
            directory.map("a", writable=False)
        elif act == "rename":
            directory.rename("a", "b")
        else:
            getattr(directory, act)("a")


# Names


def test_names_are_the_files_of_this_directory_sorted(directory: Directory) -> None:
    assert directory.names() == []
    for name in ("b", "c", "a"):
        fill(directory, name, b"")
    directory.child("below").allocate("d", SIZE).close()
    assert directory.names() == ["a", "b", "c"]
    assert directory.child("below").names() == ["d"]


def test_a_renamed_file_replaces_what_had_the_name(directory: Directory) -> None:
    fill(directory, "a", b"new")
    fill(directory, "b", b"old")
    directory.rename("a", "b")
    directory.sync()
    assert directory.names() == ["b"]
    assert content(directory, "b") == b"new"


def test_a_file_renamed_while_open_continues_under_its_new_name(directory: Directory) -> None:
    file = directory.create("a")
    directory.rename("a", "b")
    file.write(0, b"late")
    file.close()
    assert content(directory, "b") == b"late"


def test_renaming_a_file_to_its_own_name_changes_nothing(directory: Directory) -> None:
    fill(directory, "a", b"same")
    directory.rename("a", "a")
    assert content(directory, "a") == b"same"


def test_a_removed_name_is_gone(directory: Directory) -> None:
    fill(directory, "a", b"x")
    directory.remove("a")
    assert directory.names() == []


def test_a_child_is_the_same_directory_every_time(directory: Directory) -> None:
    fill(directory.child("below"), "a", b"x")
    assert content(directory.child("below"), "a") == b"x"
    assert directory.child("below").path.endswith("below")


def test_space_shrinks_by_what_is_allocated_and_never_passes_the_whole(
    directory: Directory,
) -> None:
    free, whole = directory.space()
    assert 0 < free <= whole


def test_replace_file_leaves_the_new_bytes_and_nothing_aside(directory: Directory) -> None:
    replace_file(directory, "a", b"one")
    replace_file(directory, "a", memoryview(b"two"))
    assert directory.names() == ["a"]
    assert content(directory, "a") == b"two"


# Locks


def test_a_locked_directory_is_refused_until_it_is_given_back(directory: Directory) -> None:
    other = DiskDirectory(directory.path) if isinstance(directory, DiskDirectory) else None
    mine = directory.child("data")
    theirs = other.child("data") if other else directory.child("data")
    mine.lock("lock")
    with pytest.raises(StoreLocked, match="is in use by process"):
        theirs.lock("lock")
    theirs.unlock()
    with pytest.raises(StoreLocked):
        theirs.lock("lock")
    mine.unlock()
    theirs.lock("lock")
    theirs.unlock()
    assert theirs.names() == ["lock"]


# The disk's own


def test_an_allocated_file_has_no_holes(tmp_path: Path) -> None:
    directory = DiskDirectory(tmp_path)
    directory.allocate("a", SIZE).close()
    found = os.stat(tmp_path / "a")
    assert (found.st_size, found.st_blocks * 512 >= SIZE) == (SIZE, True)


def test_a_copy_with_holes_is_filled_before_it_is_mapped_for_writing(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", SIZE)
    directory = DiskDirectory(tmp_path)
    directory.map("a", writable=True).close()
    assert os.stat(tmp_path / "a").st_blocks * 512 >= SIZE


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_store_full_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(descriptor: int, at: int, size: int) -> None:
        raise OSError(code, "full")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    directory = DiskDirectory(tmp_path)
    with pytest.raises(StoreFull, match="No space left on device for a"):
        directory.allocate("a", SIZE)
    assert directory.names() == []


def test_a_full_disk_while_a_plain_file_grows_is_store_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, data: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, "full")

    file = DiskDirectory(tmp_path).create("a")
    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(StoreFull, match="No space left on device for a"):
        file.write(0, b"x")
    file.close()


def test_another_error_of_the_disk_is_passed_on_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, at: int, size: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="broken"):
        DiskDirectory(tmp_path).allocate("a", SIZE)


def test_short_writes_and_reads_are_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite, pread = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: pwrite(file, data[:3], at))
    monkeypatch.setattr(os, "pread", lambda file, size, at: pread(file, min(2, size), at))
    file = DiskDirectory(tmp_path).create("a")
    file.write(1, b"abcdefgh")
    assert file.read(0, 100) == b"\0abcdefgh"
    file.close()


def test_a_kernel_without_the_populate_advice_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rockgate.store.files.mapped._MADV_POPULATE_WRITE", 12345)
    mapping = DiskDirectory(tmp_path).allocate("a", SIZE)
    mapping.populate(0, SIZE)
    mapping.write(0, b"x")
    mapping.close()


def test_a_mapping_is_given_back_with_its_last_slice(tmp_path: Path) -> None:
    mapping: Mapping = DiskDirectory(tmp_path).allocate("a", SIZE)
    part = mapping.view[:1]
    mapped = part.obj
    assert isinstance(mapped, mmap.mmap)
    mapping.close()
    with pytest.raises(BufferError):
        mapped.close()
    part.release()


def test_a_range_can_be_synced_alone_and_a_failure_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping = DiskDirectory(tmp_path).allocate("a", SIZE)
    mapping.write(PAGE_SIZE - 5, b"over two pages")
    mapping.sync(PAGE_SIZE - 5, 14)
    mapping.sync(SIZE - 1, 1)

    class Libc:
        @staticmethod
        def msync(address: int, size: int, flags: int) -> int:
            ctypes.set_errno(errno.EIO)
            return -1

    monkeypatch.setattr("rockgate.store.files.mapped._libc", Libc)
    with pytest.raises(OSError, match="a") as failed:
        mapping.sync(0, 1)
    assert failed.value.errno == errno.EIO


LOCKER = """
import sys
from rockgate.store.errors import StoreLocked
from rockgate.store.files.interface import DiskDirectory
try:
    DiskDirectory(sys.argv[1]).lock("lock")
except StoreLocked as error:
    print(error.owner)
else:
    print("taken")
"""


def test_a_sliced_mapping_keeps_its_descriptor_until_it_is_unmapped(tmp_path: Path) -> None:
    """Its last slice may run on the loop, and must not free a removed file's blocks there."""
    directory = DiskDirectory(tmp_path)
    mapping = directory.allocate("a", PAGE_SIZE)
    piece = mapping.view[10:20]
    mapping.close()
    directory.remove("a")
    # The mapping has a descriptor of its own beside ours.
    assert len(descriptors_of(tmp_path)) == 2
    assert bytes(piece) == bytes(10)
    del piece
    wait_until(lambda: not descriptors_of(tmp_path), "both descriptors are closed")


def descriptors_of(path: Path) -> list[str]:
    """What this process has open below a path."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [target for target in found if target.startswith(f"{path}/")]


def lock_elsewhere(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LOCKER, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_second_process_is_refused_and_told_who_has_the_directory(tmp_path: Path) -> None:
    directory = DiskDirectory(tmp_path)
    directory.lock("lock")
    assert lock_elsewhere(tmp_path) == str(os.getpid())
    directory.unlock()


def test_the_lock_of_a_process_that_ended_is_free(tmp_path: Path) -> None:
    assert lock_elsewhere(tmp_path) == "taken"
    directory = DiskDirectory(tmp_path)
    directory.lock("lock")
    directory.unlock()
