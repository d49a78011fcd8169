"""Repair: ends a damaged log at a position, and keeps what was behind it aside.

There is one repair, and it loses data: everything from the position on, for all topics. It is for a
log that a server refuses, when no better copy of it exists. It never runs beside a server.

The order makes it safe to interrupt. What goes is copied to `lost/` and synced; then a new
checkpoint names the position; then the rest is overwritten with zeros. A cut of power before the
last step leaves a log that is damaged as before, or that a start cuts by itself. Indexes and
snapshots that know more than the log are removed by the start that follows.
"""

from __future__ import annotations

from typing import NamedTuple

from rockgate.protocol.entry import CONTINUES
from rockgate.store.checkpoint import Checkpoint, replace_checkpoint
from rockgate.store.errors import CannotRepair
from rockgate.store.files import Directory
from rockgate.store.inspect import OnProgress
from rockgate.store.inspectfiles import MappedFile, check_snapshots, read_checkpoint
from rockgate.store.logwalk import COMMITLOG, Damaged, Row, Unwritten, Whole
from rockgate.store.recovery import clear_rest, keep_aside
from rockgate.store.segments import Segments


class Repaired(NamedTuple):
    """What a repair did."""

    end: int
    entry_count: int
    """How many entries are left."""
    lost_bytes: int
    kept_in: str
    """The directory they were copied to."""


def truncate(
    directory: Directory,
    position: int,
    *,
    on_progress: OnProgress = lambda size: None,
    is_forced: bool = False,
) -> Repaired:
    """End the log at a position; CannotRepair says why not, StoreLocked that a server is running.

    `is_forced` ends it even where a server could not start from what is left.
    """
    directory.lock("lock")
    try:
        return _truncate(directory, position, on_progress, is_forced)
    finally:
        directory.unlock()


def _truncate(
    directory: Directory, position: int, on_progress: OnProgress, is_forced: bool
) -> Repaired:
    if not directory.has_child(COMMITLOG):
        raise CannotRepair(f"{directory.path} holds no log")
    commitlog = directory.child(COMMITLOG)
    row = Row(commitlog)
    try:
        count, last_store_ms = _survey(row, position, on_progress)
        size = row.segments[0].size
        if not is_forced:
            _require_snapshot(directory, row.start, position)
    finally:
        row.close()
    before = read_checkpoint(directory)[0] or Checkpoint()
    new = Checkpoint(
        sequence=before.sequence + 1,
        flushed=position,
        indexed=position,
        last_store_ms=max(last_store_ms, before.last_store_ms),
        segment_bytes=size,
    )
    aside = directory.child("lost")
    segments = Segments(commitlog, size, 0)
    try:
        segments.load(position)
        later_bytes = _keep_later(commitlog, position, aside)
        lost_bytes, _ = clear_rest(
            segments, position, aside, before_zeroing=lambda: replace_checkpoint(directory, new)
        )
        _remove_later(commitlog, position)
    finally:
        segments.close()
    return Repaired(position, count, lost_bytes + later_bytes, aside.path)


def _later(commitlog: Directory, position: int) -> list[str]:
    """Return the files that start behind a position, the last one first."""
    names = (name for name in commitlog.names() if name.isdigit() and int(name) > position)
    return sorted(names, reverse=True)


def _keep_later(commitlog: Directory, position: int, aside: Directory) -> int:
    """Copy each file behind a position, whatever its size and whether it touches the next."""
    size = 0
    for name in _later(commitlog, position):
        file = MappedFile(commitlog, name)
        content = file.read(0, file.size()).rstrip(b"\0")
        file.close()
        size += keep_aside(aside, int(name), [memoryview(content)])[0]
    return size


def _remove_later(commitlog: Directory, position: int) -> None:
    for name in _later(commitlog, position):
        commitlog.remove(name)
        # One after the other, the last first: a cut of power never leaves a gap in the row.
        commitlog.sync()


def _survey(row: Row, position: int, on_progress: OnProgress) -> tuple[int, int]:
    """Check that the log is whole up to a position; return its entries and its last store time."""
    if row.problems:
        file, at, reason = row.problems[0]
        if at <= position:
            raise CannotRepair(f"{file} at position {at}: {reason}")
    if not row.segments or not row.start <= position <= row.end:
        raise CannotRepair(f"the log goes from {row.start} to {row.end}")
    count = last_store_ms = 0
    at = row.start
    group: int | None = None
    for piece in row.walk(row.start, position):
        if isinstance(piece, Damaged | Unwritten):
            reason = piece.reason if isinstance(piece, Damaged) else "nothing was written there"
            raise CannotRepair(f"the log is damaged before that, at position {at}: {reason}")
        at = piece.position + piece.size
        if at > position:
            raise CannotRepair(
                f"an entry stands at {piece.position} and ends at {at}: name one of these"
            )
        if isinstance(piece, Whole):
            count += 1
            last_store_ms = max(last_store_ms, piece.entry.store_ms)
            is_last = not piece.entry.sys_flag & CONTINUES
            group = None if is_last else piece.position if group is None else group
        on_progress(piece.size)
    if group is not None:
        raise CannotRepair(f"that would cut a group of entries in two; it begins at {group}")
    return count, last_store_ms


def _require_snapshot(directory: Directory, log_start: int, position: int) -> None:
    """Refuse to leave a log behind that no server can start from."""
    if log_start == 0:
        return
    if directory.has_child("snapshots"):
        for _, header, _ in check_snapshots(directory.child("snapshots")):
            if header is not None and header.needs <= position and header.replay_from >= log_start:
                return
    raise CannotRepair(
        f"the log begins at {log_start}, and no snapshot is as old as position {position}: "
        "no server could start from what is left"
    )
