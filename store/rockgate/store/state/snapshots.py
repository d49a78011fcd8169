"""Retained snapshots: which exist, which are usable, which part of the log they need.

Files are `snapshots/<replay_from>-<sequence>`, so names sort by age. The two newest are retained,
and with them the log from the older one's `replay_from` on. While a snapshot is written its name
ends in `.new`; a damaged one is renamed to `.damaged` and removed once it is the oldest.

`usable` and `read` are for the start, `publish` for the writer's thread; `oldest_needed` may be
called from any thread, because the retained snapshots are one tuple that is only replaced.
"""

from __future__ import annotations

import logging
import re
from typing import Final, NamedTuple

from rockgate.store.errors import StoreCorrupt, StoreError
from rockgate.store.files.interface import Directory, File
from rockgate.store.state.snapshotfile import SnapshotReader, read_header

log = logging.getLogger(__name__)

RETAINED_COUNT: Final = 2
_NAME: Final = re.compile(r"(\d{20})-(\d{10})(\.new|\.damaged)?")
_NEW: Final = ".new"
_DAMAGED: Final = ".damaged"


class RetainedSnapshot(NamedTuple):
    """A finished snapshot; they compare by age."""

    replay_from: int
    sequence: int
    size: int

    @property
    def name(self) -> str:
        """The file's name."""
        return snapshot_name(self.replay_from, self.sequence)


def snapshot_name(replay_from: int, sequence: int) -> str:
    """Return a snapshot's file name."""
    return f"{replay_from:020d}-{sequence:010d}"


class Snapshots:
    """The directory of snapshots."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._retained: tuple[RetainedSnapshot, ...] = ()
        self._sequence = 0
        self.damaged_count = 0

    @property
    def path(self) -> str:
        """The directory's path."""
        return self._directory.path

    @property
    def newest(self) -> RetainedSnapshot | None:
        """The newest finished one."""
        return self._retained[-1] if self._retained else None

    def oldest_needed(self) -> int:
        """Return the position from which on the log must be retained.

        That is 0 until there are two snapshots: a single one may turn out to be damaged, and then
        only the complete log could replace it.
        """
        return self._retained[0].replay_from if len(self._retained) == RETAINED_COUNT else 0

    # At the start

    def usable(self, log_start: int, log_end: int) -> list[RetainedSnapshot]:
        """Remove what can never be used, and return usable snapshots, newest first.

        A snapshot that needs log beyond `log_end` is removed at once: after the next appends the
        log would reach that far again, with a different history.
        """
        found = []
        for name in self._directory.names():
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            snapshot = RetainedSnapshot(int(match[1]), int(match[2]), 0)
            self._sequence = max(self._sequence, snapshot.sequence)
            if match[3] == _NEW:
                self._directory.remove(name)
            elif match[3] is None:
                size = self._usable_size(snapshot, log_start, log_end)
                if size is not None:
                    found.append(snapshot._replace(size=size))
        self._directory.sync()
        found.sort()
        self._retained = tuple(found[-RETAINED_COUNT:])
        return found[::-1]

    def _usable_size(self, snapshot: RetainedSnapshot, log_start: int, log_end: int) -> int | None:
        file = self._directory.open(snapshot.name)
        try:
            header = read_header(file)
            size = file.size()
        except StoreCorrupt as damage:
            self.set_aside(snapshot, damage)
            return None
        finally:
            file.close()
        if header.needs > log_end:
            log.warning(
                "snapshot removed name=%s needs=%d log_end=%d", snapshot.name, header.needs, log_end
            )
            self._directory.remove(snapshot.name)
            return None
        if snapshot.replay_from < log_start:
            log.warning("snapshot unusable name=%s log_start=%d", snapshot.name, log_start)
            return None
        return size

    def file(self, snapshot: RetainedSnapshot) -> File:
        """Open a snapshot's file as it is; the caller closes it."""
        return self._directory.open(snapshot.name)

    def read(self, snapshot: RetainedSnapshot) -> SnapshotReader:
        """Open a snapshot for reading; the caller closes it."""
        file = self._directory.open(snapshot.name)
        try:
            return SnapshotReader(file)
        except StoreError:
            file.close()
            raise

    def set_aside(self, snapshot: RetainedSnapshot, damage: StoreCorrupt) -> None:
        """Take a damaged snapshot out of use, but retain it for inspection."""
        log.error("snapshot damaged name=%s reason=%s", snapshot.name, damage)
        self.damaged_count += 1
        self._directory.rename(snapshot.name, snapshot.name + _DAMAGED)
        self._directory.sync()
        self._retained = tuple(other for other in self._retained if other.name != snapshot.name)

    # In the writer's thread

    def next_name(self, replay_from: int) -> tuple[int, str]:
        """Return the sequence number and the temporary name of the next snapshot."""
        self._sequence += 1
        return self._sequence, snapshot_name(replay_from, self._sequence) + _NEW

    def publish(self, snapshot: RetainedSnapshot) -> None:
        """Move a finished snapshot into place, and remove the oldest."""
        self._directory.rename(snapshot.name + _NEW, snapshot.name)
        self._directory.sync()
        self._retained = (*self._retained, snapshot)[-RETAINED_COUNT:]
        if len(self._retained) < RETAINED_COUNT:
            return
        oldest = self._retained[0]
        for name in self._directory.names():
            match = _NAME.fullmatch(name)
            if match and (int(match[1]), int(match[2])) < oldest[:2]:
                self._directory.remove(name)
