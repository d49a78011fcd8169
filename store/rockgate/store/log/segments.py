"""The segments of the commit log: fixed size, named by start position, mapped, preallocated.

An ordered, contiguous sequence of segments. The writer is always in the last one that holds entries
(`active`); at most one more is prepared after it, so that a roll never waits for the disk.
`prepare` is the allocator thread's step: it reserves the next file and populates pages ahead of the
writer, because a page fault per append would cost more than the append.

This module knows files and positions; the commit log knows what the bytes mean.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise

from rockgate.store.errors import SettingChanged, StoreBusy, StoreCorrupt, StoreError, StoreFull
from rockgate.store.files.free_space import FreeSpace, nothing
from rockgate.store.files.interface import PAGE_SIZE, Directory, Mapping

_log = logging.getLogger(__name__)

_NAME_DIGITS = 20
_UNFINISHED = ".new"
_NEVER = 1 << 62
_AGAIN_SIZE = 1 << 20
ROOM_SIZE = 8 << 20
"""Bytes left free before the end of the last segment, or an eighth of it, while the next file is
missing: new messages wait, so that state changes have room."""
HASTE_WINDOWS = 4
"""How many windows are populated ahead of a writer in a hurry before a file is created."""


class Segment:
    """One mapped file of the log."""

    __slots__ = ("end", "mapping", "populated", "size", "start")

    def __init__(self, start: int, mapping: Mapping, *, populated: int = 0) -> None:
        self.start = start
        self.size = mapping.size
        self.end = start + mapping.size
        """The position at which the next segment starts."""
        self.mapping = mapping
        self.populated = populated
        """Number of bytes, from the segment's start, whose pages are populated."""


def segment_name(start: int) -> str:
    """Return a segment's file name: its start position in twenty digits."""
    return f"{start:0{_NAME_DIGITS}d}"


def usual_size(sizes: Sequence[int], starts: Sequence[int]) -> int:
    """Return the size that most files have, the largest in a tie; 0 without files.

    Every file starts at a multiple of it: with two files, one of them damaged, only that decides.
    If no file has such a size, all are damaged, and the distance between neighbours decides.
    """
    fitting = [size for size in sizes if size and not any(start % size for start in starts)]
    if not fitting and len(starts) > 1:
        return min(after - start for start, after in pairwise(sorted(starts)))
    sizes = fitting or sizes
    return max(sizes, key=lambda size: (sizes.count(size), size), default=0)


