"""Repairs a damaged log: truncates it at a position and saves the rest.

There is one repair, and it loses data: everything from the position on, for all topics. It is for a
log that a server refuses, when there is no better copy. It never runs beside a server.

The result is tried first, on an overlay of the directory: a repair after which no server could
start is not made. If that is so for every position, because the state before the log's first entry
is lost, a forced repair saves the whole log and leaves an empty one.

The order makes it safe to interrupt. What is removed is copied to `lost/` and synced; then a new
checkpoint stores the position; then the rest is overwritten with zeros. A power failure before the
last step leaves a log that is damaged as before, or that the next start truncates. That start also
removes indexes and snapshots that exceed the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rockgate.protocol.entry import CONTINUES
from rockgate.store.check.inspectfiles import read_checkpoint
from rockgate.store.check.logwalk import COMMITLOG, OnProgress, Row, Unwritten, Whole
from rockgate.store.check.trial import Opener, find_repair, plain_opener, refusal_of
from rockgate.store.errors import CannotRepair
from rockgate.store.files.interface import Directory
from rockgate.store.log.recovery import keep_aside, last_written, zero
from rockgate.store.log.segments import Segment, segment_name
from rockgate.store.upkeep.checkpoint import Checkpoint, replace_checkpoint


class Repaired(NamedTuple):
    """The result of a repair."""

    end: int
    entry_count: int
    """How many entries are left."""
    lost_bytes: int
    saved_in: str
    """The directory that the removed bytes were copied to."""


def truncate(
    directory: Directory,
    position: int,
    *,
    on_progress: OnProgress = lambda size: None,
    is_forced: bool = False,
    opens: Opener | None = None,
) -> Repaired:
    """Truncate the log at a position; CannotRepair if that is impossible, StoreLocked if in use.

    `opens` opens the directory as a server would, so that the result can be tried. `is_forced`
    leaves an empty log, for all topics, if no server could start from any other result.
    """
    directory.lock("lock")
    try:
        opens = opens or plain_opener(directory)
        try:
            refusal = refusal_of(directory, opens, lambda shadow: _truncate(shadow, position))
            if refusal is None:
                return _truncate(directory, position, on_progress)
            reason = f"A server could not start from the truncated log: {refusal.reason}"
        except CannotRepair as error:
            refusal, reason = None, str(error)
        if refusal is not None and not refusal.is_repairable:
            raise CannotRepair(refusal.reason)
        best = best_position(directory, opens)
        if best is not None:
            raise CannotRepair(f"{reason} The log can be truncated at {best}.", best)
        if not is_forced:
            raise CannotRepair(f"{reason} The log cannot be truncated.")
        return _keep_all(directory)
    finally:
        directory.unlock()


def best_position(directory: Directory, opens: Opener | None = None) -> int | None:
    """Return the highest position at which a repair is possible, None if there is none."""
    commitlog = directory.child(COMMITLOG) if directory.has_child(COMMITLOG) else None
    if commitlog is None or not list(_starts(commitlog)):
        return None
    _, size = _read(directory)
    row = Row(commitlog, size)
    end = row.segments[-1].start + row.segment_size
    row.close()
    return find_repair(directory, end, opens or plain_opener(directory), _truncate)


def _truncate(
    directory: Directory, position: int, on_progress: OnProgress = lambda size: None
) -> Repaired:
    if not directory.has_child(COMMITLOG) or not list(_starts(directory.child(COMMITLOG))):
        raise CannotRepair(f"Directory {directory.path} does not contain a log.")
    before, size = _read(directory)
    row = Row(directory.child(COMMITLOG), size)
    try:
        survey = _Survey(row, position, on_progress)
        position = survey.end
        new = Checkpoint(
            sequence=before.sequence + 1,
            flushed=position,
            indexed=position,
            last_store_ms=max(survey.last_store_ms, before.last_store_ms),
            segment_bytes=row.segment_size,
        )
        aside = directory.child("lost")
        lost_bytes = sum(_keep(each, position, aside) for each in row.segments)
        replace_checkpoint(directory, new)
        _end_in(directory.child(COMMITLOG), row, position)
        _remove_from(directory.child(COMMITLOG), position, row.segments[0].start)
    finally:
        row.close()
    return Repaired(position, survey.entry_count, lost_bytes, aside.path)


def _keep_all(directory: Directory) -> Repaired:
    """Save the whole log, and leave the directory with an empty one."""
    before, size = _read(directory)
    row = Row(directory.child(COMMITLOG), size)
    try:
        aside = directory.child("lost")
        lost_bytes = sum(_keep(each, each.start, aside) for each in row.segments)
        new = Checkpoint(sequence=before.sequence + 1, segment_bytes=row.segment_size)
        replace_checkpoint(directory, new)
        _remove_from(directory.child(COMMITLOG), 0, None)
    finally:
        row.close()
    return Repaired(0, 0, lost_bytes, aside.path)


def _read(directory: Directory) -> tuple[Checkpoint, int]:
    """Return the checkpoint, and the segment size if the checkpoint contains it."""
    checkpoint = read_checkpoint(directory)[0] or Checkpoint()
    return checkpoint, checkpoint.segment_bytes


def _starts(commitlog: Directory) -> Iterator[int]:
    for name in commitlog.names():
        if name.isdigit() and name == segment_name(int(name)):
            yield int(name)


# Removing


def _keep(segment: Segment, position: int, aside: Directory) -> int:
    """Copy what a segment holds after a position; return the number of bytes."""
    at = max(0, position - segment.start)
    last = last_written(segment.mapping.view, at)
    pieces = [segment.mapping.view[at:last]] if last > at else []
    return keep_aside(aside, segment.start + at, pieces)[0]


def _end_in(commitlog: Directory, row: Row, position: int) -> None:
    """Overwrite everything after a position with zeros, in the file that holds it."""
    first = row.segments[0].start
    for segment in row.segments:
        if not segment.start <= position < segment.start + row.segment_size:
            continue
        if segment.start == position and position != first:
            return  # it is removed as a whole
        name = segment_name(segment.start)
        at = position - segment.start
        if segment.size != row.segment_size:
            mapping = commitlog.allocate(f"{name}.new", row.segment_size)
            mapping.write(0, segment.mapping.view[:at])
            mapping.sync()
            mapping.close()
            commitlog.rename(f"{name}.new", name)
            commitlog.sync()
            return
        mapping = commitlog.map(name, writable=True)
        zero(mapping, at, last_written(mapping.view, at))
        mapping.close()


def _remove_from(commitlog: Directory, position: int, first: int | None) -> None:
    """Remove the files that start at or after a position, except the log's first."""
    for start in sorted(_starts(commitlog), reverse=True):
        if start >= position and start != first:
            commitlog.remove(segment_name(start))
            # One at a time, the last one first: a power failure never leaves a gap.
            commitlog.sync()


