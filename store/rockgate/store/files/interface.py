"""The store's only interface to the operating system: directories, files, mapped files.

There are two implementations: the disk's, here, and one in memory that loses what was not synced
(`rockgate.store.testing.memory_files`), for tests that fail the power at every write. No other
module of the store but this one and `mapped` imports `os`, `mmap` or `fcntl`.

Durability, in both implementations:
- bytes of a file are durable after its `sync()`; before that, any subset of its pages may be lost;
- a name (created, renamed, removed) is durable after its directory's `sync()`.

A writable mapping never covers a hole of a file: on a full disk that would be SIGBUS and not an
error. Hence `allocate` reserves every block before it maps. Calls that may take a millisecond
release the interpreter lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from rockgate.store.errors import StoreError, StoreFull, StoreLocked
from rockgate.store.files.mapped import PAGE_SIZE as PAGE_SIZE
from rockgate.store.files.mapped import Buffer as Buffer
from rockgate.store.files.mapped import DiskMapping


class Mapping(Protocol):
    """A file of fixed size, mapped into memory. Slices of `view` keep it mapped."""

    name: str
    size: int
    view: memoryview
    bare: memoryview | None
    """The view, if `write` only copies into it; None if writes must be observed."""

    def write(self, at: int, data: Buffer) -> None:
        """Copy bytes; they are visible at once and durable after the next `sync`."""

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Wait until everything written to the range, or the file, before the call is on disk."""

    def populate(self, at: int, size: int, *, coarsely: bool = False) -> None:
        """Populate a range for writing, so that writes cause no page faults.

        Page by page, or coarsely: in pieces as large as the kernel prefers.
        """

    def prefetch(self, at: int, size: int) -> None:
        """Load a range from disk, so that reads cause no page faults."""

    def close(self) -> None:
        """Release the mapping; it is unmapped with the last slice of it."""


