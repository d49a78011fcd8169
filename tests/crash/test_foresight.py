"""`check` says that a server starts if and only if it does, and after a repair both say yes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.budget import budget
from tests.crash.test_damage import FOLDERS, files, flip, stopped, used
from tests.crash.workload import open_store
from tests.seeds import seeded

from rockgate.store.check.inspect import Report, inspect
from rockgate.store.check.repair import truncate
from rockgate.store.clock import ManualClock
from rockgate.store.errors import CannotRepair, StoreError
from rockgate.store.files.interface import Directory
from rockgate.store.log.beginning import ABORT
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk

Damage = Callable[[MemoryDisk, Random], str]


def opens(directory: Directory) -> Store:
    return open_store(directory, ManualClock())


def starts(disk: MemoryDisk) -> bool:
    """Whether a server that is started on a copy of the disk starts."""
    try:
        opens(disk.killed().root())
    except StoreError:
        return False
    return True


def content_of(disk: MemoryDisk) -> dict[str, bytes]:
    found = {}
    for folder in FOLDERS:
        directory = disk.root().child(folder) if folder else disk.root()
        for name in directory.names():
            file = directory.open(name)
            found[f"{folder}/{name}"] = file.read(0, file.size())
    return found


# Damages


def _some_file(disk: MemoryDisk, random: Random) -> tuple[str, Directory, str, int]:
    found = list(files(disk))
    folder = random.choice(sorted({each[0] for each in found}))
    return random.choice([each for each in found if each[0] == folder])


def flipped(disk: MemoryDisk, random: Random) -> str:
    folder, directory, name, size = _some_file(disk, random)
    at = random.randrange(used(directory, folder, name, size))
    flip(directory, name, at, random.randrange(8))
    return f"flipped byte {at} of {folder}/{name}"


def removed(disk: MemoryDisk, random: Random) -> str:
    folder, directory, name, _ = _some_file(disk, random)
    directory.remove(name)
    return f"removed {folder}/{name}"


def resized(disk: MemoryDisk, random: Random) -> str:
    folder, directory, name, size = _some_file(disk, random)
    new = random.choice((0, 1, 4096, size - 1, size // 2, size + 1, size + 4096))
    new = random.choice((new, random.randrange(size)))
    content = directory.open(name).read(0, new).ljust(new, b"\0")
    directory.create(name).write(0, content)
    return f"gave {folder}/{name} {new} bytes instead of {size}"


def zeroed(disk: MemoryDisk, random: Random) -> str:
    folder, directory, name, size = _some_file(disk, random)
    at = random.randrange(size)
    count = min(size - at, random.choice((8, 100, 4096)))
    directory.open(name).write(at, bytes(count))
    return f"zeroed {count} bytes at {at} of {folder}/{name}"


def scribbled(disk: MemoryDisk, random: Random) -> str:
    folder, directory, name, size = _some_file(disk, random)
    at = random.randrange(size)
    count = min(size - at, random.choice((8, 100, 4096)))
    directory.open(name).write(at, random.randbytes(count))
    return f"scribbled over {count} bytes at {at} of {folder}/{name}"


def unchecked(disk: MemoryDisk, random: Random) -> str:
    disk.root().remove("checkpoint")
    return "removed the checkpoint"


def killed(disk: MemoryDisk, random: Random) -> str:
    disk.root().create(ABORT).close()
    return "left abort there"


def without_snapshots(disk: MemoryDisk, random: Random) -> str:
    snapshots = disk.root().child("snapshots")
    for name in snapshots.names():
        snapshots.remove(name)
    return "removed all snapshots"


DAMAGES: tuple[Damage, ...] = (
    *(flipped,) * 4,
    *(resized,) * 4,
    removed,
    zeroed,
    scribbled,
    unchecked,
    killed,
    without_snapshots,
)


def damaged(disk: MemoryDisk, random: Random) -> list[str]:
    """Damage a disk once or several times; return what was done."""
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        try:
            done.append(random.choice(DAMAGES)(disk, random))
        except FileNotFoundError:
            continue
    return done


# What is foreseen


def positions_of(report: Report) -> list[int]:
    """The positions of the log that are named as damaged."""
    return [each.position for each in report.damage if "/commitlog/" in each.file]


def test_check_says_that_a_server_starts_if_and_only_if_it_does() -> None:
    random = seeded()
    refused = 0
    for round_number in range(budget("foresight_rounds")):
        if round_number % 20 == 0:
            before, _ = stopped(random)
        disk = before.killed()
        what = damaged(disk, random)
        content = content_of(disk)
        report = inspect(disk.root(), opens=opens)
        assert (report.refusal is None) == starts(disk), what
        assert content_of(disk) == content, "a check changes nothing"
        refused += report.refusal is not None
    assert refused, "nothing was refused"


def test_after_a_repair_a_server_starts_and_check_says_so() -> None:
    random = seeded()
    repaired = 0
    for round_number in range(budget("foresight_rounds")):
        if round_number % 20 == 0:
            before, _ = stopped(random)
        disk = before.killed()
        what = damaged(disk, random)
        report = inspect(disk.root(), opens=opens)
        if report.refusal is None:
            continue
        repaired += 1
        position, is_forced = report.repair_at, report.repair_at is None
        truncate(disk.root(), position or 0, opens=opens, is_forced=is_forced)
        assert inspect(disk.root(), opens=opens).refusal is None, what
        assert starts(disk), what
    assert repaired, "nothing was repaired"


def test_every_position_of_the_log_that_check_names_can_be_repaired_at_or_says_where() -> None:
    random = seeded()
    accepted = 0
    for round_number in range(budget("foresight_rounds")):
        if round_number % 20 == 0:
            before, _ = stopped(random)
        disk = before.killed()
        what = damaged(disk, random)
        report = inspect(disk.root(), opens=opens)
        for position in positions_of(report)[:4]:
            copy = disk.killed()
            try:
                truncate(copy.root(), position, opens=opens)
            except CannotRepair as error:
                if "A server could not start" in str(error):
                    continue
                # Damaged before it too: the best position is named instead, if there is any.
                assert len(what) > 1, (what, position)
                if report.refusal is not None:
                    assert error.instead == report.repair_at, (what, position)
                if error.instead is None:
                    assert report.refusal is not None, (what, position)
                    continue
                truncate(copy.root(), error.instead, opens=opens)
            accepted += 1
            assert starts(copy), (what, position)
    assert accepted, "no position was accepted"
