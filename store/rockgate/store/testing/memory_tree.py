"""The tree of an in-memory disk: two images of each file, and what a power failure leaves.

The visible image is what a process sees, the durable one what is on disk. Like an inode, a file's
content is separate from its names, so that content and names are lost or preserved independently.
`rockgate.store.testing.memory_files` adds the store's file interface and the faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal, NamedTuple

from rockgate.store.files.interface import PAGE_SIZE

Bytes = bytes | bytearray

Keep = Literal["some", "none", "all", "prefix"]
"""Which unsynced data survives a power failure: a random part, none, all, or a prefix."""


Kind = Literal["write", "sync", "create", "allocate", "rename", "remove", "sync names", "mkdir"]


class PowerCut(BaseException):
    """The process died. Not an Exception, so that no error handler catches it."""


class Operation(NamedTuple):
    """One counted operation; the first one has number 1."""

    number: int
    kind: Kind
    path: str
    size: int


@dataclass(eq=False, slots=True)
class Node:
    """A file's content, independent of its names; renaming or removing does not change it."""

    visible: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    clean: bytes | None = None
    """What the kernel considers durable, if a failed sync made that differ from `durable`."""
    written: set[int] = field(default_factory=set)
    """Pages written since that failed sync, even with unchanged bytes."""

    def touch(self, at: int, size: int) -> None:
        """Record a write: its pages become dirty, even if their bytes do not change."""
        if self.clean is not None:
            self.written.update(range(at - at % PAGE_SIZE, at + size, PAGE_SIZE))

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Make dirty pages durable, all of them or those of a range."""
        if self.clean is None and size is None:
            self.durable = bytes(self.visible)
            return
        known = self.durable if self.clean is None else self.clean
        end = len(self.visible) if size is None else at + size
        differing = _differing_pages(self.visible, known, PAGE_SIZE)
        dirty = sorted(self.written.union(differing))
        pages = [page for page in dirty if at < page + PAGE_SIZE and page < end]
        self.durable = _mix(self.durable, self.visible, pages, len(self.visible), PAGE_SIZE)
        if self.clean is not None:
            self.clean = _mix(self.clean, self.visible, pages, len(self.visible), PAGE_SIZE)
            self.written.difference_update(pages)

    def fail_sync(self) -> None:
        """Mark dirty pages clean without making them durable."""
        self.clean = bytes(self.visible)
        self.written = set()


class Change(NamedTuple):
    """A change of a directory's names: `new` now refers to the node, and `old` no longer does."""

    old: str | None
    new: str | None
    node: Node

    def apply(self, names: dict[str, Node]) -> None:
        """Apply the change, even if earlier changes were lost."""
        if self.old is not None and names.get(self.old) is self.node:
            del names[self.old]
        if self.new is not None:
            names[self.new] = self.node


@dataclass(eq=False, slots=True)
class Folder:
    """A directory: visible names, durable names, and in order the changes between them."""

    path: str
    visible: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    children: dict[str, Folder] = field(default_factory=dict)
    owner: object = None

    def change(self, old: str | None, new: str | None, node: Node) -> None:
        """Change the visible names, and record that the durable ones lag behind."""
        change = Change(old, new, node)
        change.apply(self.visible)
        self.changes.append(change)

    def sync(self, count: int) -> None:
        """Make the oldest changes durable."""
        for change in self.changes[:count]:
            change.apply(self.durable)
        del self.changes[:count]

    def walk(self) -> Iterator[Folder]:
        """Yield this folder and all folders below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def nodes(self) -> Iterator[Node]:
        """Yield every file that has a name, or may have one after a power failure, once."""
        found = dict.fromkeys(self.visible.values())
        found.update(dict.fromkeys(self.durable.values()))
        found.update(dict.fromkeys(change.node for change in self.changes))
        yield from found


def _differing_pages(one: Bytes, other: Bytes, page_size: int) -> list[int]:
    """Return the starts of the pages that differ, or exist in only one."""
    if one == other:
        return []
    starts = range(0, max(len(one), len(other)), page_size)
    return [at for at in starts if one[at : at + page_size] != other[at : at + page_size]]


def _mix(old: Bytes, new: Bytes, pages: list[int], size: int, page_size: int) -> bytes:
    """Return the old content at a size, with the given pages of the new one."""
    mixed = bytearray(old[:size].ljust(size, b"\0"))
    for at in pages:
        end = min(at + page_size, size)
        if at < end:
            mixed[at:end] = new[at:end].ljust(end - at, b"\0")
    return bytes(mixed)


def surviving_content(node: Node, random: Random, keep: Keep, page_size: int) -> bytes:
    """Return possible content of the file after a power failure."""
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
    """Return possible names of the directory after a power failure."""
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
