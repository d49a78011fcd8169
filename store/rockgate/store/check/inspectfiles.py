"""Checks the files beside the log: checkpoint, index files, key index, snapshots.

Each check reads a whole file and verifies its checksums and, where there are none or they could
match wrong content, compares it with the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import EntryError
from rockgate.store.check.logwalk import Row, whole_entry
from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.files.interface import Buffer, Directory, Mapping
from rockgate.store.keys.entrykeys import keys_of
from rockgate.store.keys.keyfile import ENTRY, HEADER, SLOT, KeyFile, Shape, key_hash
from rockgate.store.queues.queueindex import UNIT, IndexDamaged, IndexFile, parse_name
from rockgate.store.state.snapshotfile import Header, SnapshotReader
from rockgate.store.upkeep.checkpoint import Checkpoint, read_slots

_KEY_FILE: Final = re.compile(r"(\d{20})-(\d+)-(\d+)")
_SNAPSHOT: Final = re.compile(r"\d{20}-\d{10}")
_BUILT_AGAIN: Final = "rebuilt by the next start"
_SECONDS_MAX: Final = 2**31 - 1


class Finding(NamedTuple):
    """A damaged place."""

    file: str
    position: int
    """Position in the log, or place in a file that is not part of the log."""
    reason: str
    is_repairable: bool = False
    """Whether a start repairs it."""
    is_in_log: bool = True
    """Whether it is a position of the log, at which that can be truncated."""

    def __str__(self) -> str:
        place = "position" if self.is_in_log else "byte"
        return f"{self.file} is damaged at {place} {self.position}: {self.reason.rstrip('.')}."


class MappedFile:
    """A mapped file for reading, with the interface of a plain file."""

    def __init__(self, directory: Directory, name: str) -> None:
        self.name = f"{directory.path}/{name}"
        try:
            self._mapping: Mapping | None = directory.map(name, writable=False)
        except ValueError:
            self._mapping = None  # an empty file cannot be mapped

    def size(self) -> int:
        """Return its size."""
        return self._mapping.size if self._mapping is not None else 0

    def read(self, at: int, size: int) -> bytes:
        """Return up to that many bytes."""
        return bytes(self._mapping.view[at : at + size]) if self._mapping is not None else b""

    def write(self, at: int, data: Buffer) -> None:
        """Never called: the file is read-only."""
        raise AssertionError("an inspected file is read-only")

    def sync(self) -> None:
        """Do nothing: nothing is written."""

    def close(self) -> None:
        """Close it."""
        if self._mapping is not None:
            self._mapping.close()


# The checkpoint


def read_checkpoint(directory: Directory) -> tuple[Checkpoint | None, list[Finding]]:
    """Return the newest valid checkpoint, and the damage to the file."""
    if "checkpoint" not in directory.names():
        return None, []
    file = MappedFile(directory, "checkpoint")
    try:
        slots = read_slots(file)
    finally:
        file.close()
    whole = [slot for slot in slots.values() if isinstance(slot, Checkpoint)]
    findings = []
    for at, slot in slots.items():
        if isinstance(slot, str):
            reason = (
                f"{slot}; using the other slot"
                if whole
                else f"{slot}; the other slot is invalid too"
            )
            findings.append(Finding(file.name, at, reason, bool(whole), is_in_log=False))
    return max(whole, default=None), findings


# Index files of consume queues


def check_indexes(directory: Directory, row: Row, log_end: int) -> tuple[int, list[Finding]]:
    """Check every index file, and that each unit points to its entry."""
    count = 0
    findings = []
    for name in directory.names():
        if parse_name(name) is None:
            continue
        try:
            index = IndexFile(directory, name, whole=True)
        except FileNotFoundError:
            continue
        except IndexDamaged as error:
            findings.append(_derived(f"{directory.path}/{name}", 0, str(error)))
            count += 1
            continue
        count += 1
        try:
            findings += _check_units(index, row, log_end)
        finally:
            index.close()
    return count, findings


def _check_units(index: IndexFile, row: Row, log_end: int) -> Iterator[Finding]:
    """Yield the first unit of an index that does not point to its entry; one is enough."""
    if index.end > log_end or index.start < row.start:
        return
    for run in index.runs():
        for unit in UNIT.iter_unpack(index.units(run.at, run.unit_count)):
            base, position, size, count = unit[:4]
            if row.is_damaged(position):
                continue
            segment = row.find(position)
            view = None if segment is None else segment.mapping.view[position - segment.start :]
            found = None
            if view is not None and len(view) >= envelope.HEAD_SIZE_V4:
                found = envelope.identify(view)
            if found is None or (found[0], found[2], found[3]) != (size, run.queue_id, base):
                reason = f"offset {base} of queue {run.queue_id} is not at position {position}"
                yield _derived(index.path, index.start, reason)
                return
            if count < 1:
                yield _derived(index.path, index.start, f"offset {base} covers {count} offsets")
                return


def _derived(file: str, position: int, reason: str, *, is_in_log: bool = True) -> Finding:
    return Finding(
        file, position, f"{reason}; {_BUILT_AGAIN}", is_repairable=True, is_in_log=is_in_log
    )


# The key index


def check_key_files(directory: Directory, row: Row, log_end: int) -> tuple[int, list[Finding]]:
    """Check every file of the key index, by itself and against the log."""
    count = 0
    findings = []
    for name in directory.names():
        match = _KEY_FILE.fullmatch(name)
        if match is None:
            continue
        count += 1
        start, slots, entries = map(int, match.groups())
        shape = Shape(slots, entries)
        path = f"{directory.path}/{name}"
        try:
            mapping = directory.map(name, writable=False)
        except FileNotFoundError:
            continue
        except ValueError:
            findings.append(_derived(path, 0, "file is empty", is_in_log=False))
            continue
        try:
            problem = _key_file_problem(KeyFile(mapping, shape, start), row, log_end)
        finally:
            mapping.close()
        if problem is not None:
            findings.append(_derived(path, *problem, is_in_log=False))
    return count, findings


def _key_file_problem(file: KeyFile, row: Row, log_end: int) -> tuple[int, str] | None:
    """Return the place and the reason of the first problem of a file; None if it is valid."""
    if file.mapping.size != file.shape.size:
        return 0, f"file is {file.mapping.size:,} bytes, but its name says {file.shape.size:,}"
    if not file.load():
        return 0, "damaged header"
    heads: dict[int, int] = {}
    newest = file.start
    entries_at = file.shape.entries_at
    for index in range(1, file.count):
        at = entries_at + index * ENTRY.size
        key_crc, position, seconds, previous = ENTRY.unpack_from(file.view, at)
        slot = key_crc % file.shape.slot_count
        if previous != heads.get(slot, 0):
            return at, f"entry {index} does not link to entry {heads.get(slot, 0)}"
        heads[slot] = index
        if not newest <= position < file.position:
            return at, f"entry {index} points to position {position}, which is out of order"
        newest = position
        if position >= log_end or position < row.start or row.is_damaged(position):
            continue
        if not _fits(row, position, key_crc, file.begin_ms, seconds):
            return at, f"entry {index} points to position {position}, which does not match it"
    for slot in range(file.shape.slot_count):
        at = HEADER.size + slot * SLOT.size
        (named,) = SLOT.unpack_from(file.view, at)
        # An entry added after the last flush may be in its slot already.
        if named != heads.get(slot, 0) and named < file.count:
            return (
                at,
                f"slot {slot} points to entry {named}, but its newest is {heads.get(slot, 0)}",
            )
    return None


def _fits(row: Row, position: int, key_crc: int, begin_ms: int, seconds: int) -> bool:
    """Say whether the log has an entry with such a key and time at a position."""
    segment = row.find(position)
    if segment is None:
        return False
    try:
        entry = whole_entry(segment, position)
    except EntryError:
        return False
    # The keys of a batch are unknown here: the store does not decode bodies.
    if entry.is_batch:
        if not entry.sys_flag & envelope.INDEXED:
            return False
    else:
        keys = keys_of(envelope.properties_of(segment.mapping.view, entry))
        if not any(key_hash(entry.topic, key) == key_crc for key in keys):
            return False
    elapsed = (entry.store_ms - begin_ms) // 1000
    return seconds == max(-_SECONDS_MAX, min(_SECONDS_MAX, elapsed))


# Snapshots


def check_snapshots(
    directory: Directory,
) -> Iterator[tuple[str, Header | None, Finding | None]]:
    """Yield each snapshot's name with its header, or with its damage."""
    for name in directory.names():
        if not _SNAPSHOT.fullmatch(name):
            continue
        try:
            file = MappedFile(directory, name)
        except FileNotFoundError:
            continue
        try:
            reader = SnapshotReader(file)
            for _, slices in reader.sections():
                for _ in slices:
                    pass
            reader.check_end()
            yield name, reader.header, None
        except StoreCorrupt as damage:
            reason = f"{damage.reason}; the next start uses the other one"
            found = Finding(file.name, damage.position, reason, is_repairable=True, is_in_log=False)
            yield name, None, found
        except FormatTooNew as error:
            yield (
                name,
                None,
                Finding(
                    file.name, 0, f"{error.found}; use the release that wrote it", is_in_log=False
                ),
            )
        finally:
            file.close()
