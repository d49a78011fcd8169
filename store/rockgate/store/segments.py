"""The commit log's files: fixed in size, named by start position, mapped, allocated ahead.

An ordered row of segments that touch each other. The writer is always in the last one that holds
entries (`active`); at most one more lies prepared behind it, so that a roll never waits for the
disk. `prepare` is the allocator thread's step: it reserves the next file and populates pages in a
window ahead of the writer, because a page fault per append would cost more than the append.

This module knows files and positions. What the bytes mean is the commit log's business.
"""

from __future__ import annotations

import threading
from bisect import bisect_right

from rockgate.store.errors import StoreCorrupt, StoreFull
from rockgate.store.files import Directory, Mapping

_NAME_DIGITS = 20


class Segment:
    """One mapped file of the log."""

    __slots__ = ("mapping", "populated", "size", "start")

    def __init__(self, start: int, mapping: Mapping, *, populated: int = 0) -> None:
        self.start = start
        self.size = mapping.size
        self.mapping = mapping
        self.populated = populated
        """Up to where, from its start, pages have been made ready for writing."""

    @property
    def end(self) -> int:
        """The position at which the next segment starts."""
        return self.start + self.size


def segment_name(start: int) -> str:
    """Return a segment's file name: its start position in twenty digits."""
    return f"{start:0{_NAME_DIGITS}d}"


class Segments:
    """The row of segments, oldest first."""

    def __init__(self, directory: Directory, segment_size: int, populate_ahead: int) -> None:
        self._directory = directory
        self.segment_size = segment_size
        self._populate_ahead = min(populate_ahead, segment_size)
        self._row: list[Segment] = []
        self._prepared: Segment | None = None
        self.prepare_at = 0
        """The position from which on the writer wakes the allocator; it compares, no more."""
        # Held while a file is being made, so that a roll in that moment waits for that file
        # instead of making it a second time.
        self._making = threading.Lock()

    def load(self, flushed: int) -> None:
        """Map every file that is there; they must all have the set size and touch each other.

        A file behind the flushed position whose size is wrong was being made when the power went:
        nobody was told of anything in it, so it goes.
        """
        torn: list[str] = []
        for name in self._directory.names():
            if not (name.isdigit() and len(name) == _NAME_DIGITS):
                continue
            start = int(name)
            size = self._size_of(name)
            if torn or (size != self.segment_size and start >= flushed):
                torn.append(name)
                continue
            if size != self.segment_size:
                reason = (
                    f"the file has {size} bytes and segment_bytes is {self.segment_size}; "
                    "the size of a data directory's segments cannot change"
                )
                raise StoreCorrupt(self._path(name), start, reason)
            if self._row and self._row[-1].end != start:
                reason = f"the file before it ends at {self._row[-1].end}: a file is missing"
                raise StoreCorrupt(self._path(name), start, reason)
            self._row.append(Segment(start, self._directory.map(name, writable=True)))
        for name in torn:
            self._directory.remove(name)
        if torn:
            self._directory.sync()

    def _size_of(self, name: str) -> int:
        file = self._directory.open(name)
        try:
            return file.size()
        finally:
            file.close()

    def _path(self, name: str) -> str:
        return f"{self._directory.path}/{name}"

    def path(self, segment: Segment) -> str:
        """Return a segment's path, for messages to people."""
        return self._path(segment.mapping.name)

    # The row

    def __len__(self) -> int:
        return len(self._row)

    @property
    def row(self) -> list[Segment]:
        """The segments, oldest first; a copy."""
        return list(self._row)

    @property
    def active(self) -> Segment:
        """The segment that the writer is in."""
        return self._row[-1]

    @property
    def start(self) -> int:
        """The first position that is still there."""
        return self._row[0].start if self._row else 0

    def find(self, position: int) -> Segment | None:
        """Return the segment that holds a position."""
        row = self._row
        if not row or position < row[0].start:
            return None
        index = (position - row[0].start) // self.segment_size
        return row[index] if index < len(row) else None

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments that hold any byte of a range."""
        row = self._row
        first = max(0, bisect_right(row, start, key=lambda segment: segment.start) - 1)
        return [segment for segment in row[first:] if segment.start < end and segment.end > start]

    # Growing

    def roll(self) -> Segment:
        """Start the next segment, which is there already unless the allocator fell behind."""
        with self._making:
            if self._prepared is None:
                self._prepared = self._make()
            segment, self._prepared = self._prepared, None
        self._row.append(segment)
        self.prepare_at = segment.start
        return segment

    def prepare(self, written: int) -> None:
        """Allocator's step: populate ahead of the written position, and make the next file."""
        if not self._row:
            return
        segment = self._row[-1]
        ahead = self._populate_ahead
        self._populate(segment, min(segment.size, written - segment.start + ahead))
        if self._prepared is None and written + 2 * ahead >= segment.end:
            with self._making:
                # Only if nobody rolled in the meantime.
                if self._prepared is None and self._row[-1] is segment:
                    try:
                        self._prepared = self._make()
                    except StoreFull:
                        # The producer who needs it will be told; there may be room again by then.
                        return
            if self._prepared is not None:
                self._populate(self._prepared, ahead)
        self._plan()

    def _plan(self) -> None:
        """Set the position from which the allocator has work again."""
        segment = self._row[-1]
        populate_at = segment.start + segment.populated - (self._populate_ahead >> 1)
        if segment.populated >= segment.size:
            populate_at = segment.end
        make_at = (
            segment.end if self._prepared is not None else segment.end - 2 * self._populate_ahead
        )
        self.prepare_at = min(populate_at, make_at)

    def _make(self) -> Segment:
        start = self._row[-1].end if self._row else 0
        mapping = self._directory.allocate(segment_name(start), self.segment_size)
        # The size first, then the name: a name that lasts stands for a whole file.
        mapping.sync()
        self._directory.sync()
        return Segment(start, mapping)

    @staticmethod
    def _populate(segment: Segment, upto: int) -> None:
        if upto > segment.populated:
            segment.mapping.populate(segment.populated, upto - segment.populated)
            segment.populated = upto

    # Shrinking

    def start_at(self, position: int) -> None:
        """Begin an empty row at a position, a multiple of the segment size."""
        assert not self._row, "the row has segments already"
        mapping = self._directory.allocate(segment_name(position), self.segment_size)
        mapping.sync()
        self._directory.sync()
        self._row.append(Segment(position, mapping))

    def cut_after(self, position: int) -> None:
        """Forget every segment that starts behind a position; a zeroed one stays as prepared."""
        behind = [segment for segment in self._row if segment.start > position]
        self._row = [segment for segment in self._row if segment.start <= position]
        for segment in reversed(behind):
            segment.mapping.close()
            self._directory.remove(segment.mapping.name)
        if behind:
            self._directory.sync()

    def remove_first(self) -> Segment:
        """Remove the oldest segment's file; its mapping lives until the last slice of it goes."""
        assert len(self._row) > 1, "the active segment is never removed"
        segment = self._row.pop(0)
        self._directory.remove(segment.mapping.name)
        self._directory.sync()
        return segment

    def sync(self, start: int, end: int) -> None:
        """Wait until a range of the log is on disk."""
        for segment in self.between(start, end):
            segment.mapping.sync()

    def close(self) -> None:
        """Let go of every mapping."""
        for segment in self._row:
            segment.mapping.close()
        if self._prepared is not None:
            self._prepared.mapping.close()
        self._row = []
        self._prepared = None
