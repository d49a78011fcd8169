"""The faults of the memory kind; what it shares with the disk is in test_files."""

import errno
from random import Random

import pytest
from tests.budget import budget

from rockgate.store.errors import StoreFull
from rockgate.store.files.interface import PAGE_SIZE, Directory, replace_file
from rockgate.store.testing.memory_files import MemoryDisk, Operation, PowerCut
from rockgate.store.testing.memory_tree import Keep

PAGES = 4
SIZE = PAGES * PAGE_SIZE


def content(directory: Directory, name: str) -> bytes:
    file = directory.open(name)
    return file.read(0, file.size())


def cuts(disk: MemoryDisk, keep: Keep = "some") -> list[MemoryDisk]:
    return [disk.power_cut(Random(seed), keep=keep) for seed in range(budget("power_cuts"))]


def synced_file(disk: MemoryDisk, size: int = SIZE) -> Directory:
    root = disk.root()
    mapping = root.allocate("a", size)
    mapping.view[:] = b"o" * size
    mapping.sync()
    root.sync()
    return root


# Power cuts: content


def test_synced_bytes_under_a_synced_name_outlive_every_power_cut() -> None:
    disk = MemoryDisk()
    synced_file(disk)
    for after in cuts(disk):
        assert content(after.root(), "a") == b"o" * SIZE


def test_of_unsynced_pages_every_combination_can_outlive_a_power_cut() -> None:
    disk = MemoryDisk()
    synced_file(disk).map("a", writable=True).view[:] = b"n" * SIZE
    seen = set()
    for after in (disk.power_cut(Random(seed)) for seed in range(500)):
        data = content(after.root(), "a")
        pages = [data[at : at + PAGE_SIZE] for at in range(0, SIZE, PAGE_SIZE)]
        assert all(page in (b"o" * PAGE_SIZE, b"n" * PAGE_SIZE) for page in pages)
        seen.add(tuple(page[:1] for page in pages))
    assert len(seen) == 2**PAGES


def test_writes_past_the_view_and_through_write_are_forgotten_alike() -> None:
    disk = MemoryDisk()
    mapping = synced_file(disk).map("a", writable=True)
    mapping.write(0, b"n")
    mapping.view[PAGE_SIZE] = ord("n")
    data = content(disk.power_cut(Random(0), keep="none").root(), "a")
    assert data == b"o" * SIZE


def test_keeping_all_is_the_visible_image_and_keeping_none_the_synced_one() -> None:
    disk = MemoryDisk()
    root = synced_file(disk)
    root.open("a").write(0, b"n" * (SIZE + 1))
    root.create("b")
    assert content(disk.power_cut(Random(0), keep="all").root(), "a") == b"n" * (SIZE + 1)
    assert disk.power_cut(Random(0), keep="all").root().names() == ["a", "b"]
    assert content(disk.power_cut(Random(0), keep="none").root(), "a") == b"o" * SIZE
    assert disk.power_cut(Random(0), keep="none").root().names() == ["a"]


def test_keeping_a_prefix_loses_the_later_pages_of_a_file() -> None:
    disk = MemoryDisk()
    synced_file(disk).map("a", writable=True).view[:] = b"n" * SIZE
    seen = {content(after.root(), "a") for after in cuts(disk, keep="prefix")}
    assert seen <= {
        (b"n" * at * PAGE_SIZE).ljust(SIZE, b"o") for at in range(PAGES + 1)
    }  # no page after a lost one
    assert len(seen) > 1


def test_a_sync_of_a_range_keeps_its_pages_and_promises_nothing_of_the_others() -> None:
    disk = MemoryDisk()
    mapping = synced_file(disk).map("a", writable=True)
    mapping.view[:] = b"n" * SIZE
    mapping.sync(PAGE_SIZE - 1, 2)
    left = content(disk.power_cut(Random(1), keep="none").root(), "a")
    assert left[: 2 * PAGE_SIZE] == b"n" * 2 * PAGE_SIZE
    assert left[2 * PAGE_SIZE :] == b"o" * (SIZE - 2 * PAGE_SIZE)


