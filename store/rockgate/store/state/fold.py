"""Folded state: everything the server knows besides messages, as a fold over the log.

docs/internals/state.md specifies it. A fold is fed the entries of its system topics in log order,
keeps what they come to in memory, and can hand its state out in slices while it goes on changing.
It never writes: a change is appended to the log through a `Journal` and reaches the fold as an
entry, when it happens and again whenever the log is replayed.

What every fold must keep (a property test holds all of them to it):
- an item that is there is never set back: it remembers the position of its last change, and a
  change at an older or equal position leaves it alone;
- a slice holds whole items as they are at one moment; another slice may be of another moment.

So a snapshot taken in slices between log positions `replay_from` and `needs`, restored, and
followed by a replay from `replay_from` to the end, is the state at the end.

This module knows neither what is in a change nor how a snapshot lies on disk.
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
"""What one change may take; a larger one is several entries of one atomic group."""


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
    """Where changes are appended. When a call returns, the folds have applied the change."""

    def append_state(self, topic: bytes, body: bytes) -> int:
        """Append one change to a system topic and return its position."""

    def append_states(self, changes: Sequence[tuple[bytes, bytes]]) -> int:
        """Append topic and body pairs as one atomic group: a restart finds all or none."""


class LateJournal:
    """Lets folds be made before what they write to: the appender needs the folds first."""

    def __init__(self, journal: Callable[[], Journal]) -> None:
        """Write to what `journal` returns; no fold appends before the store is open."""
        self._journal = journal

    def append_state(self, topic: bytes, body: bytes) -> int:
        """Append one change."""
        return self._journal().append_state(topic, body)

    def append_states(self, changes: Sequence[tuple[bytes, bytes]]) -> int:
        """Append changes as one group."""
        return self._journal().append_states(changes)


class Fold(Protocol):
    """One part of the state."""

    @property
    def name(self) -> str:
        """Its name in snapshots; never change it."""

    @property
    def topics(self) -> frozenset[bytes]:
        """The system topics whose entries it wants."""

    def apply(self, change: Change) -> None:
        """Take one change in; items that have it or a later one are left alone."""

    def snapshot(self) -> Iterator[bytes]:
        """Hand out the state slice by slice, each about a millisecond of work.

        The fold may change between two slices. An item that is there throughout must be in one
        slice; one that comes or goes meanwhile need not be.
        """

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace the state by what the slices hold."""

    def clear(self) -> None:
        """Forget everything."""


@runtime_checkable
class BatchFold(Protocol):
    """A fold that is also fed every batch entry, of whatever topic.

    Appending does not feed it: whoever appends a batch has its header at hand and tells the fold.
    A replay comes to the same through `apply_batch`.
    """

    def apply_batch(self, change: Change) -> None:
        """Take one batch entry in; one that is already in changes nothing."""


class State:
    """All folds, fed by topic. The store owns it; folds are added before `restore_newest`."""

    def __init__(self, folds: Sequence[Fold], snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._folds: dict[str, Fold] = {}
        self._wanted_by: dict[bytes, tuple[Fold, ...]] = {}
        self.batch_folds: tuple[BatchFold, ...] = ()
        """Those that are fed batch entries."""
        for fold in folds:
            self.add(fold)

    def add(self, fold: Fold) -> None:
        """Let a fold take part."""
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
        """Return whether any fold wants this topic's entries."""
        return topic in self._wanted_by

    def apply(self, change: Change) -> None:
        """Feed one entry to the folds that want it; a moved entry is no change."""
        if change.sys_flag & MOVED:
            return
        for fold in self._wanted_by.get(change.topic, ()):
            fold.apply(change)

    def restore_newest(self, log_start: int, log_end: int) -> int:
        """Load the newest snapshot that is whole, and return the position to replay from.

        Snapshots that know of log beyond `log_end` are removed: what they hold may never have
        happened. Damaged ones are set aside. With none left, a log that starts at 0 is replayed
        whole, and any other is refused, because the state before its start is lost.
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
            # A fold that the snapshot does not know starts from all the log there is. The
            # others have most of that behind them, and a replay from earlier alters nothing.
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
                # Going on would lose that fold's state with the next snapshot.
                raise FormatTooNew(self._snapshots.path, f"contains unknown fold {name!r}")
            fold.restore(slices)
            restored.add(name)
        missing = self._folds.keys() - restored
        for name in missing:
            self._folds[name].clear()
        return not missing


def check_format(version: int, version_max: int, what: str, position: int = 0) -> None:
    """Refuse the first byte of a change or slice when it is no format version known here.

    Of an empty one that byte is 0, which is none.
    """
    if version > version_max:
        raise FormatTooNew(what, f"has format {version}; the newest supported is {version_max}")
    if version == 0:
        raise StoreCorrupt(what, position, "no format version")
