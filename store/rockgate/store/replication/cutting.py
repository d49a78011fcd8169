"""Cutting: ends a log where it parted from the primary's, safely at every step.

docs/internals/replication.md has the order. The store is closed, and was closed cleanly: everything
before the cut is on disk. `find_cut` is the primary's part: where two logs part.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from rockgate.protocol.entry import CONTINUES, EntryError
from rockgate.store.errors import CannotRepair
from rockgate.store.files.interface import Directory
from rockgate.store.log.beginning import ABORT
from rockgate.store.log.recovery import keep_aside, last_written, zero
from rockgate.store.log.segments import Segments
from rockgate.store.log.walk import Walk
from rockgate.store.state.epochs import Epoch
from rockgate.store.upkeep.checkpoint import CheckpointFile

log = logging.getLogger(__name__)

NOWHERE: Final = -1
"""Two logs that have no epoch in common."""


def find_cut(ours: Sequence[Epoch], our_end: int, theirs: Sequence[Epoch], their_end: int) -> int:
    """Return the position up to which two logs agree; NOWHERE if they have nothing in common.

    It is the lower of the two ends of the last epoch that both have at one position. Each list is
    in order, and may lack the oldest.
    """
    if not their_end:
        return 0
    common = set(ours) & set(theirs)
    if not common:
        return NOWHERE
    last = max(common, key=lambda epoch: epoch.position)
    return min(_end_of(last, ours, our_end), _end_of(last, theirs, their_end))


def _end_of(epoch: Epoch, epochs: Sequence[Epoch], end: int) -> int:
    return min((each.position for each in epochs if each.position > epoch.position), default=end)


def cut(directory: Directory, position: int, segment_bytes: int) -> int:
    """End the log at a position between two entries; return how many bytes were set aside.

    The directory is not in use. CannotRepair if the log cannot end there.
    """
    directory.lock("lock")
    try:
        checkpoint = CheckpointFile(directory, segment_bytes)
        segments = Segments(directory.child("commitlog"), segment_bytes, segment_bytes)
        try:
            segments.load(checkpoint.newest.flushed)
            return _cut(directory, segments, checkpoint, position)
        finally:
            segments.close()
            checkpoint.close()
    finally:
        directory.unlock()


def _cut(
    directory: Directory, segments: Segments, checkpoint: CheckpointFile, position: int
) -> int:
    newest = checkpoint.newest
    if not segments.start <= position <= newest.flushed:
        covered = f"{segments.start} to {newest.flushed}"
        raise CannotRepair(f"The log covers {covered}; it cannot end at {position}.")
    if not _is_between_entries(segments, position):
        raise CannotRepair(f"Position {position} is not between two entries.")
    if ABORT not in directory.names():
        directory.create(ABORT).close()
        directory.sync()
    pieces = []
    for segment in segments.row:
        at = max(0, position - segment.start)
        if at < segment.size and (last := last_written(segment.mapping.view, at)) > at:
            pieces.append(segment.mapping.view[at:last])
    size, path = keep_aside(directory.child("lost"), position, pieces)
    checkpoint.write(position, min(position, newest.indexed), newest.last_store_ms)
    for segment in segments.between(position, position + 1):
        at = position - segment.start
        zero(segment.mapping, at, last_written(segment.mapping.view, at))
    segments.cut_after(position)
    directory.remove(ABORT)
    directory.sync()
    log.warning("log was cut position=%d bytes=%d saved=%s", position, size, path)
    return size


def _is_between_entries(segments: Segments, position: int) -> bool:
    """Say whether entries, and groups of them, end at a position: entries do not span segments."""
    segment = segments.find(position)
    if segment is None or segment.start == position:
        return True
    at, flags = segment.start, 0
    try:
        for _, entry in Walk(segments, segment.start, position):
            at, flags = entry.position + entry.total_size, entry.sys_flag
    except EntryError:
        return False
    return at == position and not flags & CONTINUES
