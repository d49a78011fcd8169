"""Copying: a data directory made of the primary's snapshot and its log from the start.

docs/internals/replication.md has the order. Until it is complete the file `copying` says so, and a
start begins anew: what is there is no store.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from rockgate.store.errors import StoreCorrupt
from rockgate.store.files.interface import Directory, File
from rockgate.store.log.segments import Segments
from rockgate.store.log.walk import Walk
from rockgate.store.replication.checking import checked_to, written_to
from rockgate.store.state.snapshotfile import read_header
from rockgate.store.upkeep.checkpoint import Checkpoint, replace_checkpoint

log = logging.getLogger(__name__)

COPYING: Final = "copying"
_FILES: Final = ("checkpoint", "directory", "abort")
_CHILDREN: Final = ("commitlog", "queueindex", "index", "snapshots", "delay", "compaction")
_SNAPSHOT: Final = re.compile(r"\d{20}-\d{10}")
_NEW: Final = ".new"


def is_unfinished(directory: Directory) -> bool:
    """Say whether a copy was begun here, and not completed."""
    return COPYING in directory.names()


def clear(directory: Directory) -> None:
    """Remove a store, so that a copy can begin: from the first step on a start begins anew."""
    if not is_unfinished(directory):
        directory.create(COPYING).close()
        directory.sync()
    for name in _CHILDREN:
        if directory.has_child(name):
            child = directory.child(name)
            for each in child.names():
                child.remove(each)
            child.sync()
    for name in (*_FILES, *(each + _NEW for each in _FILES)):
        if name in directory.names():
            directory.remove(name)
    directory.sync()


class Copying:
    """One copy. The directory is not in use."""

    def __init__(self, directory: Directory, segment_bytes: int, start: int) -> None:
        """Begin with the position where the primary's log starts."""
        directory.lock("lock")
        try:
            clear(directory)
            self._directory = directory
            self._segment_bytes = segment_bytes
            self._snapshots = directory.child("snapshots")
            self._segments = Segments(directory.child("commitlog"), segment_bytes, segment_bytes)
            self._segments.start_at(start)
        except BaseException:
            directory.unlock()
            raise
        self._file: File | None = None
        self._file_name = ""
        self._file_size = self._file_place = 0
        self.start = self.received = self.checked = start
        self.needs: int | None = None
        """How far the log must reach; unknown until the snapshot is there."""

    @property
    def is_complete(self) -> bool:
        """Whether the log has all that the snapshot needs."""
        return self.needs is not None and self.checked >= self.needs

    def file(self, name: str, size: int, place: int, data: memoryview) -> None:
        """Write part of the snapshot; parts come in order."""
        if self._file is None:
            if self.needs is not None or not _SNAPSHOT.fullmatch(name):
                raise StoreCorrupt("Replication", place, f"no file {name!r} was due")
            self._file = self._snapshots.create(name + _NEW)
            self._file_name, self._file_size, self._file_place = name, size, 0
        if (name, size, place) != (self._file_name, self._file_size, self._file_place):
            raise StoreCorrupt("Replication", place, f"no part {place} of {name!r} was due")
        self._file.write(place, data)
        self._file_place += len(data)
        if self._file_place < size:
            return
        self._file.sync()
        header = read_header(self._file)
        self._file.close()
        self._file = None
        if header.replay_from < self.start:
            raise StoreCorrupt("Replication", header.replay_from, "the snapshot needs earlier log")
        self._snapshots.rename(name + _NEW, name)
        self._snapshots.sync()
        self.needs = header.needs

    def receive(self, position: int, data: memoryview) -> None:
        """Write bytes of the log that follow what was received."""
        segment = self._segments.active
        if position == self.received == segment.end and data:
            if self.checked < position:
                raise StoreCorrupt("Replication", position, "the segment before it is not whole")
            segment = self._segments.roll()
        self.received = written_to(segment, position, self.received, data)
        self.checked = checked_to(segment, self.checked, self.received)

    def finish(self) -> None:
        """Make a data directory of it, which opens as any other."""
        assert self.is_complete, "something is to come"
        segment = self._segments.active
        at = self.checked - segment.start
        segment.mapping.write(at, bytes(max(0, self.received - self.checked)))
        self._segments.sync(self.start, self._segments.active.end)
        walk = Walk(self._segments, segment.start, self.checked)
        last_store_ms = max((entry.store_ms for _, entry in walk), default=0)
        found = Checkpoint(1, self.checked, self.start, last_store_ms, self._segment_bytes)
        replace_checkpoint(self._directory, found)
        self._directory.remove(COPYING)
        self._directory.sync()
        log.info("log was copied start=%d end=%d", self.start, self.checked)

    def close(self) -> None:
        """Release the directory; without `finish` the next attempt begins anew."""
        if self._file is not None:
            self._file.close()
        self._segments.close()
        self._directory.unlock()
