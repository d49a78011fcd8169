"""A data directory with something of every kind, for tests that damage it."""

from __future__ import annotations

from tests.store.keeping import HOUR_MS, Keeping

from rockgate.store.files.interface import Directory
from rockgate.store.log.commitlog import Draft
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Intake


def furnished(*, is_closed: bool = True) -> Keeping:
    """Keys, batches, a group, relocated entries, fillers, snapshots; the log starts after 0."""
    keeping = Keeping(
        retention_ms=HOUR_MS, key_index=True, key_index_slots=40, key_index_entries=60
    )
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    add_some(keeping)
    keeping.fill_segment("short")
    keeping.pass_time(2 * HOUR_MS)
    assert keeping.store.log.start > 0
    add_some(keeping)
    keeping.fill_segment("short")
    add_some(keeping)
    keeping.store.checkpointer.take()
    if is_closed:
        keeping.store.close()
        keeping.disk = keeping.disk.killed()
    return keeping


def add_some(keeping: Keeping) -> None:
    queue = keeping.queue("long")
    keeping.fill("long", 4)
    for key in ("a", "b"):
        properties = f"KEYS\x01{key} common\x02UNIQ_KEY\x01{keeping.serial}{key}\x02".encode()
        draft = Draft(b"", 0, 0, key.encode() * 30, properties, born_ms=keeping.clock.now_ms())
        keeping.store.appender.message(queue, draft)
    group = [Intake(queue, Draft(b"", 0, 0, b"part %d" % number)) for number in range(3)]
    keeping.store.appender.group(group)


def flip(disk: MemoryDisk, folder: str, name: str, at: int, mask: int = 0x10) -> None:
    """Change some bits of one byte of a file."""
    directory: Directory = disk.root()
    if folder:
        directory = directory.child(folder)
    mapping = directory.map(name, writable=True)
    mapping.view[at] ^= mask
    mapping.close()