class Segments:
    """The sequence of segments, oldest first."""

    def __init__(
        self,
        directory: Directory,
        segment_size: int,
        populate_ahead: int,
        *,
        reserved: FreeSpace = nothing,
    ) -> None:
        """Without files. A new file leaves `reserved` bytes free, except in `using_reserve`."""
        self._directory = directory
        self.segment_size = segment_size
        self._populate_ahead = min(populate_ahead, segment_size)
        # Other threads look segments up: the list grows in place, and is replaced when it shrinks.
        self._row: list[Segment] = []
        self.active: Segment
        """The writer's segment, which is the last one. Unset until there is one."""
        self._prepared: Segment | None = None
        self.prepare_at = 0
        """The position at which the writer wakes the allocator, so that it only has to compare."""
        self._usually_reserved = self._reserved = reserved
        # Held while a file is created or appended to the row, so that no file is created twice:
        # that would truncate the one in use.
        self._making = threading.Lock()
        self._is_late = False
        self.wait_seconds_max = -1.0
        """How long a roll waits for a file that is being created; forever by default."""

    def load(self, flushed: int | None = None) -> None:
        """Map every existing file; all must have the configured size and be contiguous.

        A truncated file is extended again if it still holds everything that was flushed: the log
        ends where the truncation ends it, or before. `flushed` is that position; if it is None,
        unknown, only the last file may be truncated.
        """
        names = []
        for name in self._directory.names():
            digits = name.removesuffix(_UNFINISHED)
            if not (digits.isdigit() and len(digits) == _NAME_DIGITS):
                continue
            if digits != name:
                self._directory.remove(name)
                continue
            names.append(name)
        sizes = [self._size_of(name) for name in names]
        if flushed is None:
            self._require_size(sizes, [int(name) for name in names])
        for name, size in zip(names, sizes, strict=True):
            is_safe = name == names[-1] if flushed is None else int(name) + size >= flushed
            self._load_one(name, size, is_safe=is_safe)

    def _size_of(self, name: str) -> int:
        file = self._directory.open(name)
        try:
            return file.size()
        finally:
            file.close()

    def _require_size(self, sizes: list[int], starts: list[int]) -> None:
        """Reject a segment size other than that of the files, if no checkpoint stores it."""
        made_with = usual_size(sizes, starts)
        is_cut = sizes == [made_with] and made_with < self.segment_size
        is_set = self.segment_size in (made_with, *sizes)
        if made_with and not is_set and not is_cut:
            raise SettingChanged(
                "store.segment_bytes",
                made_with=made_with,
                now=self.segment_size,
                where=self._directory.path,
            )

    def _load_one(self, name: str, size: int, *, is_safe: bool) -> None:
        start = int(name)
        if size < self.segment_size and is_safe:
            _log.warning(
                "segment was truncated file=%s bytes=%d segment_bytes=%d",
                self._path(name),
                size,
                self.segment_size,
            )
            self._directory.grow(name, self.segment_size)
        elif size != self.segment_size:
            reason = f"file is {size:,} bytes; the segment size is {self.segment_size:,}"
            raise StoreCorrupt(self._path(name), start, reason)
        mapping = self._directory.map(name, writable=True)
        if start % self.segment_size:
            reason = f"file name is not a multiple of segment_bytes ({self.segment_size})"
            raise StoreCorrupt(self._path(name), start, reason)
        if self._row and self._row[-1].end != start:
            reason = f"gap before {name}: a segment is missing"
            raise StoreCorrupt(self._path(name), self._row[-1].end, reason)
        self._grow(Segment(start, mapping))

    def _path(self, name: str) -> str:
        return f"{self._directory.path}/{name}"

    def path(self, segment: Segment) -> str:
        """Return a segment's path, for messages."""
        return self._path(segment_name(segment.start))

    # The row

    def __len__(self) -> int:
        return len(self._row)

    @property
    def row(self) -> list[Segment]:
        """The segments, oldest first; a copy."""
        return list(self._row)

    @property
    def start(self) -> int:
        """The first position that is still in the log."""
        row = self._row
        return row[0].start if row else 0

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

    def _grow(self, segment: Segment) -> None:
        self._row.append(segment)
        self.active = segment

    def roll(self) -> Segment:
        """Start the next segment, which exists already unless the allocator fell behind.

        StoreBusy if the allocator is creating it and that takes longer than `wait_seconds_max`.
        After such an error the next attempts do not wait: the thread has other work.
        """
        if not self._making.acquire(timeout=0.0 if self._is_late else self.wait_seconds_max):
            self._is_late = True
            raise StoreBusy("The disk is slow: the next log segment is not ready. Try again later.")
        try:
            self._is_late = False
            segment = self._prepared or self._make(self._row[-1].end, self._reserved)
            self._prepared = None
            self._grow(segment)
        finally:
            self._making.release()
        self.prepare_at = segment.start
        return segment

    @property
    def file_limit(self) -> int:
        """The position from which on messages wait for the next file, if it is missing."""
        if self._prepared is not None:
            return _NEVER
        segment = self._row[-1]
        return segment.end - min(ROOM_SIZE, segment.size >> 3)

    @property
    def page_limit(self) -> int:
        """The position from which on pages are not populated yet."""
        segment = self._row[-1]
        return _NEVER if segment.populated >= segment.size else segment.start + segment.populated

    def await_step(self) -> None:
        """Wake the allocator again only where its step should have been done."""
        self.prepare_at = min(self.file_limit, self.page_limit)

    def ask_again(self, written: int) -> None:
        """Wake the allocator again a little after the written position."""
        self.prepare_at = min(self.file_limit, written + _AGAIN_SIZE)

    def rest(self) -> None:
        """Leave the allocator alone until the next roll."""
        self.prepare_at = _NEVER

    @contextmanager
    def using_reserve(self, reserved: FreeSpace) -> Iterator[None]:
        """Let new files leave only this much space free; for the writer's thread."""
        self._reserved = reserved
        try:
            yield
        finally:
            self._reserved = self._usually_reserved

    def prepare(self, written: int, *, coarsely: bool = False) -> None:
        """Populate pages ahead of the written position, and create the next file."""
        if not self._row:
            return
        segment = self._row[-1]
        ahead = self._populate_ahead
        used = written - segment.start
        is_next_due = self._prepared is None and written >= self._make_at(segment)
        if is_next_due and coarsely:
            # Creating a file takes long while the disk is busy with dirty pages, and a writer in a
            # hurry gets far meanwhile.
            ahead *= HASTE_WINDOWS
        # Written pages are not populated: that would only make them dirty again.
        start, end = used - used % PAGE_SIZE, min(segment.size, used + ahead)
        self._populate(segment, start, end, coarsely=coarsely)
        if is_next_due:
            made = None
            with self._making:
                # Only if there was no roll in the meantime.
                if self._prepared is None and self._row[-1] is segment:
                    try:
                        made = self._prepared = self._make(segment.end, self._usually_reserved)
                    except StoreFull:
                        # The next append that needs it fails; until then it is retried from time to
                        # time, because a failed reservation is expensive.
                        self.prepare_at = min(
                            segment.end, written + max(1, self._populate_ahead >> 2)
                        )
                        return
            if made is not None:
                self._populate(made, 0, self._populate_ahead, coarsely=coarsely)
        self._plan()

    def _plan(self) -> None:
        """Set the position at which the allocator has work again."""
        segment = self._row[-1]
        populate_at = segment.start + segment.populated - (self._populate_ahead >> 1)
        if segment.populated >= segment.size:
            populate_at = segment.end
        make_at = segment.end if self._prepared is not None else self._make_at(segment)
        self.prepare_at = min(populate_at, make_at)

    def _make_at(self, segment: Segment) -> int:
        """The position at which the next file should be created: half way, or earlier if needed.

        A roll waits for a file that is being created, and blocks the event loop.
        """
        return segment.end - max(segment.size >> 1, min(segment.size, 2 * self._populate_ahead))

    def _make(self, start: int, reserved: FreeSpace) -> Segment:
        """Create a file durably; it gets its name only once all blocks are allocated."""
        name = segment_name(start)
        free, total = self._directory.space()
        if free < self.segment_size + reserved(total):
            raise StoreFull(
                f"No space left on device for {name}: {free:,} bytes are free, a segment is "
                f"{self.segment_size:,}, and {reserved(total):,} are reserved. Free disk space."
            )
        mapping = self._directory.allocate(name + _UNFINISHED, self.segment_size)
        try:
            mapping.sync()
            self._directory.rename(name + _UNFINISHED, name)
            self._directory.sync()
        except (OSError, StoreError):
            mapping.close()
            raise
        return Segment(start, mapping)

    @staticmethod
    def _populate(segment: Segment, start: int, end: int, *, coarsely: bool) -> None:
        start = max(start, segment.populated)
        if end > start:
            segment.mapping.populate(start, end - start, coarsely=coarsely)
            segment.populated = end

    # Shrinking

    def start_at(self, position: int) -> None:
        """Start an empty log at a position, which is a multiple of the segment size."""
        assert not self._row, "the row has segments already"
        self._grow(self._make(position, nothing))

    def cut_after(self, position: int) -> None:
        """Remove every segment that starts after a position."""
        while self._row and self._row[-1].start > position:
            segment = self._row[-1]
            self._row = self._row[:-1]
            if self._row:
                self.active = self._row[-1]
            segment.mapping.close()
            self._directory.remove(segment_name(segment.start))
            # One at a time, the last one first: a power failure never leaves a gap.
            self._directory.sync()

    def remove_first(self) -> Segment:
        """Remove the oldest segment's file; its mapping lives as long as a slice of it does."""
        self.unlink_first()
        return self.forget_first()

    def unlink_first(self) -> None:
        """Remove the oldest segment's file durably, on any thread; the mapping stays valid."""
        assert len(self._row) > 1, "the active segment is never removed"
        # An earlier attempt may have removed the file and failed in the sync.
        with suppress(FileNotFoundError):
            self._directory.remove(segment_name(self._row[0].start))
        self._directory.sync()

    def forget_first(self) -> Segment:
        """Remove the oldest segment, whose file is deleted, from the row."""
        segment = self._row[0]
        self._row = self._row[1:]
        return segment

    def sync(self, start: int, end: int) -> None:
        """Wait until a range of the log is on disk."""
        for segment in self.between(start, end):
            at = max(0, start - segment.start)
            segment.mapping.sync(at, min(segment.size, end - segment.start) - at)

    def close(self) -> None:
        """Release every mapping."""
        for segment in self._row:
            segment.mapping.close()
        if self._prepared is not None:
            self._prepared.mapping.close()
        self._row = []
        self._prepared = None
