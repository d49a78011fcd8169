"""The store's only door to the operating system: directories, files, mapped files.

Two kinds exist: the disk's, here, and a memory kind that forgets what was not synced
(`rockgate.store.memoryfiles`), for tests that cut the power at every write. Nothing else in the
store imports `os`, `mmap` or `fcntl`.

Durability, as both kinds have it:
- bytes of a file last from its `sync()` on; before that any subset of its pages may be lost;
- a name (created, renamed, removed) lasts from its directory's `sync()` on.

No writable mapping ever lies over a hole of a file: on a full disk that would be SIGBUS and not
an error. Hence `allocate` reserves every block before it maps. Calls that may take a millisecond
let go of the interpreter lock: populating goes through ctypes, because Python's own
`mmap(MAP_POPULATE)` and `mmap.flush` hold it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import threading
import weakref
from pathlib import Path
from typing import Protocol

from rockgate.store.errors import StoreFull, StoreLocked

Buffer = bytes | bytearray | memoryview

PAGE_SIZE = 4096
_POPULATE_STEP = 32 << 20
_MADV_DONTNEED = 4
_MADV_POPULATE_READ = 22
_MADV_POPULATE_WRITE = 23
_MS_SYNC = 4


class Mapping(Protocol):
    """A file of fixed size, mapped into memory. Slices of `view` keep it mapped."""

    name: str
    size: int
    view: memoryview
    bare: memoryview | None
    """The view, where `write` does no more than copy into it; None where writes are watched."""

    def write(self, at: int, data: Buffer) -> None:
        """Copy bytes in; they are visible at once and last from the next `sync`."""

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Wait until all that was written before the call, there or anywhere, is on disk."""

    def populate(self, at: int, size: int) -> None:
        """Make a range ready for writing, so that writing it takes no page fault."""

    def prefetch(self, at: int, size: int) -> None:
        """Bring a range in from disk, so that reading it takes no page fault."""

    def close(self) -> None:
        """Let go of the mapping; it disappears with the last slice of it."""


class File(Protocol):
    """A plain file."""

    name: str

    def size(self) -> int:
        """Return its size in bytes."""

    def read(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes from `at` on; fewer only at its end."""

    def write(self, at: int, data: Buffer) -> None:
        """Write all of the bytes at a place, growing the file as needed."""

    def sync(self) -> None:
        """Wait until all that was written before the call is on disk."""

    def close(self) -> None:
        """Close it."""


class Directory(Protocol):
    """One directory and what is in it."""

    path: str

    def child(self, name: str) -> Directory:
        """Return a directory below, made durably if it is not there."""

    def has_child(self, name: str) -> bool:
        """Say whether there is a directory of that name below."""

    def names(self) -> list[str]:
        """Return the names of the files here, sorted."""

    def allocate(self, name: str, size: int) -> Mapping:
        """Create a zeroed file with every block reserved, and map it; StoreFull without room."""

    def map(self, name: str, *, writable: bool) -> Mapping:
        """Map an existing file whole; a writable one has its blocks reserved first."""

    def create(self, name: str) -> File:
        """Create an empty file, replacing what had the name."""

    def open(self, name: str) -> File:
        """Open an existing file for reading and writing."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing what had the new name."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def sync(self) -> None:
        """Wait until every name here is on disk as it is now."""

    def space(self) -> tuple[int, int]:
        """Return the bytes free for us, and how many these are with all that is used."""

    def lock(self, name: str) -> None:
        """Take the directory for this process until it ends; StoreLocked if another has it."""

    def unlock(self) -> None:
        """Give the directory back."""


_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.msync.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def _advise(mapped: mmap.mmap, at: int, size: int, advice: int) -> None:
    """Advise in steps, without the interpreter lock; advice that a kernel lacks is not taken."""
    anchor = ctypes.c_char.from_buffer(mapped)
    try:
        address = ctypes.addressof(anchor)
        start = at - at % PAGE_SIZE
        end = min(at + size, len(mapped))
        while start < end:
            step = min(_POPULATE_STEP, end - start)
            if _libc.madvise(address + start, step, advice):
                return
            start += step
    finally:
        del anchor


def _full(error: OSError, name: str) -> Exception:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"no room on disk for {name}")
    return error


def _close_aside(descriptor: int) -> None:
    """Close in a thread: who let go of the last slice is not to wait for the disk."""
    threading.Thread(target=os.close, args=(descriptor,), name="rockgate-close").start()


