"""In-memory implementation of the file interface that loses unsynced data, for crash tests.

A `MemoryDisk` has one tree. Every file has two images, what a process sees (`visible`) and what is
on disk (`durable`); directories have both sets of names and the changes between them. Failures:

- `killed()`: the process is gone, but not the kernel. The new disk has everything that was
  written, and what was not synced is still not durable.
- `power_cut(random)`: of every unsynced 4 KiB page of every file, the old or the new content
  survives, in any combination; likewise for sizes and unsynced changes of directories.

Faults are set on the disk and may be changed at any time: `crash_at` (raise `PowerCut` at the n-th
operation, and at every one after it), `capacity` (StoreFull above it), `plan` (an error of the
test's choice for any operation). Every write, sync, create, rename and remove is an operation;
assignments to a mapping's view are not, but they are lost like other writes.

A failed sync drops its pages, as on Linux: they are marked clean, and a later sync that succeeds
does not write them, unless they were written again in between. The disk belongs to one thread at a
time.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from random import Random
from typing import NoReturn

from rockgate.store.errors import StoreFull, StoreLocked
from rockgate.store.files.interface import PAGE_SIZE, Buffer, full_or_same
from rockgate.store.testing.memory_tree import (
    Change,
    Folder,
    Keep,
    Kind,
    Node,
    surviving_content,
    surviving_names,
)
from rockgate.store.testing.memory_tree import Operation as Operation
from rockgate.store.testing.memory_tree import PowerCut as PowerCut

UNLIMITED = 1 << 50
Plan = Callable[[Operation], OSError | None]


class MemoryDisk:
    """A disk, its kernel's page cache, and the one process that uses it."""

    def __init__(
        self,
        *,
        capacity: int = UNLIMITED,
        crash_at: int | None = None,
        crash_keeps: int = 0,
        plan: Plan | None = None,
    ) -> None:
        self.capacity = capacity
        self.crash_at = crash_at
        self.crash_keeps = crash_keeps
        """How many bytes of a write become visible if the crash happens in it."""
        self.plan = plan
        self.operations: list[Operation] = []
        self.is_dead = False
        self._tree = Folder("")

    @property
    def operation_count(self) -> int:
        """How many operations have begun."""
        return len(self.operations)

    @property
    def used(self) -> int:
        """The size of all files that have a name."""
        return sum(len(content) for _, content in self.files())

    def files(self) -> Iterator[tuple[str, bytearray]]:
        """Yield the content of each file, with the path of its folder."""
        for folder in self._tree.walk():
            yield from ((folder.path, node.visible) for node in folder.visible.values())

    def root(self) -> MemoryDirectory:
        """Return the root directory."""
        return MemoryDirectory(self, self._tree)

    def power_cut(
        self, random: Random, *, keep: Keep = "some", page_size: int = PAGE_SIZE
    ) -> MemoryDisk:
        """Return the disk as found after a power failure now."""
        contents: dict[Node, Node] = {}

        def survivor(node: Node) -> Node:
            if node not in contents:
                data = surviving_content(node, random, keep, page_size)
                contents[node] = Node(bytearray(data), data)
            return contents[node]

        def restart(folder: Folder) -> Folder:
            names = {
                name: survivor(node)
                for name, node in sorted(surviving_names(folder, random, keep).items())
            }
            children = {name: restart(child) for name, child in folder.children.items()}
            return Folder(folder.path, names, dict(names), [], children)

        return self._successor(restart(self._tree))

    def killed(self) -> MemoryDisk:
        """Return the disk as found by a new process after this one was killed now."""
        contents: dict[Node, Node] = {}

        def same(node: Node) -> Node:
            if node not in contents:
                written = set(node.written)
                contents[node] = Node(bytearray(node.visible), node.durable, node.clean, written)
            return contents[node]

        def restart(folder: Folder) -> Folder:
            return Folder(
                folder.path,
                {name: same(node) for name, node in folder.visible.items()},
                {name: same(node) for name, node in folder.durable.items()},
                [Change(old, new, same(node)) for old, new, node in folder.changes],
                {name: restart(child) for name, child in folder.children.items()},
            )

        return self._successor(restart(self._tree))

    def write_back(self, random: Random) -> None:
        """Make any part of the unsynced data durable, as a kernel may at any time."""
        for folder in self._tree.walk():
            for node in folder.nodes():
                if node.clean is None:
                    node.durable = surviving_content(node, random, "some", PAGE_SIZE)
            folder.sync(random.randint(0, len(folder.changes)))

    def operate(self, kind: Kind, path: str, size: int = 0) -> OSError | None:
        """Count an operation; crash if it is due, otherwise return the plan's error for it."""
        if self.is_dead:
            raise PowerCut(f"{kind} of {path} by a dead process")
        operation = Operation(len(self.operations) + 1, kind, path, size)
        self.operations.append(operation)
        if operation.number == self.crash_at:
            self._die(operation)
        return self.plan(operation) if self.plan else None

    def dies_next(self) -> bool:
        """Whether the process crashes in the next operation."""
        return not self.is_dead and len(self.operations) + 1 == self.crash_at

    def _die(self, operation: Operation) -> NoReturn:
        self.is_dead = True
        for folder in self._tree.walk():
            for node in folder.nodes():
                # The dead process's views write to the old bytes from now on.
                node.visible = bytearray(node.visible)
        raise PowerCut(f"at operation {operation.number}: {operation.kind} of {operation.path}")

    def _successor(self, tree: Folder) -> MemoryDisk:
        disk = MemoryDisk(capacity=self.capacity)
        disk._tree = tree
        return disk


