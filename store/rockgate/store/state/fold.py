"""Folded state: everything the server knows besides messages, as a fold over the log.

docs/internals/state.md specifies it. A fold gets the entries of its system topics in log order,
holds the resulting state in memory, and can yield it in slices while it continues to change. It
never writes: a change is appended to the log through a `Journal` and reaches the fold as an entry,
at once and again whenever the log is replayed.

Rules for every fold, enforced by a property test:
- an existing item never goes back: it stores the position of its last change, and ignores changes
  at older or equal positions;
- a slice contains whole items as of one moment; other slices may be of other moments.

So a snapshot taken in slices between log positions `replay_from` and `needs`, restored and followed
by a replay from `replay_from` to the end, is the state at the end.

This module knows neither the contents of a change nor the format of a snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from rockgate.protocol.entry import MOVED
from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.state.snapshots import Snapshots

log = logging.getLogger(__name__)

CHANGE_SIZE_MAX = 1 << 20
"""Maximum size of a change; a larger one is several entries of one atomic group."""


class Change(NamedTuple):
    """One entry as a fold sees it; `body` is valid only during the call."""

    position: int
    store_ms: int
    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    properties: bytes
    body: memoryview


class Journal(Protocol):
    """Appends changes. When a call returns, the folds have applied the change."""

    def append_state(self, topic: bytes, body: bytes) -> int:
        """Append one change to a system topic and return its position."""

    def append_states(self, changes: Sequence[tuple[bytes, bytes]]) -> int:
        """Append topic and body pairs as one atomic group: a restart finds all or none."""


class LateJournal:
    """Allows folds to be created before their journal: the appender needs the folds first."""

    def __init__(self, journal: Callable[[], Journal]) -> None:
        """Write to the result of `journal`; no fold appends before the store is open."""
        self._journal = journal

    def append_state(self, topic: bytes, body: bytes) -> int:
        """Append one change."""
        return self._journal().append_state(topic, body)

    def append_states(self, changes: Sequence[tuple[bytes, bytes]]) -> int:
        """Append changes as one atomic group."""
        return self._journal().append_states(changes)


class Fold(Protocol):
    """One part of the state."""

    @property
    def name(self) -> str:
        """Its name in snapshots; never change it."""

    @property
    def topics(self) -> frozenset[bytes]:
        """The system topics whose entries it reads."""

    def apply(self, change: Change) -> None:
        """Apply a change; items that have it already, or a later one, stay unchanged."""

    def snapshot(self) -> Iterator[bytes]:
        """Yield the state slice by slice, each about a millisecond of work.

        The fold may change between two slices. An item that exists throughout must be in one slice;
        one that is added or removed meanwhile need not be.
        """

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace the state with the contents of the slices."""

    def clear(self) -> None:
        """Remove everything."""


@runtime_checkable
class BatchFold(Protocol):
    """A fold that also gets every batch entry, of any topic.

    Appends do not call it: whoever appends a batch has its header and updates the fold directly. A
    replay gets the same result through `apply_batch`.
    """

    def apply_batch(self, change: Change) -> None:
        """Apply a batch entry; one that is applied already changes nothing."""


class State:
    """All folds, by topic. Owned by the store; folds are added before `restore_newest`."""

    def __init__(self, folds: Sequence[Fold], snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._folds: dict[str, Fold] = {}
        self._wanted_by: dict[bytes, tuple[Fold, ...]] = {}
        self.batch_folds: tuple[BatchFold, ...] = ()
        """Those that get batch entries."""
        for fold in folds:
            self.add(fold)

    def add(self, fold: Fold) -> None:
        """Add a fold."""
        assert fold.name not in self._folds, f"two folds are called {fold.name}"
        self._folds[fold.name] = fold
        for topic in fold.topics:
            self._wanted_by[topic] = (*self._wanted_by.get(topic, ()), fold)
        if isinstance(fold, BatchFold):
            self.batch_folds = (*self.batch_folds, fold)

    @property
    def folds(self) -> Sequence[Fold]:
        """The folds in the order they were added, which is their order in a snapshot."""
        return tuple(self._folds.values())

    def wants(self, topic: bytes) -> bool:
        """Return whether any fold reads this topic's entries."""
        return topic in self._wanted_by

    def apply(self, change: Change) -> None:
        """Apply an entry to the folds that read it; a relocated entry is no change."""
        if change.sys_flag & MOVED:
            return
        for fold in self._wanted_by.get(change.topic, ()):
            fold.apply(change)

    def restore_newest(self, log_start: int, log_end: int) -> int:
        """Load the newest valid snapshot, and return the position to replay from.

        Snapshots that need log beyond `log_end` are removed: their changes may never have happened.
        Damaged ones are renamed. Without any, a log that starts at 0 is replayed completely, and
        any other is rejected, because the state before its start is lost.
        """
        for snapshot in self._snapshots.usable(log_start, log_end):
            try:
                with self._snapshots.read(snapshot) as reader:
                    is_complete = self._restore(reader.sections())
                    reader.check_end()
            except StoreCorrupt as damage:
                self._snapshots.set_aside(snapshot, damage)
                continue
            log.info(
                "state restored snapshot=%s replay_from=%d", snapshot.name, snapshot.replay_from
            )
            # A fold that is not in the snapshot is replayed from the start of the log. For the
            # others a replay from earlier changes nothing.
            return snapshot.replay_from if is_complete else log_start
        for fold in self._folds.values():
            fold.clear()
        if log_start > 0:
            raise StoreCorrupt(
                self._snapshots.path,
                log_start,
                "there is no valid snapshot, and the log does not start at 0",
            )
        return 0

    def _restore(self, sections: Iterable[tuple[str, Iterator[bytes]]]) -> bool:
        restored = set()
        for name, slices in sections:
            fold = self._folds.get(name)
            if fold is None:
                # Continuing would lose that fold's state with the next snapshot.
                raise FormatTooNew(self._snapshots.path, f"contains unknown fold {name!r}")
            fold.restore(slices)
            restored.add(name)
        missing = self._folds.keys() - restored
        for name in missing:
            self._folds[name].clear()
        return not missing


def check_format(version: int, version_max: int, what: str, position: int = 0) -> None:
    """Reject the first byte of a change or slice unless it is a supported format version.

    Callers pass 0 for an empty one, which is never valid.
    """
    if version > version_max:
        raise FormatTooNew(what, f"has format {version}; the newest supported is {version_max}")
    if version == 0:
        raise StoreCorrupt(what, position, "no format version")