class DiskMapping:
    """A mapped file on disk."""

    def __init__(self, name: str, descriptor: int, size: int, *, writable: bool) -> None:
        self.name = name
        self.size = size
        self._descriptor = descriptor
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._mapped: mmap.mmap | None = mmap.mmap(descriptor, size, access=access)
        self._writable = writable
        self.view = memoryview(self._mapped)
        self.bare: memoryview | None = self.view

    def write(self, at: int, data: Buffer) -> None:
        """Copy bytes in."""
        self.view[at : at + len(data)] = data

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Flush dirty pages: all of the file's, or those of a range alone.

        A flush makes clean, and so costs the next write to each page a fault. Pages that were
        made ready ahead of the writer are dirty too: a flush of a range leaves them ready.
        """
        if size is None or self._mapped is None:
            os.fdatasync(self._descriptor)
            return
        start = at - at % PAGE_SIZE
        anchor = ctypes.c_char.from_buffer(self._mapped)
        try:
            failed = _libc.msync(ctypes.addressof(anchor) + start, at + size - start, _MS_SYNC)
        finally:
            del anchor
        if failed:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), self.name)

    def populate(self, at: int, size: int) -> None:
        """Fault the range in for writing."""
        if self._mapped is not None:
            _advise(self._mapped, at, size, _MADV_POPULATE_WRITE)

    def prefetch(self, at: int, size: int) -> None:
        """Fault the range in for reading."""
        if self._mapped is None:
            return
        if self._writable:
            _advise(self._mapped, at, size, _MADV_POPULATE_READ)
            return
        self._mapped.madvise(mmap.MADV_WILLNEED, at - at % PAGE_SIZE, size)

    def close(self) -> None:
        """Give the pages back without the interpreter lock; the rest goes with the last slice.

        Whoever lets go of a removed file last frees its blocks, which takes a tenth of a second
        for a segment. Unmapping holds the interpreter lock, so the descriptor is closed after it.
        """
        mapped, self._mapped = self._mapped, None
        if mapped is None:
            return
        if self._writable:
            _advise(mapped, 0, self.size, _MADV_DONTNEED)
        self.view = self.bare = memoryview(b"")
        descriptor, self._descriptor = self._descriptor, -1
        reference = weakref.ref(mapped)
        del mapped
        sliced = reference()
        if sliced is None:
            os.close(descriptor)
        else:
            weakref.finalize(sliced, _close_aside, descriptor).atexit = False


class DiskFile:
    """A plain file on disk."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._descriptor = descriptor

    def size(self) -> int:
        """Return its size."""
        return os.fstat(self._descriptor).st_size

    def read(self, at: int, size: int) -> bytes:
        """Read until the bytes are there or the file ends."""
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
        """Write until the bytes are out."""
        rest = memoryview(data)
        try:
            while rest:
                wrote = os.pwrite(self._descriptor, rest, at)
                at += wrote
                rest = rest[wrote:]
        except OSError as error:
            raise _full(error, self.name) from error

    def sync(self) -> None:
        """Flush the file's data and size."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class DiskDirectory:
    """A directory on disk, made with its parents if it is not there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        missing = Path(path)
        missing.mkdir(parents=True, exist_ok=True)
        self._lock = -1

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def child(self, name: str) -> DiskDirectory:
        """Return the directory below; its name is durable."""
        made = not self.has_child(name)
        child = DiskDirectory(self._at(name))
        if made:
            self.sync()
        return child

    def has_child(self, name: str) -> bool:
        """Look for the directory below."""
        return os.path.isdir(self._at(name))

    def names(self) -> list[str]:
        """Return the files' names."""
        with os.scandir(self.path) as found:
            return sorted(item.name for item in found if item.is_file())

    def allocate(self, name: str, size: int) -> DiskMapping:
        """Create, reserve and map a file; nothing is left behind when there is no room."""
        descriptor = os.open(self._at(name), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, size)
            return DiskMapping(name, descriptor, size, writable=True)
        except OSError as error:
            os.close(descriptor)
            os.unlink(self._at(name))
            raise _full(error, name) from error

    def map(self, name: str, *, writable: bool) -> DiskMapping:
        """Map a file whole."""
        flags = os.O_RDWR if writable else os.O_RDONLY
        descriptor = os.open(self._at(name), flags)
        try:
            size = os.fstat(descriptor).st_size
            if writable and size:
                # A copy made by a tool may have holes where zeros were.
                os.posix_fallocate(descriptor, 0, size)
            return DiskMapping(name, descriptor, size, writable=writable)
        except (OSError, ValueError) as error:
            os.close(descriptor)
            raise (_full(error, name) if isinstance(error, OSError) else error) from error

    def create(self, name: str) -> DiskFile:
        """Create an empty file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        try:
            return DiskFile(name, os.open(self._at(name), flags, 0o644))
        except OSError as error:
            raise _full(error, name) from error

    def open(self, name: str) -> DiskFile:
        """Open a file that is there."""
        return DiskFile(name, os.open(self._at(name), os.O_RDWR))

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        os.replace(self._at(old), self._at(new))

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._at(name))

    def sync(self) -> None:
        """Flush the directory itself."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def space(self) -> tuple[int, int]:
        """Ask the file system; what it reserves for others counts as neither free nor used."""
        found = os.statvfs(self.path)
        used = found.f_blocks - found.f_bfree
        return found.f_bavail * found.f_frsize, (used + found.f_bavail) * found.f_frsize

    def lock(self, name: str) -> None:
        """Take an advisory lock, which the kernel drops when the process ends however it ends."""
        descriptor = os.open(self._at(name), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreLocked(self.path, owner or "unknown") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def unlock(self) -> None:
        """Let go of the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def replace_file(directory: Directory, name: str, data: Buffer) -> None:
    """Replace a file's content whole and durably: a reader sees the old bytes or the new ones."""
    aside = f"{name}.new"
    file = directory.create(aside)
    try:
        file.write(0, data)
        file.sync()
    finally:
        file.close()
    directory.rename(aside, name)
    directory.sync()