# The store's file interface


class MemoryMapping:
    """A mapped file in memory; its view is of the file's own bytes."""

    bare: memoryview | None = None  # every write may crash

    def __init__(self, disk: MemoryDisk, path: str, node: Node, *, writable: bool) -> None:
        self.name = path.rpartition("/")[2]
        self.size = len(node.visible)
        self.view = memoryview(node.visible) if writable else memoryview(node.visible).toreadonly()
        self._disk = disk
        self._path = path
        self._node: Node | None = node

    def write(self, at: int, data: Buffer) -> None:
        """Copy bytes."""
        if self._disk.dies_next():
            data = memoryview(data)[: self._disk.crash_keeps]
            self.view[at : at + len(data)] = data
        error = self._disk.operate("write", self._path, len(data))
        if error:
            raise error
        self.view[at : at + len(data)] = data
        if self._node is not None:
            self._node.touch(at, len(data))

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Make visible bytes durable, all of them or those of a range."""
        _sync(self._disk, self._path, self._node, at, size)

    def populate(self, at: int, size: int, *, coarsely: bool = False) -> None:
        """Do nothing: memory is always populated."""

    def prefetch(self, at: int, size: int) -> None:
        """Do nothing: memory is always resident."""

    def close(self) -> None:
        """Release the file; slices of its view stay readable."""
        self._node = None
        self.view = memoryview(b"")


class MemoryFile:
    """A plain file in memory."""

    def __init__(self, disk: MemoryDisk, path: str, node: Node) -> None:
        self.name = path.rpartition("/")[2]
        self._disk = disk
        self._path = path
        self._node: Node | None = node

    def _open_node(self) -> Node:
        if self._node is None:
            raise ValueError(f"{self.name} is closed")
        return self._node

    def size(self) -> int:
        """Return the visible size."""
        return len(self._open_node().visible)

    def read(self, at: int, size: int) -> bytes:
        """Return visible bytes."""
        return bytes(self._open_node().visible[at : at + max(0, size)])

    def write(self, at: int, data: Buffer) -> None:
        """Write the bytes; above the disk's capacity those that fit, and then StoreFull."""
        node = self._open_node()
        rest = memoryview(data)
        if self._disk.dies_next():
            self._put(node, at, rest[: self._disk.crash_keeps])
        error = self._disk.operate("write", self._path, len(rest))
        if error:
            raise full_or_same(error, self.name)
        room = self._disk.capacity - self._disk.used + len(node.visible) - at
        self._put(node, at, rest[: max(0, room)])
        if room < len(rest):
            raise StoreFull(f"No space left on device for {self.name}; free disk space.")

    def _put(self, node: Node, at: int, data: memoryview) -> None:
        if not data:
            return
        visible = node.visible
        if at + len(data) > len(visible):
            # The store never extends a mapped file: that would be a BufferError.
            visible.extend(bytes(at + len(data) - len(visible)))
        visible[at : at + len(data)] = data
        node.touch(at, len(data))

    def sync(self) -> None:
        """Make the visible bytes durable."""
        _sync(self._disk, self._path, self._node)

    def close(self) -> None:
        """Close it."""
        self._node = None


def _sync(
    disk: MemoryDisk, path: str, node: Node | None, at: int = 0, size: int | None = None
) -> None:
    if node is None:
        raise ValueError(f"{path} is closed")
    error = disk.operate("sync", path, len(node.visible))
    if error:
        node.fail_sync()
        raise error
    node.sync(at, size)


