"""A memory-mapped file of fixed size on disk.

The part of `files` that manages pages. Populating, syncing and releasing go through ctypes, which
releases the interpreter lock; Python's own `mmap(MAP_POPULATE)` and `mmap.flush` hold it.

**Fine and coarse pages.** A fault in a mapped file loads a whole window of the device's readahead,
which may be 8 MiB, in folios of up to 2 MiB. That is the cheapest way to populate pages (2.6 us per
16 KB against 11), and has two disadvantages. The kernel writes a dirty folio as a whole: a sync of
one message then wrote 0.9 MB on average instead of 12 KB. And a kernel without preemption stays in
such a fault for 2 to 30 ms; a thread descheduled on that processor while it holds the interpreter
lock blocks all others. So pages are loaded singly by default, by requesting them in small steps
before they are mapped, and coarsely only for a writer in a hurry
(`rockgate.store.log.page_allocation`).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from contextlib import suppress
from typing import Final

Buffer = bytes | bytearray | memoryview

PAGE_SIZE: Final = 4096
FINE_STEP: Final = 1 << 20
"""Bytes that are loaded and mapped at a time: a third of a millisecond."""
COARSE_STEP: Final = 32 << 20
_MADV_DONTNEED = 4
_MADV_POPULATE_READ = 22
_MADV_POPULATE_WRITE = 23
_MS_SYNC = 4

_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.msync.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def _advise(mapped: mmap.mmap, at: int, size: int, advice: int) -> None:
    """Advise in steps, without the interpreter lock; unsupported advice is ignored."""
    anchor = ctypes.c_char.from_buffer(mapped)
    try:
        address = ctypes.addressof(anchor)
        start = at - at % PAGE_SIZE
        end = min(at + size, len(mapped))
        while start < end:
            step = min(COARSE_STEP, end - start)
            if _libc.madvise(address + start, step, advice):
                return
            start += step
    finally:
        del anchor


def _close_aside(descriptor: int) -> None:
    """Close in a thread, so that whoever releases the last slice does not wait for the disk."""
    threading.Thread(target=os.close, args=(descriptor,), name="rockgate-close").start()


class DiskMapping:
    """A mapped file on disk."""

    def __init__(
        self, name: str, descriptor: int, size: int, *, writable: bool, private: bool = False
    ) -> None:
        self.name = name
        self.size = size
        self._descriptor = descriptor
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        if private:
            access = mmap.ACCESS_COPY
        self._mapped: mmap.mmap | None = mmap.mmap(descriptor, size, access=access)
        self._writable = writable
        self.view = memoryview(self._mapped)
        self.bare: memoryview | None = self.view

    def write(self, at: int, data: Buffer) -> None:
        """Copy bytes."""
        self.view[at : at + len(data)] = data

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Flush dirty pages, of the whole file or of a range.

        A flushed page is clean, so the next write to it causes a fault. Pages populated ahead of
        the writer are dirty too: flushing only a range leaves them ready.
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

    def populate(self, at: int, size: int, *, coarsely: bool = False) -> None:
        """Fault in a range for writing."""
        mapped = self._mapped
        if mapped is None:
            return
        if coarsely:
            _advise(mapped, at, size, _MADV_POPULATE_WRITE)
            return
        end = at + size
        while at < end:
            step = min(FINE_STEP - at % FINE_STEP, end - at)
            # A file system without support creates the pages when they are mapped.
            with suppress(OSError):
                os.posix_fadvise(self._descriptor, at, step, os.POSIX_FADV_WILLNEED)
            _advise(mapped, at, step, _MADV_POPULATE_WRITE)
            at += step

    def prefetch(self, at: int, size: int) -> None:
        """Fault in a range for reading."""
        if self._mapped is None:
            return
        if self._writable:
            _advise(self._mapped, at, size, _MADV_POPULATE_READ)
            return
        self._mapped.madvise(mmap.MADV_WILLNEED, at - at % PAGE_SIZE, size)

    def close(self) -> None:
        """Release the pages without the interpreter lock; the rest goes with the last slice.

        The last close of a removed file frees its blocks, which takes a tenth of a second for a
        segment. Unmapping holds the interpreter lock, so the descriptor is closed after it.
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


def blank(size: int) -> memoryview:
    """Return zeroed memory that only uses the pages written to."""
    return memoryview(mmap.mmap(-1, size))