def test_a_sync_of_a_range_after_a_failed_one_brings_only_what_was_written_since() -> None:
    disk = MemoryDisk()
    mapping = synced_file(disk).map("a", writable=True)
    mapping.write(0, b"n" * SIZE)
    disk.plan = lambda operation: OSError("no") if operation.kind == "sync" else None
    with pytest.raises(OSError):
        mapping.sync(0, SIZE)
    disk.plan = None
    mapping.write(0, b"m")
    mapping.write(2 * PAGE_SIZE, b"m")
    mapping.sync(0, PAGE_SIZE)
    left = content(disk.power_cut(Random(1), keep="none").root(), "a")
    assert left == b"m" + b"n" * (PAGE_SIZE - 1) + b"o" * (SIZE - PAGE_SIZE)


def test_an_unsynced_growth_leaves_a_size_in_between_and_zeros_for_lost_pages() -> None:
    disk = MemoryDisk()
    root = disk.root()
    root.create("a").write(0, b"n" * SIZE)
    root.sync()
    sizes = set()
    for after in cuts(disk):
        data = content(after.root(), "a")
        assert set(data) <= {0, ord("n")}
        sizes.add(len(data))
    assert {0, SIZE} < sizes


def test_an_allocation_is_of_its_size_only_once_it_was_synced() -> None:
    disk = MemoryDisk()
    root = disk.root()
    mapping = root.allocate("a", SIZE)
    root.sync()
    assert content(disk.power_cut(Random(0), keep="none").root(), "a") == b""
    mapping.sync()
    assert content(disk.power_cut(Random(0), keep="none").root(), "a") == bytes(SIZE)


def test_an_unsynced_truncation_may_leave_the_old_bytes() -> None:
    disk = MemoryDisk()
    synced_file(disk).create("a")
    assert content(disk.power_cut(Random(0), keep="none").root(), "a") == b"o" * SIZE
    assert {len(content(after.root(), "a")) for after in cuts(disk)} > {0, SIZE}


def test_sectors_can_be_torn_by_naming_a_smaller_page_size() -> None:
    disk = MemoryDisk()
    synced_file(disk, PAGE_SIZE).map("a", writable=True).view[:] = b"n" * PAGE_SIZE
    after = [disk.power_cut(Random(seed), page_size=512) for seed in range(20)]
    assert any(set(content(one.root(), "a")) == set(b"on") for one in after)


def test_the_same_seed_cuts_the_same_way() -> None:
    disk = MemoryDisk()
    synced_file(disk).map("a", writable=True).view[:] = b"n" * SIZE
    one, other = (disk.power_cut(Random(7)).root() for _ in range(2))
    assert content(one, "a") == content(other, "a")


def test_the_kernel_may_write_a_page_back_before_it_changes_again() -> None:
    disk = MemoryDisk()
    mapping = synced_file(disk).map("a", writable=True)
    seen = set()
    for seed in range(50):
        mapping.view[:1] = b"1"
        disk.write_back(Random(seed))
        mapping.view[:1] = b"2"
        seen.add(content(disk.power_cut(Random(0), keep="none").root(), "a")[:1])
        mapping.view[:1] = b"o"
        mapping.sync()
    assert seen == {b"o", b"1"}


# Power cuts: names


def test_an_unsynced_name_may_be_there_or_not_while_its_bytes_are_safe() -> None:
    disk = MemoryDisk()
    file = disk.root().create("a")
    file.write(0, b"x")
    file.sync()
    assert {tuple(after.root().names()) for after in cuts(disk)} == {(), ("a",)}
    disk.root().sync()
    assert {tuple(after.root().names()) for after in cuts(disk)} == {("a",)}


def test_an_unsynced_rename_shows_the_old_name_or_the_new_one() -> None:
    disk = MemoryDisk()
    root = synced_file(disk)
    root.rename("a", "b")
    assert {tuple(after.root().names()) for after in cuts(disk)} == {("a",), ("b",)}


