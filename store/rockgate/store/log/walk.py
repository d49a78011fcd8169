"""Walks the log in order, skipping entries that are not of interest.

A start goes through hundreds of thousands of entries for a few that it wants. What is passed over
is not read: its size says where the next one stands, and each says its own position.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BLANK_SIZE, HEAD_SIZE_V4, Entry, EntryError
from rockgate.store.log.segments import Segment, Segments

# The byte of the flags, and its bit, that says whether a batch's keys are indexed.
_INDEXED_AT: Final = envelope.SYS_FLAG_AT + 1
_INDEXED_BIT: Final = envelope.INDEXED >> 16
_MESSAGES: Final = (envelope.MAGIC_V1, envelope.MAGIC_V2)
_PEEK: Final = struct.Struct(">II12xq").unpack_from
"""Size, magic and offset of an entry: what decides whether it is passed over."""


class Walk:
    """The entries of a range of the log, each with the view that its places are in.

    Without `batches` those whose keys are not indexed are passed over, and without `messages` those
    that take one offset of a queue. With `checks` checksums are taken, of what is passed over too;
    without, what is passed over stays unread, which is for a range that was checked before.

    Raises EntryError where the bytes are not an entry that belongs at its place.
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
        """Where the entry stands that was handed out, or could not be."""
        self._segments = segments
        self._end = end
        self._batches = batches
        self._messages = messages
        self._checks = checks

    def __iter__(self) -> Iterator[tuple[memoryview, Entry]]:
        """Yield the entries; the next time begins where this one ended."""
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
        """Whether an entry is passed over; what is none is left for `read` to tell."""
        if magic == envelope.MAGIC_BATCH:
            return not self._batches and not view[at + _INDEXED_AT] & _INDEXED_BIT
        return not self._messages and offset >= 0 and magic in _MESSAGES


def is_filler(view: memoryview, at: int) -> bool:
    """Say whether a place holds the filler that ends its segment."""
    left = len(view) - at
    return left >= BLANK_SIZE and envelope.peek(view, at) == (left, envelope.MAGIC_BLANK)
