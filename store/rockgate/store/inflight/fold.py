"""The folds of messages in flight: a window for each group and queue with acquired messages.

One for pop, which docs/internals/pop.md specifies, and one for share groups, of which
docs/internals/groups-share.md says what is different. Windows are in buckets by the time of their
next deadline, each in one at most: memory grows with windows, and neither with messages nor with
deadlines.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.inflight.changes import (
    FORMAT,
    INFLIGHT_TOPIC,
    SHARE_TOPIC,
    Acquire,
    Drop,
    End,
    Extend,
    Forget,
    Reset,
    Shift,
    decode,
)
from rockgate.store.inflight.share_window import ShareWindow
from rockgate.store.inflight.tracked import Key, Tracked
from rockgate.store.inflight.window import Window
from rockgate.store.state.fold import Change, check_format
from rockgate.store.state.roster import Roster
from rockgate.store.state.snapshot_slices import Measured, pack_array, sliced
from rockgate.store.state.topic import Topic

Name = TypeVar("Name", str, bytes)
W = TypeVar("W", bound=Tracked)
BUCKET_MS: Final = 250
_SLICE_COST: Final = 4_000
_VERSION: Final = bytes((FORMAT,))


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    """A window in a snapshot."""

    group: str
    topic_id: bytes
    queue_id: int
    end: int
    position: int
    items: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Saved]).decode


class TopicLives(Protocol):
    """Read access to topics, and notification when one is deleted."""

    on_deleted: list[Callable[[Topic], None]]

    def find_id(self, topic_id: bytes, /) -> Topic | None:
        """Return a topic by id, or None."""


class Windows(Generic[W]):
    """All windows of one kind."""

    def __init__(
        self,
        topics: TopicLives,
        *,
        name: str,
        topic: bytes,
        make: Callable[[Key, int, int], W],
        slice_cost: int = _SLICE_COST,
    ) -> None:
        self.name: Final = name
        self.topics: Final = frozenset({topic})
        self._make = make
        self._topics = topics
        self._slice_cost = slice_cost
        self._windows: dict[Key, W] = {}
        self._roster: Roster[W] = Roster()
        self._of_group: dict[str, dict[Key, W]] = {}
        self._of_topic: dict[bytes, dict[Key, W]] = {}
        self._buckets: dict[int, dict[W, None]] = {}
        self._times: list[int] = []
        """A heap of the existing buckets."""
        self.count = 0
        """Number of offsets in flight, of all windows."""
        self.clock_ms = 0
        """By how much the clock was set, in all, as far as deadlines follow. In memory only."""
        topics.on_deleted.append(self._forget_topic)

    def __len__(self) -> int:
        return len(self._windows)

    def find(self, group: str, topic_id: bytes, queue_id: int) -> W | None:
        """Return the window of a group in a queue."""
        return self._windows.get((group, topic_id, queue_id))

    def of_group(self, group: str) -> list[W]:
        """Return the windows of a group."""
        return list(self._of_group.get(group, {}).values())

    def has_group(self, group: str) -> bool:
        """Return whether a group has windows."""
        return group in self._of_group

    def groups(self) -> list[str]:
        """Return the groups that have windows."""
        return list(self._of_group)

    def walk(self) -> Iterator[W | None]:
        """Yield all windows, and None for empty slots; the caller may pause after any."""
        for _, window in self._roster.walk():
            yield window

    # Deadlines

    @property
    def next_due_ms(self) -> int | None:
        """When the next window is due."""
        return self._times[0] * BUCKET_MS if self._times else None

    def due(self, now_ms: int, count_max: int) -> list[W]:
        """Return windows with expired deadlines, each once; the rest is returned by later calls.

        They are due again at their next deadline that has not passed yet.
        """
        found: list[W] = []
        while self._times and self._times[0] * BUCKET_MS <= now_ms and len(found) < count_max:
            bucket = self._buckets[self._times[0]]
            while bucket and len(found) < count_max:
                window, _ = bucket.popitem()
                window.bucket = None
                found.append(window)
            if not bucket:
                del self._buckets[heappop(self._times)]
        for window in found:
            deadline_ms = window.next_deadline(now_ms)
            if deadline_ms is not None:
                self.look_at(window, deadline_ms)
        return found

    def look_at(self, window: W, when_ms: int) -> None:
        """Make a window due once this time has passed, if it is not due before."""
        number = -(-when_ms // BUCKET_MS)
        if window.bucket is not None:
            if window.bucket <= number:
                return
            del self._buckets[window.bucket][window]
        window.bucket = number
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = {}
            heappush(self._times, number)
        bucket[window] = None

    # Changes

    def apply(self, change: Change) -> None:
        """Apply a change."""
        what = decode(change)
        position = change.position
        if type(what) is End:
            # Most changes are: one for every message that is acknowledged.
            ended = self._windows.get((what.group, what.topic_id, what.queue_id))
            if ended is not None and ended.position < position:
                ended.position = position
                had = len(ended)
                ended.ended(what.runs)
                self.count += len(ended) - had
            return
        if isinstance(what, Drop):
            for each in self.of_group(what.group):
                if each.position < position:
                    self._remove(each)
            return
        key: Key = what.group, what.topic_id, what.queue_id
        window: W | None = self._windows.get(key)
        if window is None:
            if isinstance(what, Acquire) and self._topics.find_id(what.topic_id) is not None:
                window = self._add(self._make(key, what.first, -1))
            elif isinstance(what, Reset) and self._topics.find_id(what.topic_id) is not None:
                window = self._add(self._make(key, what.offset, -1))
            else:
                return
        if window.position >= position:
            return
        if isinstance(what, Forget):
            self._remove(window)
            return
        window.position = position
        had = len(window)
        if isinstance(what, Acquire):
            window.acquired(what)
            if what.runs and what.deadline_ms:
                self.look_at(window, what.deadline_ms)
        elif isinstance(what, Extend):
            window.extended(what)
            self.look_at(window, what.deadline_ms)
        elif isinstance(what, Reset):
            window.reset(what.offset)
        elif isinstance(what, Shift):
            window.shift(what.by_ms)
            if (deadline_ms := window.next_deadline()) is not None:
                self.look_at(window, deadline_ms)
        self.count += len(window) - had

    def _add(self, window: W) -> W:
        self._windows[window.key] = window
        self._of_group.setdefault(window.key[0], {})[window.key] = window
        self._of_topic.setdefault(window.key[1], {})[window.key] = window
        window.place = self._roster.add(window)
        window.followed_ms = self.clock_ms
        self.count += len(window)
        return window

    def _remove(self, window: W) -> None:
        self._roster.remove(window.place)
        if window.bucket is not None:
            del self._buckets[window.bucket][window]
            window.bucket = None
        del self._windows[window.key]
        _take_out(self._of_group, window.key[0], window)
        _take_out(self._of_topic, window.key[1], window)
        self.count -= len(window)

    def _forget_topic(self, topic: Topic) -> None:
        for window in list(self._of_topic.get(topic.id, {}).values()):
            self._remove(window)

    # Snapshots

    def snapshot(self) -> Iterator[bytes]:
        """Yield all windows, each of them whole."""
        for windows in sliced(self._encoded(), self._slice_cost):
            yield _VERSION + pack_array(windows)

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, window in self._roster.walk():
            if window is None:
                yield 1, 0, None
                continue
            saved = _encode(_Saved(*window.key, window.end, window.position, window.packed()))
            yield 4 + len(window), len(saved), saved

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything with the contents of the slices."""
        self.clear()
        what = f"Snapshot of {self.name}"
        for piece in slices:
            check_format(piece[0] if piece else 0, FORMAT, what)
            try:
                for saved in _decode(piece[1:]):
                    self._restore(saved)
            except (msgspec.MsgspecError, struct.error, ValueError) as error:
                raise StoreCorrupt(what, 0, str(error)) from error

    def _restore(self, saved: _Saved) -> None:
        key = (saved.group, saved.topic_id, saved.queue_id)
        window = self._make(key, saved.end, saved.position)
        window.unpack(saved.items)
        known = self._windows.get(window.key)
        if known is not None:
            if known.position >= window.position:
                return
            self._remove(known)
        self._add(window)
        if (deadline_ms := window.next_deadline()) is not None:
            self.look_at(window, deadline_ms)

    def clear(self) -> None:
        """Remove everything."""
        self._windows.clear()
        self._of_group.clear()
        self._of_topic.clear()
        self._roster.clear()
        self._buckets.clear()
        self._times.clear()
        self.count = 0


class MessagesInFlight(Windows[Window]):
    """The windows of pop."""

    def __init__(self, topics: TopicLives, slice_cost: int = _SLICE_COST) -> None:
        super().__init__(
            topics, name="in flight", topic=INFLIGHT_TOPIC, make=Window, slice_cost=slice_cost
        )


class ShareState(Windows[ShareWindow]):
    """The windows of share groups."""

    def __init__(self, topics: TopicLives, slice_cost: int = _SLICE_COST) -> None:
        super().__init__(
            topics, name="share state", topic=SHARE_TOPIC, make=ShareWindow, slice_cost=slice_cost
        )


def _take_out(index: dict[Name, dict[Key, W]], name: Name, window: W) -> None:
    windows = index[name]
    del windows[window.key]
    if not windows:
        del index[name]
