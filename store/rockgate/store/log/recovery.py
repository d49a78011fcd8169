"""Recovery: finds the end of the log, and decides what happens to the rest.

docs/internals/recovery.md specifies it. The checkpoint durably stores the flushed position. Every
byte before it was on disk, so a bad entry there is damage: it is reported with file, position and
reason, and the start fails. From there on pages may have reached the disk in any order, so the
first invalid entry ends the log, whatever follows. The rest is saved to a file and zeroed before
the first append: no reader and no later recovery can mistake it for entries.

If the end is within an atomic group, the log ends before that group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BLANK_SIZE, CONTINUES, EntryError
from rockgate.store.errors import StoreCorrupt, StoreFull
from rockgate.store.files.interface import PAGE_SIZE, Directory, Mapping
from rockgate.store.log.segments import Segment, Segments
from rockgate.store.log.walk import is_filler

_STEP = 1 << 20


class Recovered(NamedTuple):
    """The result of a recovery."""

    end: int
    entry_count: int
    last_store_ms: int
    reason: str
    """Why the log ends where it does."""


class Rest(NamedTuple):
    """Bytes of a segment after the end of the log."""

    segment: Segment
    at: int
    last: int


class _Scan:
    """Totals over the valid entries; a group counts once it is complete."""

    def __init__(self) -> None:
        self.entry_count = 0
        self.last_store_ms = 0
        self._group_at = -1
        self._group_count = 0

    def take_grouped(self, position: int, flags: int) -> None:
        """Add an entry of a group; the last one lacks the flag CONTINUES."""
        if flags & CONTINUES:
            self._group_at = position if self._group_at < 0 else self._group_at
            self._group_count += 1
            return
        self.entry_count += self._group_count
        self._group_at, self._group_count = -1, 0

    @property
    def is_in_group(self) -> bool:
        """Whether the last entry belongs to a group that continues."""
        return self._group_at >= 0

    def end(self, position: int) -> int:
        """Return the end of the log, given that the next entry is invalid."""
        return self._group_at if self.is_in_group else position


def find_end(segments: Segments, start: int, flushed: int) -> Recovered:
    """Verify every entry from a position on, and return where the log ends.

    Raises StoreCorrupt for damage before the flushed position.
    """
    scan = _Scan()
    position = start
    reason = "the last segment is full"
    _require(segments, start)
    while (segment := segments.find(position)) is not None:
        position, stopped = _scan_segment(segment, position, scan)
        if stopped is None and scan.is_in_group:
            stopped = "group of entries does not end in its segment"
        if stopped is not None:
            if position < flushed:
                raise StoreCorrupt(segments.path(segment), position, stopped)
            reason = stopped
            break
    _require(segments, flushed)
    end = scan.end(position)
    if end < flushed:
        path = segments.path(segments.between(end, end + 1)[0])
        raise StoreCorrupt(path, end, "group of entries does not end before the flushed position")
    return Recovered(end, scan.entry_count, scan.last_store_ms, reason)


def _require(segments: Segments, position: int) -> None:
    """Reject segments that do not cover a position of the checkpoint."""
    row = segments.row
    if row and row[0].start <= position <= row[-1].end:
        return
    path = segments.path(row[-1]) if row else "The log"
    ends = f"from {row[0].start} to {row[-1].end}" if row else "nowhere"
    reason = f"the checkpoint covers this position, but the log covers {ends}: a segment is missing"
    raise StoreCorrupt(path, position, reason)


def _scan_segment(segment: Segment, position: int, scan: _Scan) -> tuple[int, str | None]:
    """Scan one segment; return where the scan stopped, and why if it is not the segment's end."""
    view = segment.mapping.view
    size = segment.size
    at = position - segment.start
    start = segment.start
    verify = envelope.verify
    last_store_ms, is_in_group, found_count = scan.last_store_ms, False, 0
    stopped: str | None = None
    try:
        while at < size:
            entry_size, flags, store_ms = verify(view, at, size, start + at)
            if store_ms > last_store_ms:
                last_store_ms = store_ms
            if flags & CONTINUES or is_in_group:
                scan.take_grouped(start + at, flags)
                is_in_group = scan.is_in_group
            found_count += not is_in_group
            at += entry_size
    except EntryError as error:
        stopped = _why(view, at, error)
    scan.entry_count += found_count
    scan.last_store_ms = last_store_ms
    return (segment.end, None) if stopped is None else (start + at, stopped)


