"""The start of a run: where the log ends, and what must precede the first append."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from rockgate.store.directory_id import UNKNOWN, directory_id
from rockgate.store.files.interface import Directory
from rockgate.store.log.recovery import Rest, clear_rest
from rockgate.store.log.segments import Segments

_log = logging.getLogger(__name__)

ABORT = "abort"
"""A file that exists while a server runs: at a start it means that the last stop was not clean."""


class Found(NamedTuple):
    """What recovery found in the log."""

    end: int
    was_clean: bool
    scanned_bytes: int
    set_aside_bytes: int
    last_store_ms: int
    rest: Sequence[Rest] = ()
    """Bytes after the end that are still there because there is no space to save them."""


class Beginning:
    """The work that must precede the first append of a run; it is retried until there is space.

    Readers are served meanwhile. The leftover bytes are harmless as long as nothing is appended and
    the next start examines them again.
    """

    def __init__(self, segments: Segments, directory: Directory, found: Found) -> None:
        self._segments = segments
        self._directory = directory
        self._end = found.end
        self._rest = found.rest
        self.directory = UNKNOWN
        """The id of the data directory, once `step` has found or made it."""

    def step(self) -> None:
        """Do the remaining work; StoreFull if there is no space."""
        if self._rest:
            saved_bytes, saved_path = clear_rest(
                self._segments, self._end, self._directory.child("lost"), self._rest
            )
            self._rest = ()
            # The allocator prepared a segment that is gone now, so it has work at once.
            self._segments.prepare_at = self._end
            _log.warning("saved the rest of the log bytes=%d saved=%s", saved_bytes, saved_path)
        if ABORT not in self._directory.names():
            self._directory.create(ABORT).close()
            self._directory.sync()
        self.directory = directory_id(self._directory)

    def end(self) -> None:
        """Mark the stop as clean, unless the next start has leftover bytes to examine."""
        if not self._rest and ABORT in self._directory.names():
            self._directory.remove(ABORT)
            self._directory.sync()
