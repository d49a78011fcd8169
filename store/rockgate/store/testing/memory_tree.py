"""The tree of an in-memory disk: two images of each file, and what a power failure leaves.

The visible image is what a process sees, the durable one what the disk holds. A file's content
is apart from its names, as an inode is, so that content and names are lost or kept on their own.
`rockgate.store.testing.memory_files` puts the store's file interface and the faults on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal, NamedTuple

from rockgate.store.files.interface import PAGE_SIZE

Bytes = bytes | bytearray

Keep = Literal["some", "none", "all", "prefix"]
"""What of the unsynced outlives a power cut: a random part, nothing, all, or the first so many."""


Kind = Literal["write", "sync", "create", "allocate", "rename", "remove", "sync names", "mkdir"]


class PowerCut(BaseException):
    """The process died here. No handler for errors may catch this, so it is not an Exception."""


class Operation(NamedTuple):
    """One counted operation: the first has number 1."""

    number: int
    kind: Kind
    path: str
    size: int


@dataclass(eq=False, slots=True)
class Node:
    """A file's content, whatever its name; a file renamed or removed keeps it."""

    visible: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    clean: bytes | None = None
    """What the kernel believes to be durable, where a failed sync made that something else."""
    written: set[int] = field(default_factory=set)
    """Pages written since that failed sync, though perhaps with the bytes they had."""

    def touch(self, at: int, size: int) -> None:
        """Take note of a write: it makes its pages dirty, whether their bytes change or not."""
        if self.clean is not None:
            self.written.update(range(at - at % PAGE_SIZE, at + size, PAGE_SIZE))

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Make durable what the kernel knows to be dirty, everywhere or in a range's pages."""
        if self.clean is None and size is None:
            self.durable = bytes(self.visible)
            return
        believed = self.durable if self.clean is None else self.clean
        end = len(self.visible) if size is None else at + size
        differing = _differing_pages(self.visible, believed, PAGE_SIZE)
        dirty = sorted(self.written.union(differing))
        pages = [page for page in dirty if at < page + PAGE_SIZE and page < end]
        self.durable = _mix(self.durable, self.visible, pages, len(self.visible), PAGE_SIZE)
        if self.clean is not None:
            self.clean = _mix(self.clean, self.visible, pages, len(self.visible), PAGE_SIZE)
            self.written.difference_update(pages)

    def fail_sync(self) -> None:
        """Forget what is dirty without making it durable."""
        self.clean = bytes(self.visible)
        self.written = set()


class Change(NamedTuple):
    """A change of a directory's names: what is at `new` from then on, and no longer at `old`."""

    old: str | None
    new: str | None
    node: Node

    def apply(self, names: dict[str, Node]) -> None:
        """Make the change, even where changes before it were lost."""
        if self.old is not None and names.get(self.old) is self.node:
            del names[self.old]
        if self.new is not None:
            names[self.new] = self.node


@dataclass(eq=False, slots=True)
class Folder:
    """A directory: its names both ways, and in order the changes that are not durable yet."""

    path: str
    visible: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    children: dict[str, Folder] = field(default_factory=dict)
    owner: object = None

    def change(self, old: str | None, new: str | None, node: Node) -> None:
        """Change the visible names, and remember that the durable ones lag."""
        change = Change(old, new, node)
        change.apply(self.visible)
        self.changes.append(change)

    def sync(self, count: int) -> None:
        """Make the oldest so many changes durable."""
        for change in self.changes[:count]:
            change.apply(self.durable)
        del self.changes[:count]

    def walk(self) -> Iterator[Folder]:
        """Yield this folder and all below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def nodes(self) -> Iterator[Node]:
        """Yield every file that a name leads to, or might lead to after a power cut, once."""
        found = dict.fromkeys(self.visible.values())
        found.update(dict.fromkeys(self.durable.values()))
        found.update(dict.fromkeys(change.node for change in self.changes))
        yield from found


def _differing_pages(one: Bytes, other: Bytes, page_size: int) -> list[int]:
    """Return the starts of the pages that are not the same, or not there, in both."""
    if one == other:
        return []
    starts = range(0, max(len(one), len(other)), page_size)
    return [at for at in starts if one[at : at + page_size] != other[at : at + page_size]]


def _mix(old: Bytes, new: Bytes, pages: list[int], size: int, page_size: int) -> bytes:
    """Return the old content at a size, with the given pages taken from the new."""
    mixed = bytearray(old[:size].ljust(size, b"\0"))
    for at in pages:
        end = min(at + page_size, size)
        if at < end:
            mixed[at:end] = new[at:end].ljust(end - at, b"\0")
    return bytes(mixed)


def surviving_content(node: Node, random: Random, keep: Keep, page_size: int) -> bytes:
    """Return a content that the file may have after a power cut."""
    old, new = node.durable, bytes(node.visible)
    pages = _differing_pages(new, old, page_size)
    if not pages or keep == "none":
        return old
    if keep == "all":
        return new
    if keep == "prefix":
        surviving = pages[: random.randint(0, len(pages))]
        size = (
            len(new)
            if surviving == pages
            else max(len(old), *(at + page_size for at in surviving), 0)
        )
        return _mix(old, new, surviving, min(size, max(len(old), len(new))), page_size)
    likely = random.choice((0.1, 0.5, 0.9))
    surviving = [at for at in pages if random.random() < likely]
    low, high = sorted((len(old), len(new)))
    size = random.choice((low, high, random.randint(low, high)))
    return _mix(old, new, surviving, size, page_size)


def surviving_names(folder: Folder, random: Random, keep: Keep) -> dict[str, Node]:
    """Return names that the directory may have after a power cut."""
    changes = folder.changes
    if keep == "none":
        changes = []
    elif keep == "prefix":
        changes = changes[: random.randint(0, len(changes))]
    elif keep == "some":
        likely = random.choice((0.1, 0.5, 0.9))
        changes = [change for change in changes if random.random() < likely]
    names = dict(folder.durable)
    for change in changes:
        change.apply(names)
    return names
