"""Checking: which of the received bytes are whole groups of valid entries."""

from __future__ import annotations

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BLANK_SIZE, CONTINUES, EntryError
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.segments import Segment
from rockgate.store.log.walk import is_filler


def checked_to(segment: Segment, checked: int, received: int) -> int:
    """Return how far a segment's bytes are whole groups, from where that is known already.

    StoreCorrupt for bytes that are no entry and cannot become one.
    """
    view, start, size = segment.mapping.view, segment.start, segment.size
    at, end = checked - start, received - start
    while end - at >= BLANK_SIZE:
        if is_filler(view, at):
            return segment.end if end == size else checked
        total, _ = envelope.peek(view, at)
        if end - at < total <= size - at:
            return checked  # the rest of it is to come
        try:
            total, flags, _ = envelope.verify(view, at, end, start + at)
        except EntryError as error:
            raise StoreCorrupt("Replication", start + at, error.reason) from error
        at += total
        if not flags & CONTINUES:
            checked = start + at
    return checked


def written_to(segment: Segment, position: int, received: int, data: memoryview) -> int:
    """Write bytes at their position, which are due; return the position behind them."""
    if position != received:
        raise StoreCorrupt("Replication", position, f"bytes from {received} on were due")
    if not segment.start <= position <= position + len(data) <= segment.end:
        raise StoreCorrupt("Replication", position, f"{len(data)} bytes are not of one segment")
    segment.mapping.write(position - segment.start, data)
    return position + len(data)