class MemoryDirectory:
    """A directory in memory."""

    def __init__(self, disk: MemoryDisk, folder: Folder) -> None:
        self.path = folder.path or "/"
        self._disk = disk
        self._folder = folder

    def _begin(self, kind: Kind, name: str, size: int = 0) -> None:
        error = self._disk.operate(kind, self._at(name), size)
        if error:
            raise full_or_same(error, name)

    def _at(self, name: str) -> str:
        return f"{self._folder.path}/{name}"

    def _node(self, name: str) -> Node:
        if name not in self._folder.visible:
            raise FileNotFoundError(errno.ENOENT, "no such file", self._at(name))
        return self._folder.visible[name]

    def child(self, name: str) -> MemoryDirectory:
        """Return a subdirectory; its name is durable."""
        if not self.has_child(name):
            self._begin("mkdir", name)
            self._folder.children[name] = Folder(self._at(name))
        return MemoryDirectory(self._disk, self._folder.children[name])

    def has_child(self, name: str) -> bool:
        """Look for a subdirectory."""
        return name in self._folder.children

    def names(self) -> list[str]:
        """Return the visible names."""
        return sorted(self._folder.visible)

    def allocate(self, name: str, size: int) -> MemoryMapping:
        """Create a zeroed file; nothing is left behind without space."""
        self._begin("allocate", name, size)
        node = self._fresh(name)
        if self._disk.used + size > self._disk.capacity:
            self._folder.change(name, None, node)
            raise StoreFull(f"No space left on device for {name}; free disk space.")
        node.visible = bytearray(size)
        return MemoryMapping(self._disk, self._at(name), node, writable=True)

    def map(self, name: str, *, writable: bool) -> MemoryMapping:
        """Map a file."""
        node = self._node(name)
        if not node.visible:
            raise ValueError("cannot map an empty file")
        return MemoryMapping(self._disk, self._at(name), node, writable=writable)

    def map_copy(self, name: str) -> MemoryMapping:
        """Map a copy of a file, on a disk of its own."""
        copied = self.map(name, writable=False)
        node = Node(bytearray(copied.view))
        return MemoryMapping(MemoryDisk(), self._at(name), node, writable=True)

    def grow(self, name: str, size: int) -> None:
        """Extend a file with zeros."""
        node = self._node(name)
        self._begin("allocate", name, size)
        more = size - len(node.visible)
        if self._disk.used + more > self._disk.capacity:
            raise StoreFull(f"No space left on device for {name}; free disk space.")
        node.visible.extend(bytes(more))
        _sync(self._disk, self._at(name), node)

    def create(self, name: str) -> MemoryFile:
        """Create an empty file."""
        self._begin("create", name)
        return MemoryFile(self._disk, self._at(name), self._fresh(name))

    def _fresh(self, name: str) -> Node:
        """Return the name's file, emptied: as on disk, an existing one is truncated in place."""
        node = self._folder.visible.get(name)
        if node is None:
            node = Node()
            self._folder.change(None, name, node)
        node.visible = bytearray()
        return node

    def open(self, name: str) -> MemoryFile:
        """Open an existing file."""
        return MemoryFile(self._disk, self._at(name), self._node(name))

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        node = self._node(old)
        self._begin("rename", f"{old} to {new}")
        if old != new:
            self._folder.change(old, new, node)

    def remove(self, name: str) -> None:
        """Remove a file."""
        node = self._node(name)
        self._begin("remove", name)
        self._folder.change(name, None, node)

    def sync(self) -> None:
        """Make all names durable."""
        self._begin("sync names", "")
        self._folder.sync(len(self._folder.changes))

    def space(self) -> tuple[int, int]:
        """Return the free bytes and the capacity."""
        return max(0, self._disk.capacity - self._disk.used), self._disk.capacity

    def lock(self, name: str) -> None:
        """Lock the directory within this disk; its successors start unlocked."""
        if self._folder.owner is not None:
            raise StoreLocked(self.path, "1")
        if name not in self._folder.visible:
            self._begin("create", name)
            self._fresh(name)
        self._folder.owner = self

    def unlock(self) -> None:
        """Release the lock."""
        if self._folder.owner is self:
            self._folder.owner = None

    def owner(self, name: str) -> str | None:
        """Say whether the directory is locked within this disk."""
        return None if self._folder.owner in (None, self) else "1"
