"""Expiry: the start offset of each queue, by age and by size.

docs/internals/retention.md specifies this module and its neighbours. A unit expires whole, by the
time at which it was *stored*: records that were back-filled with old timestamps do not vanish at
once. Expiring only moves the queue's log start, which is one state entry for many queues and shows
to readers at once; bytes are freed later, a segment at a time.

A pass over ten thousand queues takes many small slices. Between two of them queues grow, topics
come and go, and others may move log starts too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.policy import UNLIMITED
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.state.topic import Topic
from rockgate.store.state.topics import Topics

JUMP_MS: Final = 60_000
"""How far the wall clock may run ahead of elapsed time between two looks without being doubted."""
DOUBT_MS: Final = 3_600_000
"""How long a jump forward must last before anything is deleted for it."""

_SLICE_COST: Final = 1_000
"""Work between two pauses: units walked over, about half a microsecond each."""
_LOOK_COST: Final = 20
_WALK_UNITS: Final = 256


class Limits(NamedTuple):
    """What a topic's queues may hold."""

    age_ms: int
    size: int


def limits_of(topic: Topic, config: StoreConfig) -> Limits:
    """Return a topic's limits; where its policy has none, the store's."""
    policy = topic.policy
    if not policy.expires:
        return Limits(UNLIMITED, UNLIMITED)
    age_ms, size = policy.retention_ms, policy.retention_bytes
    return Limits(
        max(UNLIMITED, config.retention_ms if age_ms is None else age_ms),
        max(UNLIMITED, config.retention_bytes if size is None else size),
    )


class BelievedTime:
    """The wall time to delete by.

    A clock that is set back only makes things live longer. One that jumps ahead would delete
    everything at once, on the word of one bad time server: so a jump is believed when it has
    lasted for an hour.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = clock.now_ms() - clock.monotonic_ms()
        self._doubted_since_ms: int | None = None

    def now_ms(self) -> int:
        """Return the time."""
        elapsed_ms = self._clock.monotonic_ms()
        ahead_ms = self._clock.now_ms() - elapsed_ms
        if ahead_ms > self._ahead_ms + JUMP_MS:
            if self._doubted_since_ms is None:
                self._doubted_since_ms = elapsed_ms
            if elapsed_ms - self._doubted_since_ms < DOUBT_MS:
                return elapsed_ms + self._ahead_ms
        self._doubted_since_ms = None
        self._ahead_ms = ahead_ms
        return elapsed_ms + ahead_ms


class _Count:
    """How many bytes the units from `start` to `end` take."""

    __slots__ = ("end", "size", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.size = 0


class Expiry:
    """Moves log starts. Owned by the store's retention, and used on its thread."""

    def __init__(
        self, *, topics: Topics, queues: QueueTable, clock: Clock, config: StoreConfig
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._config = config
        self._time = BelievedTime(clock)
        self._counts: dict[Queue, _Count] = {}
        self._starts: dict[Topic, dict[int, int]] = {}
        self.advanced_count = 0
        """How many times a queue's log start was moved."""

    def run(self, topics: Iterable[Topic]) -> Iterator[bool]:
        """Expire what these topics hold no longer, with a pause after every slice."""
        now_ms = self._time.now_ms()
        cost = 0
        for topic in topics:
            cost += 1
            limits = limits_of(topic, self._config)
            if limits == (UNLIMITED, UNLIMITED):
                continue
            for queue in self._queues.of(topic.id):
                for spent in self._look(topic, queue, limits, now_ms):
                    cost += spent
                    if cost >= _SLICE_COST:
                        self._advance()
                        yield True
                        cost = 0
                        now_ms = self._time.now_ms()
                if self._topics.find_id(topic.id) is not topic:
                    break
        self._advance()

    def forget(self, queue: Queue) -> None:
        """Forget what is known of a queue whose topic is gone."""
        self._counts.pop(queue, None)

    def _look(self, topic: Topic, queue: Queue, limits: Limits, now_ms: int) -> Iterator[int]:
        """Find where a queue begins, and yield what each piece of that work cost."""
        yield 1
        end = queue.next_offset
        if queue.log_start >= end:
            return
        start = queue.log_start
        if limits.age_ms != UNLIMITED:
            unit = queue.first_at_store_time(now_ms - limits.age_ms)
            start = max(start, end if unit is None else unit.base)
            yield _LOOK_COST
        if limits.size != UNLIMITED:
            count = self._counts.get(queue)
            if count is None or count.start != queue.log_start:
                # Others have moved the log start: what lies before it may be gone by now.
                count = self._counts[queue] = _Count(queue.log_start)
            yield from _measure(queue, count, end)
            yield from _shrink(queue, count, start, limits.size)
            start = count.start
        if start > queue.log_start and self._topics.find_id(topic.id) is topic:
            self._starts.setdefault(topic, {})[queue.queue_id] = start

    def _advance(self) -> None:
        starts, self._starts = self._starts, {}
        if starts:
            self._topics.advance_log_starts(starts)
            self.advanced_count += sum(map(len, starts.values()))


def _measure(queue: Queue, count: _Count, end: int) -> Iterator[int]:
    """Count the units up to an offset."""
    while count.end < end:
        walked = 0
        for base, _, size, offset_count, *_ in islice(queue.walk(count.end), _WALK_UNITS):
            count.size += size
            count.end = base + offset_count
            walked += 1
        if not walked:
            count.end = end
        yield walked


def _shrink(queue: Queue, count: _Count, start: int, size_max: int) -> Iterator[int]:
    """Take units off the front: those before an offset, and those that are too much.

    As in Kafka, what is kept is never less than the size that was asked for.
    """
    while count.start < count.end:
        walked = 0
        for base, _, size, offset_count, *_ in islice(queue.walk(count.start), _WALK_UNITS):
            walked += 1
            if base + offset_count > start and count.size - size < size_max:
                return
            count.size -= size
            count.start = base + offset_count
        yield walked
        if not walked:
            return