def test_an_unsynced_removal_may_come_back_with_its_bytes() -> None:
    disk = MemoryDisk()
    synced_file(disk).remove("a")
    found = {tuple(after.root().names()) for after in cuts(disk)}
    assert found == {(), ("a",)}
    assert content(disk.power_cut(Random(0), keep="none").root(), "a") == b"o" * SIZE


def test_later_changes_of_names_may_outlive_earlier_ones() -> None:
    disk = MemoryDisk()
    disk.root().create("a")
    disk.root().create("b")
    found = {tuple(after.root().names()) for after in cuts(disk)}
    assert found == {(), ("a",), ("b",), ("a", "b")}
    kept = {tuple(after.root().names()) for after in cuts(disk, keep="prefix")}
    assert kept == {(), ("a",), ("a", "b")}


def test_a_child_directory_is_durable_at_once_and_its_names_are_not() -> None:
    disk = MemoryDisk()
    disk.root().child("below").create("a")
    found = {tuple(after.root().child("below").names()) for after in cuts(disk)}
    assert found == {(), ("a",)}
    after = disk.power_cut(Random(0), keep="none")
    after.root().child("below")
    assert after.operation_count == 0


def test_replace_file_is_whole_at_every_cut() -> None:
    for number in range(1, 20):
        disk = MemoryDisk()
        replace_file(disk.root(), "a", b"old" * 5000)
        disk.crash_at = disk.operation_count + number
        disk.crash_keeps = 7
        try:
            replace_file(disk.root(), "a", b"new" * 5000)
        except PowerCut:
            for after in cuts(disk):
                assert content(after.root(), "a") in (b"old" * 5000, b"new" * 5000)
        else:
            assert number == 6  # create, write, sync, rename, sync of the names
            return
    pytest.fail("the crash points never ended")


# Kills


def test_a_killed_process_loses_nothing_that_it_wrote() -> None:
    disk = MemoryDisk()
    root = synced_file(disk)
    root.map("a", writable=True).write(0, b"n")
    root.create("b").write(0, b"plain")
    after = disk.killed().root()
    assert after.names() == ["a", "b"]
    assert content(after, "a")[:2] == b"no"
    assert content(after, "b") == b"plain"


def test_what_a_killed_process_did_not_sync_is_still_lost_by_a_later_power_cut() -> None:
    disk = MemoryDisk()
    root = synced_file(disk)
    root.map("a", writable=True).write(0, b"n")
    root.rename("a", "b")
    after = disk.killed().power_cut(Random(0), keep="none").root()
    assert (after.names(), content(after, "a")) == (["a"], b"o" * SIZE)


def test_successors_are_apart_from_the_disk_they_came_from() -> None:
    disk = MemoryDisk(crash_at=4)
    mapping = synced_file(disk).map("a", writable=True)
    killed, cut = disk.killed(), disk.power_cut(Random(0))
    mapping.view[:1] = b"n"
    with pytest.raises(PowerCut):
        mapping.sync()
    for after in (killed, cut):
        assert content(after.root(), "a") == b"o" * SIZE
        after.root().map("a", writable=True).sync()
    assert not killed.is_dead


def test_a_successor_is_not_locked() -> None:
    disk = MemoryDisk()
    disk.root().lock("lock")
    disk.killed().root().lock("lock")
    disk.power_cut(Random(0)).root().lock("lock")


# Crash points


def run_every_kind(root: Directory) -> None:
    child = root.child("below")
    mapping = child.allocate("a", SIZE)
    mapping.write(0, b"mapped")
    mapping.sync()
    file = root.create("b")
    file.write(0, b"plain")
    file.sync()
    root.rename("b", "c")
    root.remove("c")
    root.sync()


