"""The start of a run: where the log ends, and what must precede the first append."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from rockgate.store.files.interface import Directory
from rockgate.store.log.recovery import Rest, clear_rest
from rockgate.store.log.segments import Segments

_log = logging.getLogger(__name__)

ABORT = "abort"
"""There while a server runs: found at a start, it says that the last one did not stop cleanly."""


class Found(NamedTuple):
    """What the log came to."""

    end: int
    was_clean: bool
    scanned_bytes: int
    kept_aside_bytes: int
    last_store_ms: int
    rest: Sequence[Rest] = ()
    """What lies behind the end and is still there, because there is no room to keep it aside."""


class Beginning:
    """What must have been done before the first append of a run; without room for it that waits.

    Meanwhile readers are served. Nothing that is left behind can do harm as long as nothing is
    appended, and as long as the next start looks at it again.
    """

    def __init__(self, segments: Segments, directory: Directory, found: Found) -> None:
        self._segments = segments
        self._directory = directory
        self._end = found.end
        self._rest = found.rest

    def step(self) -> None:
        """Do what is left of it; StoreFull if there is no room."""
        if self._rest:
            kept_bytes, kept_path = clear_rest(
                self._segments, self._end, self._directory.child("lost"), self._rest
            )
            self._rest = ()
            # The allocator looked ahead in a segment that is gone: it has work again at once.
            self._segments.prepare_at = self._end
            _log.warning("saved the rest of the log bytes=%d saved=%s", kept_bytes, kept_path)
        if ABORT not in self._directory.names():
            self._directory.create(ABORT).close()
            self._directory.sync()

    def end(self) -> None:
        """Say that the run has ended well, unless the next start has something left to do."""
        if not self._rest and ABORT in self._directory.names():
            self._directory.remove(ABORT)
            self._directory.sync()
