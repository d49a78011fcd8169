"""The checkpoint file: the flushed position and what belongs to it.

    slot (52 bytes, at 0 and at 4096)
    magic 8 | sequence 8 | flushed position 8 | indexed position 8 | last store time 8 |
    segment size 8 | checksum 4

docs/internals/recovery.md specifies it. Two slots are written alternately, each in its own page, so
that a power failure during a write leaves the other one intact. The newest valid slot counts; its
flushed position was fsynced before the slot was written.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from rockgate.store.errors import SettingChanged, StoreCorrupt
from rockgate.store.files.interface import PAGE_SIZE, Directory, File, replace_file

_NAME = "checkpoint"
_MAGIC = b"RGCHKPNT"
SLOT = struct.Struct(">8sQQQQQI")
_CHECKED = SLOT.size - 4


class Checkpoint(NamedTuple):
    """The content of a slot."""

    sequence: int = 0
    flushed: int = 0
    """Everything before this position is on disk, and was valid when it was written."""
    indexed: int = 0
    """Units of everything before this position are in index files."""
    last_store_ms: int = 0
    """The newest store timestamp in the log: the next one is never earlier, whatever the clock."""
    segment_bytes: int = 0


def _pack(checkpoint: Checkpoint) -> bytes:
    checked = SLOT.pack(_MAGIC, *checkpoint, 0)[:_CHECKED]
    return checked + struct.pack(">I", crc32(checked))


def replace_checkpoint(directory: Directory, checkpoint: Checkpoint) -> None:
    """Replace the file with one that contains only this checkpoint."""
    slots = [bytes(PAGE_SIZE), bytes(PAGE_SIZE)]
    slots[checkpoint.sequence % 2] = _pack(checkpoint).ljust(PAGE_SIZE, b"\0")
    replace_file(directory, _NAME, b"".join(slots))


def read_slots(file: File) -> dict[int, Checkpoint | str | None]:
    """Return the content of each slot: a checkpoint, what is wrong with it, or None if empty."""
    slots: dict[int, Checkpoint | str | None] = {}
    for at in (0, PAGE_SIZE):
        slot = file.read(at, SLOT.size)
        if not any(slot):
            slots[at] = None if len(slot) == SLOT.size else "file is truncated"
            continue
        if len(slot) < SLOT.size:
            slots[at] = f"slot is {len(slot)} bytes"
            continue
        magic, *fields, crc = SLOT.unpack(slot)
        if magic != _MAGIC:
            slots[at] = "not a checkpoint slot"
        elif crc != crc32(slot[:_CHECKED]):
            slots[at] = "checksum mismatch"
        else:
            slots[at] = Checkpoint(*fields)
    return slots


class CheckpointFile:
    """The file with its two slots."""

    def __init__(self, directory: Directory, segment_bytes: int) -> None:
        """Open the file; without one nothing is known to be flushed.

        `make` creates it after the segments turned out to have the configured size: a file with
        another size would make the next start reject the right setting.
        """
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._file: File | None = None
        self.newest = Checkpoint(segment_bytes=segment_bytes)
        if _NAME in directory.names():
            self._file = directory.open(_NAME)
            self.newest = self._read(self._file, f"{directory.path}/{_NAME}")

    @property
    def is_blank(self) -> bool:
        """Whether there is no checkpoint yet: the file is new, or was lost."""
        return self.newest.sequence == 0

    def make(self, flushed: int = 0) -> None:
        """Create the file if necessary; from now on the log counts as flushed up to a position.

        It is valid from the start, so that a file without a valid slot is always damage.
        """
        if self._file is None:
            replace_checkpoint(self._directory, Checkpoint(segment_bytes=self._segment_bytes))
            self._file = self._directory.open(_NAME)
        self.newest = self.newest._replace(flushed=flushed)

    def _read(self, file: File, path: str) -> Checkpoint:
        found = [slot for slot in read_slots(file).values() if isinstance(slot, Checkpoint)]
        if not found:
            raise StoreCorrupt(path, 0, "neither slot is valid; the flushed position is unknown")
        newest = max(found)
        if newest.segment_bytes != self._segment_bytes:
            raise SettingChanged(
                "store.segment_bytes",
                made_with=newest.segment_bytes,
                now=self._segment_bytes,
                where=self._directory.path,
            )
        return newest

    def write(self, flushed: int, indexed: int, last_store_ms: int) -> None:
        """Write a new checkpoint durably; what it covers must be on disk already."""
        sequence = self.newest.sequence + 1
        newest = Checkpoint(sequence, flushed, indexed, last_store_ms, self._segment_bytes)
        if self._file is None:
            self.make()
        assert self._file is not None, "the file was made"
        self._file.write(sequence % 2 * PAGE_SIZE, _pack(newest))
        self._file.sync()
        self.newest = newest

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
