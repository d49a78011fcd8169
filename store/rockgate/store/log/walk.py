"""Walks the log in order, skipping entries that are not of interest.

A start passes hundreds of thousands of entries to find a few. Skipped entries are not decoded: the
size leads to the next entry, and each entry contains its own position.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BLANK_SIZE, HEAD_SIZE_V4, Entry, EntryError
from rockgate.store.log.segments import Segment, Segments

# The byte of the flags, and its bit, that marks a batch with indexed keys.
_INDEXED_AT: Final = envelope.SYS_FLAG_AT + 1
_INDEXED_BIT: Final = envelope.INDEXED >> 16
_MESSAGES: Final = (envelope.MAGIC_V1, envelope.MAGIC_V2)
_PEEK: Final = struct.Struct(">II12xq").unpack_from
"""Size, magic and offset of an entry: enough to decide whether to skip it."""


class Walk:
    """The entries of a range of the log, each with the view that its bytes are in.

    Without `batches`, batches whose keys are not indexed are skipped; without `messages`, message
    entries of queues are. With `checks`, checksums are verified, also of skipped entries; without
    it, skipped entries stay unread, which is for a range that was verified before.

    Raises EntryError where the bytes are not a valid entry of that position.
    """

    def __init__(
        self,
        segments: Segments,
        start: int,
        end: int,
        *,
        batches: bool = True,
        messages: bool = True,
        checks: bool = False,
    ) -> None:
        self.position = start
        """Position of the entry that was yielded last, or that could not be read."""
        self._segments = segments
        self._end = end
        self._batches = batches
        self._messages = messages
        self._checks = checks

    def __iter__(self) -> Iterator[tuple[memoryview, Entry]]:
        """Yield the entries; a second iteration continues where the first one ended."""
        while self.position < self._end:
            segment = self._segments.find(self.position)
            if segment is None:
                raise EntryError(f"no segment contains position {self.position}")
            yield from self._segment(segment)

    def _segment(self, segment: Segment) -> Iterator[tuple[memoryview, Entry]]:
        """Yield the entries of one segment, up to its filler or the end."""
        view, start, size = segment.mapping.view, segment.start, segment.size
        at, end = self.position - start, min(self._end, segment.end) - start
        read, passes = envelope.read, not (self._batches and self._messages)
        while at < end:
            if passes and size - at >= HEAD_SIZE_V4:
                total, magic, offset = _PEEK(view, at)
                if total >= HEAD_SIZE_V4 and self._passes(view, at, magic, offset):
                    self.position = start + at
                    if self._checks:
                        envelope.verify(view, at, size, self.position)
                    at += total
                    continue
            self.position = start + at
            try:
                entry = read(view, at, size)
            except EntryError:
                if is_filler(view, at):
                    break
                raise
            if entry.position != self.position:
                raise EntryError(f"entry claims position {entry.position}")
            if self._checks:
                envelope.check(view, entry)
            yield view, entry
            at += entry.total_size
        self.position = segment.end if end == size else self._end

    def _passes(self, view: memoryview, at: int, magic: int, offset: int) -> bool:
        """Say whether an entry is skipped; invalid ones are left to `read`, which raises."""
        if magic == envelope.MAGIC_BATCH:
            return not self._batches and not view[at + _INDEXED_AT] & _INDEXED_BIT
        return not self._messages and offset >= 0 and magic in _MESSAGES


def is_filler(view: memoryview, at: int) -> bool:
    """Say whether the filler that ends a segment starts at this place."""
    left = len(view) - at
    return left >= BLANK_SIZE and envelope.peek(view, at) == (left, envelope.MAGIC_BLANK)
