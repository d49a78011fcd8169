"""Long polls of both protocols: which requests wait for data in which queue, and until when.

A watcher is notified of every change of a queue that it watches. A poll is one waiting request: it
is retried after it was woken, once per turn of the loop however many changes there were, and a last
time when its timeout expires. A watcher that tracks what changed (a fetch session) watches for its
whole life and wakes its own poll; for others `poll` watches.

In sync queues only what is on disk is visible, so an append to one is news only after the flush
that covers it.

This module does not know what a poll waits for, only which to retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, WatchedTopics

Result = TypeVar("Result")
T = TypeVar("T")
LOOKS_PER_TURN = 64
"""Polls retried before other work gets its turn: a thousand may wait for one queue."""
SECONDS_PER_TURN = 0.005
"""Time limit of the same: a filter may have to read much."""


class Watcher(Protocol):
    """Notified of the changes of a queue."""

    def noted(self) -> None:
        """The queue has changed.

        Called on every append: it must be cheap, and neither watch nor unwatch.
        """


class Poll(Generic[Result]):
    """One waiting request. Completing its future ends the poll."""

    __slots__ = ("_look", "_on_end", "_registry", "_timer", "future", "queues")

    def __init__(
        self,
        registry: PollRegistry,
        wait_ms: int,
        look: Callable[[bool], Result | None],
        on_end: Callable[[], None] | None,
    ) -> None:
        self._registry = registry
        self._look = look
        self._on_end = on_end
        self.queues: tuple[Queue, ...] = ()
        """The queues whose changes wake it."""
        self.future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.future.add_done_callback(self._end)
        self._timer: Timer = registry.clock.call_later(wait_ms / 1000, self.look_last)

    def wake(self) -> None:
        """Schedule a retry."""
        self._registry.wake_poll(self)

    def look(self, is_last: bool = False) -> None:
        """Check whether there is enough data, or respond with what there is after the timeout."""
        if self.future.done():
            return
        try:
            result = self._look(is_last)
        except Exception as error:  # noqa: BLE001  # the waiter gets it, whatever it is
            self.future.set_exception(error)
            return
        if result is not None:
            self.future.set_result(result)

    def look_last(self) -> None:
        """Respond with what there is: the timeout has expired."""
        self.look(True)

    def _end(self, future: asyncio.Future[Result]) -> None:
        self._timer.cancel()
        self._registry.forget(self)
        if self._on_end is not None:
            self._on_end()


class PollRegistry:
    """All waiting polls, and all watchers."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._watchers: dict[Queue, dict[Watcher, None]] = {}
        # There may be very many polls: an append only records their queue, and they are woken in a
        # turn of the loop.
        self._polls_of: dict[Queue, dict[Poll[Any], None]] = {}
        self._changed: dict[Queue, None] = {}
        self._topics: dict[bytes, dict[Queue, None]] = {}
        self._unflushed: dict[Queue, None] = {}
        self._polls: dict[Poll[Any], None] = {}
        self._woken: dict[Poll[Any], None] = {}
        self._is_scheduled = False
        self._is_finishing = False

    def __len__(self) -> int:
        return len(self._polls)

    @property
    def clock(self) -> Clock:
        """The clock of poll timeouts: the running loop's, unless a test has its own."""
        return self._clock or asyncio.get_running_loop()

    @property
    def queue_count(self) -> int:
        """How many queues are watched."""
        return len(self._watchers.keys() | self._polls_of.keys())

    def follow(self, topics: WatchedTopics, queues: Queues) -> None:
        """Subscribe to visible changes of topics; the store notifies of appends itself."""
        topics.on_deleted.append(lambda topic: self.wake_topic(topic.id))
        topics.on_altered.append(lambda topic: self.wake_topic(topic.id))

        def wake_moved(topic: Topic, starts: Mapping[int, int]) -> None:
            moved = queues.of(topic.id)
            for queue_id in starts:
                self.wake_changed(moved[queue_id])

        topics.on_log_starts.append(wake_moved)

    # Watching

    def watch(self, queue: Queue, watcher: Watcher) -> None:
        """Notify a watcher of every change of a queue, until `unwatch`."""
        self._add_listener(self._watchers, queue, watcher)

    def unwatch(self, queue: Queue, watcher: Watcher) -> None:
        """Stop notifying it."""
        self._remove_listener(self._watchers, queue, watcher)

    def _add_listener(self, table: dict[Queue, dict[T, None]], queue: Queue, listener: T) -> None:
        listeners = table.get(queue)
        if listeners is None:
            listeners = table[queue] = {}
            self._topics.setdefault(queue.topic_id, {})[queue] = None
        listeners[listener] = None

    def _remove_listener(
        self, table: dict[Queue, dict[T, None]], queue: Queue, listener: T
    ) -> None:
        listeners = table.get(queue)
        if listeners is None:
            return
        listeners.pop(listener, None)
        if listeners:
            return
        del table[queue]
        if queue not in self._watchers and queue not in self._polls_of:
            queues = self._topics[queue.topic_id]
            del queues[queue]
            if not queues:
                del self._topics[queue.topic_id]

    # Waiting

    def begin(
        self,
        wait_ms: int,
        look: Callable[[bool], Result | None],
        on_end: Callable[[], None] | None = None,
    ) -> Poll[Result]:
        """Begin a poll that its owner wakes; `look` is called as by `poll`."""
        poll = Poll(self, 0 if self._is_finishing else max(0, wait_ms), look, on_end)
        self._polls[poll] = None
        return poll

    def poll(
        self,
        queues: Iterable[Queue],
        wait_ms: int,
        look: Callable[[bool], Result | None],
        on_end: Callable[[], None] | None = None,
    ) -> asyncio.Future[Result]:
        """Wait until `look` returns a result, or for `wait_ms`.

        `look` is called with False after a change of one of the queues, and returns None to wait
        longer; with True after the timeout, when it must return what there is.
        """
        poll = self.begin(wait_ms, look, on_end)
        poll.queues = tuple(queues)
        for queue in poll.queues:
            self._add_listener(self._polls_of, queue, poll)
        return poll.future

    def forget(self, poll: Poll[Any]) -> None:
        """Remove a poll that has ended."""
        self._polls.pop(poll, None)
        self._woken.pop(poll, None)
        for queue in poll.queues:
            self._remove_listener(self._polls_of, queue, poll)

    def finish(self) -> None:
        """Complete every poll with what there is:

        the server is stopping, and none may wait from now on.
        """
        self._is_finishing = True
        for poll in list(self._polls):
            poll.look_last()

    # Waking

    def wake(self, queue: Queue) -> None:
        """An append to a queue; called for each, so it is cheap without waiters."""
        if queue.is_sync:
            self._unflushed[queue] = None
        else:
            self.wake_changed(queue)

    def wake_changed(self, queue: Queue) -> None:
        """The visible part of a queue has changed."""
        watchers = self._watchers.get(queue)
        if watchers:
            for watcher in watchers:
                watcher.noted()
        if queue in self._polls_of:
            self._changed[queue] = None
            self._schedule()

    def wake_flushed(self, flushed: int) -> None:
        """Everything before a position is on disk, so sync queues show it."""
        if not self._unflushed:
            return
        for queue in list(self._unflushed):
            if queue.last_position < flushed:
                # All of it is visible now; otherwise another flush will follow.
                del self._unflushed[queue]
            self.wake_changed(queue)

    def wake_topic(self, topic_id: bytes) -> None:
        """A topic was deleted or recreated, with all its queues."""
        for queue in self._topics.get(topic_id, ()):
            self.wake_changed(queue)

    def wake_poll(self, poll: Poll[Any]) -> None:
        """Retry a poll in the next turn of the loop."""
        self._woken[poll] = None
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._look_all)

    def _look_all(self) -> None:
        self._is_scheduled = False
        woken, changed = self._woken, self._changed
        while changed and not woken:
            queue = next(iter(changed))
            del changed[queue]
            woken.update(self._polls_of.get(queue, ()))
        turn = list(islice(woken, LOOKS_PER_TURN))
        share = TimeSlice(SECONDS_PER_TURN)
        for poll in turn:
            woken.pop(poll, None)
            poll.look()
            if share.is_over():
                break
        if woken or changed:
            self._schedule()