def _why(view: memoryview, at: int, error: EntryError) -> str | None:
    """Return why there is no entry at a place; None for the filler that ends a segment."""
    if is_filler(view, at):
        return None
    left = len(view) - at
    if left < BLANK_SIZE:
        return f"{left} bytes left, too few for a filler"
    return error.reason if any(envelope.peek(view, at)) else "unwritten space"


def find_rest(segments: Segments, end: int) -> list[Rest]:
    """Return the bytes after the end that are not zero."""
    rest = []
    for segment in segments.row:
        if segment.end <= end:
            continue
        at = max(0, end - segment.start)
        last = last_written(segment.mapping.view, at)
        if last > at:
            rest.append(Rest(segment, at, last))
    return rest


def clear_rest(
    segments: Segments, end: int, aside: Directory, rest: Sequence[Rest] | None = None
) -> tuple[int, str]:
    """Zero everything after the end; return how many bytes were saved, and where.

    Segments that start after the end are removed. The zeros and the saved copy are on disk before
    this returns. StoreFull, with everything unchanged, if there is no space for the copy.
    """
    rest = find_rest(segments, end) if rest is None else rest
    size, path = keep_aside(
        aside, end, [segment.mapping.view[at:last] for segment, at, last in rest]
    )
    for segment, at, last in rest:
        zero(segment.mapping, at, last)
    segments.cut_after(end)
    return size, path


def keep_aside(aside: Directory, position: int, pieces: list[memoryview]) -> tuple[int, str]:
    """Copy bytes of the log durably into a new file; return their number and the path."""
    size = sum(map(len, pieces))
    if not size:
        return 0, ""
    if aside.space()[0] < size:
        raise StoreFull(
            f"No space left on device to save {size:,} bytes of the log; free disk space."
        )
    name = _free_name(aside, f"{position:020d}-{size}")
    file = aside.create(name)
    written = 0
    try:
        for piece in pieces:
            file.write(written, piece)
            written += len(piece)
        file.sync()
    except StoreFull:
        aside.remove(name)
        raise
    finally:
        file.close()
    aside.sync()
    return size, f"{aside.path}/{name}"


def _free_name(directory: Directory, name: str) -> str:
    """Return an unused name: a saved file is never overwritten."""
    taken = set(directory.names())
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def write_again(segments: Segments, start: int, end: int) -> None:
    """Rewrite a byte of every page, so that the next sync writes the pages to disk.

    A failed fsync may have left pages that are readable and clean but not on disk; a process that
    starts later cannot distinguish them.
    """
    for segment in segments.between(start, end):
        at = max(0, start - segment.start)
        last = min(segment.size, end - segment.start)
        mapping, view = segment.mapping, segment.mapping.view
        # One byte makes its page dirty, and a dirty page is written whole.
        for place in (at, *range(at - at % PAGE_SIZE + PAGE_SIZE, last, PAGE_SIZE)):
            mapping.write(place, view[place : place + 1])


def last_written(view: memoryview, at: int) -> int:
    """Return the place after the last byte that is not zero; `at` if there is none."""
    zeros = bytes(_STEP)
    high = len(view)
    while high > at:
        low = max(at, high - _STEP)
        piece = bytes(view[low:high])
        if piece != zeros[: high - low]:
            return low + len(piece.rstrip(b"\0"))
        high = low
    return at


def zero(mapping: Mapping, at: int, end: int) -> None:
    """Overwrite a range with zeros, durably."""
    zeros = bytes(_STEP)
    while at < end:
        step = min(_STEP, end - at)
        mapping.write(at, zeros[:step])
        at += step
    mapping.sync()
