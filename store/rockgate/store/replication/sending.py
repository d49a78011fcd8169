"""Sending: what a primary reads of its own store for its replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.segments import Segments
from rockgate.store.replication.cutting import NOWHERE, find_cut
from rockgate.store.state.epochs import Epoch, Epochs
from rockgate.store.state.snapshots import Snapshots


class Parts(Protocol):
    """The parts of a store that its replicas get."""

    log: CommitLog
    commit: Commit
    epochs: Epochs
    snapshots: Snapshots

    @property
    def segments(self) -> Segments:
        """The log's files."""


class SentFile(NamedTuple):
    """A snapshot that is being sent: it can be read even if a newer one replaces it."""

    name: str
    size: int
    read: Callable[[int, int], bytes]
    close: Callable[[], None]


class SentLog:
    """A primary's log as its replicas get it."""

    def __init__(self, parts: Parts) -> None:
        self._log, self._commit, self._epochs = parts.log, parts.commit, parts.epochs
        self._snapshots = parts.snapshots
        self.segment_bytes = parts.segments.segment_size

    @property
    def start(self) -> int:
        """The first position that is still there."""
        return self._log.start

    @property
    def end(self) -> int:
        """The end of the log."""
        return self._log.end

    @property
    def committed(self) -> int:
        """The committed position."""
        return min(self._commit.position, self._log.end)

    @property
    def epoch(self) -> int:
        """The epoch of this run."""
        return self._epochs.current

    def piece(self, position: int, size_max: int) -> memoryview | None:
        """Return bytes from a position on, of one segment; None if they are gone."""
        segment = self._log.segment_at(position)
        if segment is None:
            return None
        at = position - segment.start
        end = min(segment.size, self._log.end - segment.start, at + size_max)
        return segment.mapping.view[at:end]

    def cut(self, epochs: Sequence[tuple[int, int, bytes, bytes]], end: int) -> int | None:
        """Return where a replica's log has to end; None if it cannot use its log."""
        if not end:
            return self._log.start
        theirs = [Epoch(*each) for each in epochs]
        position = find_cut(self._epochs.all, self._log.end, theirs, end)
        return None if position == NOWHERE or position < self._log.start else position

    def snapshot(self) -> SentFile | None:
        """Open the newest snapshot."""
        newest = self._snapshots.newest
        if newest is None:
            return None
        file = self._snapshots.file(newest)
        return SentFile(newest.name, file.size(), file.read, file.close)