def test_every_operation_is_a_crash_point_and_dead_processes_do_nothing() -> None:
    whole = MemoryDisk()
    run_every_kind(whole.root())
    kinds = [operation.kind for operation in whole.operations]
    assert kinds == [
        *("mkdir", "allocate", "write", "sync"),
        *("create", "write", "sync", "rename", "remove", "sync names"),
    ]
    for number, kind in enumerate(kinds, start=1):
        disk = MemoryDisk(crash_at=number)
        with pytest.raises(PowerCut, match=f"at operation {number}: {kind}"):
            run_every_kind(disk.root())
        with pytest.raises(PowerCut, match="by a dead process"):
            disk.root().create("late")
        assert "late" not in disk.killed().root().names()


@pytest.mark.parametrize("kept", range(7))
def test_a_crash_inside_a_write_keeps_the_first_bytes_of_it(kept: int) -> None:
    disk = MemoryDisk(crash_keeps=kept)
    mapping, file = disk.root().allocate("a", 10), disk.root().create("b")
    disk.crash_at = disk.operation_count + 1
    with pytest.raises(PowerCut):
        mapping.write(2, b"mapped")
    assert content(disk.killed().root(), "a") == (bytes(2) + b"mapped"[:kept]).ljust(10, b"\0")
    disk = disk.killed()
    file = disk.root().open("b")
    disk.crash_at, disk.crash_keeps = 1, kept
    with pytest.raises(PowerCut):
        file.write(0, b"plain!")
    assert content(disk.killed().root(), "b") == b"plain!"[:kept]


def test_a_dying_process_changes_nothing_through_the_views_it_has_left() -> None:
    disk = MemoryDisk(crash_at=2)
    mapping = disk.root().allocate("a", SIZE)
    with pytest.raises(PowerCut):
        mapping.sync()
    mapping.view[:4] = b"late"
    assert content(disk.killed().root(), "a") == bytes(SIZE)


# Errors


def test_a_full_disk_refuses_an_allocation_and_leaves_no_file() -> None:
    disk = MemoryDisk(capacity=SIZE)
    root = disk.root()
    root.allocate("a", SIZE - 1)
    with pytest.raises(StoreFull, match="No space left on device for b"):
        root.allocate("b", 2)
    assert root.names() == ["a"]
    assert root.space() == (1, SIZE)
    root.remove("a")
    assert root.space() == (SIZE, SIZE)
    root.allocate("b", SIZE)


def test_a_full_disk_takes_what_fits_of_a_write() -> None:
    file = MemoryDisk(capacity=5).root().create("a")
    file.write(0, b"123")
    with pytest.raises(StoreFull):
        file.write(3, b"456")
    file.write(0, b"abc")
    assert file.read(0, 10) == b"abc45"


def fail_first_sync(operation: Operation) -> OSError | None:
    is_first = operation.kind == "sync" and operation.number == 3
    return OSError(errno.EIO, "the disk is broken") if is_first else None


def test_a_failed_sync_raises_and_loses_its_pages_for_good() -> None:
    disk = MemoryDisk(plan=fail_first_sync)
    root = disk.root()
    mapping = root.allocate("a", SIZE)
    root.sync()
    mapping.view[:1] = b"1"
    with pytest.raises(OSError, match="the disk is broken"):
        mapping.sync()
    mapping.view[PAGE_SIZE] = ord("2")
    mapping.sync()
    data = content(disk.power_cut(Random(0), keep="none").root(), "a")
    assert (len(data), data[0], data[PAGE_SIZE]) == (SIZE, 0, ord("2"))
    mapping.view[:1] = b"3"
    mapping.sync()
    assert content(disk.power_cut(Random(0), keep="none").root(), "a")[:1] == b"3"


@pytest.mark.parametrize("number", range(1, 11))
def test_a_plan_can_fail_any_operation_before_it_does_anything(number: int) -> None:
    def plan(operation: Operation) -> OSError | None:
        return OSError(errno.EIO, "planned") if operation.number == number else None

    disk = MemoryDisk(plan=plan)
    with pytest.raises(OSError, match="planned"):
        run_every_kind(disk.root())
    assert disk.operation_count == number
