"""fsync, and the one place that declares the disk failed.

Every file, mapping and directory of an open store goes through this module, so that every fsync,
fdatasync and msync is made by `Syncs.run`. The first failure is final until the process restarts.
The kernel may have dropped the dirty pages and marked them clean, so a later sync that succeeds
proves nothing: none is tried, and one in progress has failed as well.

Only a sync decides that. A file that cannot be created or written is an error of its caller, and
may succeed later.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rockgate.store.errors import DiskFailed
from rockgate.store.files.interface import Directory, File, Mapping

_log = logging.getLogger(__name__)


class Syncs:
    """Runs every sync of a store, on any thread."""

    def __init__(self, on_failed: Callable[[DiskFailed], None] = lambda failure: None) -> None:
        """`on_failed` is called once, by the thread whose sync failed."""
        self.failure: DiskFailed | None = None
        """Why nothing is synced any longer; None if no sync has failed."""
        self._on_failed = on_failed
        self._judging = threading.Lock()

    def run(self, path: str, sync: Callable[[], None]) -> None:
        """Sync; DiskFailed if it fails, or if another one has failed by its end."""
        self.check()
        try:
            sync()
        except OSError as error:
            self._fail(path, error)
        self.check()

    def check(self) -> None:
        """Raise DiskFailed if the disk has failed."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    def _fail(self, path: str, error: OSError) -> None:
        with self._judging:
            if self.failure is not None:
                return
            self.failure = failure = DiskFailed(path, error)
        _log.error("%s", failure)
        self._on_failed(failure)


class SyncedFile:
    """A plain file with supervised syncs."""

    def __init__(self, file: File, path: str, syncs: Syncs) -> None:
        self.name = file.name
        self._file = file
        self._path = path
        self._syncs = syncs
        self.size = file.size
        self.read = file.read
        self.write = file.write
        self.close = file.close

    def sync(self) -> None:
        """Wait for the disk."""
        self._syncs.run(self._path, self._file.sync)


class SyncedMapping:
    """A mapped file with supervised syncs; writes are not intercepted."""

    def __init__(self, mapping: Mapping, path: str, syncs: Syncs) -> None:
        self.name = mapping.name
        self.size = mapping.size
        self.view = mapping.view
        self.bare = mapping.bare
        self._mapping = mapping
        # Files are created under a temporary name.
        self._path = path.removesuffix(".new")
        self._syncs = syncs
        self.write = mapping.write
        self.populate = mapping.populate
        self.prefetch = mapping.prefetch

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Wait for the disk."""
        self._syncs.run(self._path, lambda: self._mapping.sync(at, size))

    def close(self) -> None:
        """Release the mapping, its view first: it lives as long as a slice of it."""
        self.view = memoryview(b"")
        if self.bare is not None:
            self.bare = self.view
        self._mapping.close()


class SyncedDirectory:
    """A directory whose syncs, and those of its contents, are supervised."""

    def __init__(self, directory: Directory, syncs: Syncs) -> None:
        self.path = directory.path
        self._directory = directory
        self._syncs = syncs
        self.has_child = directory.has_child
        self.names = directory.names
        self.rename = directory.rename
        self.remove = directory.remove
        self.space = directory.space
        self.lock = directory.lock
        self.unlock = directory.unlock
        self.owner = directory.owner
        self.map_copy = directory.map_copy

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def child(self, name: str) -> SyncedDirectory:
        """Return a subdirectory. Only a start creates any, and an error ends that start."""
        self._syncs.check()
        return SyncedDirectory(self._directory.child(name), self._syncs)

    def allocate(self, name: str, size: int) -> SyncedMapping:
        """Create and map a file."""
        return SyncedMapping(self._directory.allocate(name, size), self._at(name), self._syncs)

    def map(self, name: str, *, writable: bool) -> SyncedMapping:
        """Map a file."""
        mapping = self._directory.map(name, writable=writable)
        return SyncedMapping(mapping, self._at(name), self._syncs)

    def grow(self, name: str, size: int) -> None:
        """Extend a file durably."""
        self._syncs.run(self._at(name), lambda: self._directory.grow(name, size))

    def create(self, name: str) -> SyncedFile:
        """Create an empty file."""
        return SyncedFile(self._directory.create(name), self._at(name), self._syncs)

    def open(self, name: str) -> SyncedFile:
        """Open an existing file."""
        return SyncedFile(self._directory.open(name), self._at(name), self._syncs)

    def sync(self) -> None:
        """Wait for the disk."""
        self._syncs.run(self.path, self._directory.sync)