# Validating the position


class _Survey:
    """Checks that a position is between two entries, in contiguous files.

    A trial decides whether everything before it is valid enough.
    """

    def __init__(self, row: Row, position: int, on_progress: OnProgress) -> None:
        self.entry_count = 0
        self.last_store_ms = 0
        self.end = position
        """The new end of the log: the position, or less if nothing was written in between."""
        self._row = row
        end = row.segments[-1].start + row.segment_size
        if not row.start <= position <= end:
            instead = end if position > end else None
            raise CannotRepair(f"The log only covers positions {row.start} to {end}.", instead)
        for problem in row.problems:
            # The file that holds the position gets its size back, and later ones are removed.
            good_to = problem.position if problem.good_to is None else problem.good_to
            if position > good_to:
                reason = f"{problem.file} is damaged at {problem.position}: {problem.reason}."
                raise CannotRepair(reason, problem.position)
        self._walk(position, on_progress)

    def _walk(self, position: int, on_progress: OnProgress) -> None:
        row = self._row
        group: int | None = None
        unwritten: int | None = None
        for piece in row.walk(row.start, position):
            end = piece.position + piece.size
            begin = piece.position if group is None else group
            if isinstance(piece, Unwritten):
                unwritten = begin if unwritten is None else unwritten
                continue
            if unwritten is not None:
                reason = f"The log ends at {unwritten}: unwritten space follows."
                raise CannotRepair(reason, unwritten)
            if end > position:
                reason = (
                    f"The entry at {piece.position} ends at {end}; choose one of these positions."
                )
                raise CannotRepair(reason, begin)
            if isinstance(piece, Whole):
                self.entry_count += 1
                self.last_store_ms = max(self.last_store_ms, piece.entry.store_ms)
                is_last = not piece.entry.sys_flag & CONTINUES
                group = None if is_last else begin
            else:
                # A group that damage interrupts is part of the damage, wherever it would end.
                group = None
            on_progress(piece.size)
        if unwritten is not None:
            # In a segment that is not full, the last one with any data.
            self.end = unwritten
        elif group is not None:
            reason = f"Position {position} is within the group of entries that starts at {group}."
            raise CannotRepair(reason, group)
