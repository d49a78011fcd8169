"""An overlay of a data directory: reads come from it, writes stay in memory.

Reads come from the directory below, which stays unchanged and need not be writable. Writes,
creates, renames and removes only happen here, and are lost with this object. A start or a repair on
an overlay takes the same steps as a real one, so its outcome is known in advance
(`rockgate.store.check.trial`).

Memory use is that of the changed pages; bytes overwritten with the same bytes cost nothing.
"""

from __future__ import annotations

import errno
from typing import Final

from rockgate.store.files.interface import PAGE_SIZE, Buffer, Directory, File, Mapping
from rockgate.store.files.mapped import blank

DISCARDED: Final = "lost"
"""The child whose files are never read: their bytes are counted but not stored."""
UNLIMITED: Final = 1 << 50


class ShadowMapping:
    """A mapping whose writes stay in memory; `sync` does nothing."""

    bare: memoryview | None = None  # so that each write is seen

    def __init__(self, name: str, view: memoryview, below: Mapping | None = None) -> None:
        self.name = name
        self.size = len(view)
        self.view = view
        self._below = below

    def write(self, at: int, data: Buffer) -> None:
        """Copy the pages that change."""
        rest = memoryview(data)
        while rest:
            step = min(len(rest), PAGE_SIZE - at % PAGE_SIZE)
            if self.view[at : at + step] != rest[:step]:
                self.view[at : at + step] = rest[:step]
            at += step
            rest = rest[step:]

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Do nothing: there is no disk."""

    def populate(self, at: int, size: int, *, coarsely: bool = False) -> None:
        """Do nothing: pages that are never written should not be created."""

    def prefetch(self, at: int, size: int) -> None:
        """Do nothing: pages are loaded when they are read."""

    def close(self) -> None:
        """Do nothing: writes are retained as long as the directory."""


class _Node:
    """A file's content, independent of its names: that of the file below until it is changed."""

    def __init__(self, below: Directory | None = None, name: str = "") -> None:
        self._below = below
        self._name = name
        self._content = bytearray()
        self._mapping: ShadowMapping | None = None
        self._mapped: list[Mapping] = []

    def view(self) -> memoryview:
        """Return the current content."""
        if self._mapping is not None:
            return self._mapping.view
        if self._below is None:
            return memoryview(self._content)
        if not self._mapped:
            try:
                self._mapped.append(self._below.map(self._name, writable=False))
            except ValueError:
                return memoryview(b"")  # an empty file cannot be mapped
        return self._mapped[-1].view

    def mapping(self) -> ShadowMapping:
        """Map it for writing; pages of the file below are copied when written to."""
        if self._mapping is None:
            if self._below is not None:
                self._mapped.append(self._below.map_copy(self._name))
                view = self._mapped[-1].view
            elif self._content:
                view = memoryview(self._content)
            else:
                raise ValueError("cannot map an empty file")
            self._mapping = ShadowMapping(self._name, view)
        return self._mapping

    def allocate(self, name: str, size: int) -> ShadowMapping:
        """Become a zeroed file that starts with the current content."""
        content = self.view()
        self._mapping = ShadowMapping(name, blank(size))
        self._mapping.view[: len(content)] = content
        return self._mapping

    def write(self, at: int, data: Buffer) -> None:
        """Write to memory, extending the file as needed; a mapped file retains its size."""
        if self._mapping is None:
            if self._below is not None:
                self._content, self._below = bytearray(self.view()), None
            grown_by = max(0, at + len(data) - len(self._content))
            self._content.extend(bytes(grown_by))
        self.view()[at : at + len(data)] = data

    def close(self) -> None:
        """Release the mappings of the file below."""
        for mapping in self._mapped:
            mapping.close()


class ShadowFile:
    """A plain file."""

    def __init__(self, name: str, node: _Node, *, is_discarded: bool) -> None:
        self.name = name
        self._node = node
        self._is_discarded = is_discarded

    def size(self) -> int:
        """Return its size."""
        return len(self._node.view())

    def read(self, at: int, size: int) -> bytes:
        """Return up to that many bytes."""
        return bytes(self._node.view()[at : at + max(0, size)])

    def write(self, at: int, data: Buffer) -> None:
        """Write to memory."""
        if not self._is_discarded:
            self._node.write(at, data)

    def sync(self) -> None:
        """Do nothing: there is no disk."""

    def close(self) -> None:
        """Close it."""


class ShadowDirectory:
    """A directory over another one, or over none."""

    def __init__(self, below: Directory | None, path: str, *, is_discarded: bool = False) -> None:
        self.path = path
        self._below = below
        self._is_discarded = is_discarded
        self._files: dict[str, _Node] = {}
        if below is not None:
            self._files.update((name, _Node(below, name)) for name in below.names())
        self._nodes = list(self._files.values())
        self._children: dict[str, ShadowDirectory] = {}

    def close(self) -> None:
        """Release the mappings of files below."""
        for node in self._nodes:
            node.close()
        for child in self._children.values():
            child.close()

    def _node(self, name: str) -> _Node:
        if name not in self._files:
            raise FileNotFoundError(errno.ENOENT, "no such file", f"{self.path}/{name}")
        return self._files[name]

    def child(self, name: str) -> ShadowDirectory:
        """Return a subdirectory; it is only created in memory."""
        if name not in self._children:
            below = None
            if self._below is not None and self._below.has_child(name):
                below = self._below.child(name)
            self._children[name] = ShadowDirectory(
                below, f"{self.path}/{name}", is_discarded=name == DISCARDED
            )
        return self._children[name]

    def has_child(self, name: str) -> bool:
        """Look for a subdirectory."""
        if name in self._children:
            return True
        return self._below is not None and self._below.has_child(name)

    def names(self) -> list[str]:
        """Return the names of the files."""
        return sorted(self._files)

    def allocate(self, name: str, size: int) -> ShadowMapping:
        """Create a zeroed file, which only uses memory where it is written to."""
        node = self._files[name] = _Node()
        return node.allocate(name, size)

    def map(self, name: str, *, writable: bool) -> ShadowMapping:
        """Map a file."""
        return self._node(name).mapping()

    def map_copy(self, name: str) -> ShadowMapping:
        """Map a file; everything here is a copy."""
        return self._node(name).mapping()

    def grow(self, name: str, size: int) -> None:
        """Extend a file with zeros."""
        self._node(name).allocate(name, size)

    def create(self, name: str) -> File:
        """Create an empty file."""
        node = self._files[name] = _Node()
        return ShadowFile(name, node, is_discarded=self._is_discarded)

    def open(self, name: str) -> File:
        """Open an existing file."""
        return ShadowFile(name, self._node(name), is_discarded=self._is_discarded)

    def rename(self, old: str, new: str) -> None:
        """Rename a file here."""
        self._files[new] = self._node(old)
        if old != new:
            del self._files[old]

    def remove(self, name: str) -> None:
        """Remove a file here."""
        self._node(name)
        del self._files[name]

    def sync(self) -> None:
        """Do nothing: there is no disk."""

    def space(self) -> tuple[int, int]:
        """Return the space of the directory below."""
        below = self._below
        return (UNLIMITED, UNLIMITED) if below is None else below.space()

    def lock(self, name: str) -> None:
        """Do nothing: there is no other process."""

    def unlock(self) -> None:
        """Do nothing: there is no other process."""

    def owner(self, name: str) -> str | None:
        """Return None: there is no other process."""
        return None