class File(Protocol):
    """A plain file."""

    name: str

    def size(self) -> int:
        """Return its size in bytes."""

    def read(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes from `at` on; fewer only at its end."""

    def write(self, at: int, data: Buffer) -> None:
        """Write all bytes at a place, extending the file as needed."""

    def sync(self) -> None:
        """Wait until everything written before the call is on disk."""

    def close(self) -> None:
        """Close it."""


class Directory(Protocol):
    """One directory and its contents."""

    path: str

    def child(self, name: str) -> Directory:
        """Return a subdirectory, created durably if necessary."""

    def has_child(self, name: str) -> bool:
        """Say whether there is a subdirectory of that name."""

    def names(self) -> list[str]:
        """Return the names of the files, sorted."""

    def allocate(self, name: str, size: int) -> Mapping:
        """Create a zeroed file with every block reserved, and map it; StoreFull without space."""

    def map(self, name: str, *, writable: bool) -> Mapping:
        """Map an existing file; for a writable one, its blocks are reserved first."""

    def map_copy(self, name: str) -> Mapping:
        """Map an existing file privately; writes stay in this process."""

    def grow(self, name: str, size: int) -> None:
        """Extend a file durably with zeros; StoreFull without space."""

    def create(self, name: str) -> File:
        """Create an empty file, replacing an existing one."""

    def open(self, name: str) -> File:
        """Open an existing file for reading and writing."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing an existing one of the new name."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def sync(self) -> None:
        """Wait until all current names are on disk."""

    def space(self) -> tuple[int, int]:
        """Return the bytes available to us, and those together with all used bytes."""

    def lock(self, name: str) -> None:
        """Lock the directory for this process; StoreLocked if another one holds the lock."""

    def unlock(self) -> None:
        """Release the lock."""

    def owner(self, name: str) -> str | None:
        """Return the process that holds the lock; None if no other one does."""


def full_or_same(error: OSError, name: str) -> Exception:
    """Return StoreFull if that is the reason, and any other error unchanged."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"No space left on device{name and f' for {name}'}; free disk space.")
    return error


class DiskFile:
    """A plain file on disk."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._descriptor = descriptor

    def size(self) -> int:
        """Return its size."""
        return os.fstat(self._descriptor).st_size

    def read(self, at: int, size: int) -> bytes:
        """Read until all bytes are read or the file ends."""
        parts = []
        while size > 0:
            part = os.pread(self._descriptor, size, at)
            if not part:
                break
            parts.append(part)
            at += len(part)
            size -= len(part)
        return b"".join(parts)

    def write(self, at: int, data: Buffer) -> None:
        """Write until all bytes are written."""
        rest = memoryview(data)
        try:
            while rest:
                wrote = os.pwrite(self._descriptor, rest, at)
                at += wrote
                rest = rest[wrote:]
        except OSError as error:
            raise full_or_same(error, self.name) from error

    def sync(self) -> None:
        """Flush the file's data and size."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class DiskDirectory:
    """A directory on disk, created with its parents if necessary."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise full_or_same(error, self.path) from error
        self._lock = -1

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def child(self, name: str) -> DiskDirectory:
        """Return a subdirectory; its name is durable."""
        made = not self.has_child(name)
        child = DiskDirectory(self._at(name))
        if made:
            self.sync()
        return child

    def has_child(self, name: str) -> bool:
        """Look for a subdirectory."""
        return os.path.isdir(self._at(name))

    def names(self) -> list[str]:
        """Return the names of the files."""
        with os.scandir(self.path) as found:
            return sorted(item.name for item in found if item.is_file())

    def allocate(self, name: str, size: int) -> DiskMapping:
        """Create, reserve and map a file; nothing is left behind without space."""
        try:
            descriptor = os.open(self._at(name), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        except OSError as error:
            raise full_or_same(error, name) from error
        try:
            os.posix_fallocate(descriptor, 0, size)
            return DiskMapping(name, descriptor, size, writable=True)
        except OSError as error:
            os.close(descriptor)
            os.unlink(self._at(name))
            raise full_or_same(error, name) from error

    def map(self, name: str, *, writable: bool) -> DiskMapping:
        """Map a file."""
        flags = os.O_RDWR if writable else os.O_RDONLY
        descriptor = os.open(self._at(name), flags)
        try:
            size = os.fstat(descriptor).st_size
            if writable and size:
                # A copy made by a tool may have holes in place of zeros.
                os.posix_fallocate(descriptor, 0, size)
            return DiskMapping(name, descriptor, size, writable=writable)
        except (OSError, ValueError) as error:
            os.close(descriptor)
            raise (full_or_same(error, name) if isinstance(error, OSError) else error) from error

    def map_copy(self, name: str) -> DiskMapping:
        """Map a file privately; its blocks are not reserved."""
        descriptor = os.open(self._at(name), os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            return DiskMapping(name, descriptor, size, writable=True, private=True)
        except (OSError, ValueError):
            os.close(descriptor)
            raise

    def grow(self, name: str, size: int) -> None:
        """Reserve the missing blocks."""
        descriptor = os.open(self._at(name), os.O_RDWR)
        try:
            os.posix_fallocate(descriptor, 0, size)
            os.fsync(descriptor)
        except OSError as error:
            raise full_or_same(error, name) from error
        finally:
            os.close(descriptor)

    def create(self, name: str) -> DiskFile:
        """Create an empty file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        try:
            return DiskFile(name, os.open(self._at(name), flags, 0o644))
        except OSError as error:
            raise full_or_same(error, name) from error

    def open(self, name: str) -> DiskFile:
        """Open an existing file."""
        return DiskFile(name, os.open(self._at(name), os.O_RDWR))

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        try:
            os.replace(self._at(old), self._at(new))
        except OSError as error:
            raise full_or_same(error, new) from error

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._at(name))

    def sync(self) -> None:
        """Flush the directory itself."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            # Perhaps too many open files: that says nothing about the disk, and may pass.
            raise StoreError(f"Cannot open {self.path} for fsync: {error.strerror}.") from error
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def space(self) -> tuple[int, int]:
        """Ask the file system; blocks reserved for root count as neither free nor used."""
        found = os.statvfs(self.path)
        used = found.f_blocks - found.f_bfree
        return found.f_bavail * found.f_frsize, (used + found.f_bavail) * found.f_frsize

    def lock(self, name: str) -> None:
        """Take an advisory lock, which the kernel releases when the process ends."""
        descriptor = os.open(self._at(name), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreLocked(self.path, owner or "unknown") from error
        # The owner's id is only informational, and a full disk may have no space for it.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def unlock(self) -> None:
        """Release the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def owner(self, name: str) -> str | None:
        """Try a shared lock read-only: a directory that is not writable may have an owner too."""
        try:
            descriptor = os.open(self._at(name), os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        finally:
            os.close(descriptor)
        return None


def replace_file(directory: Directory, name: str, data: Buffer) -> None:
    """Replace a file atomically and durably: a reader sees the old bytes or the new ones."""
    aside = f"{name}.new"
    file = directory.create(aside)
    try:
        file.write(0, data)
        file.sync()
    finally:
        file.close()
    directory.rename(aside, name)
    directory.sync()
