"""Expiry: the start offset of each queue, by age and by size.

docs/internals/retention.md specifies this module and its neighbours. A unit expires as a whole, by
the time at which it was *stored*: back-filled records with old timestamps do not expire at once.
Expiry only advances the queue's log start, which is one state entry for many queues and takes
effect at once; space is freed later, a segment at a time.

A pass over ten thousand queues takes many small slices. Between two of them queues grow, topics are
created and deleted, and log starts may advance for other reasons.
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
"""How far the wall clock may run ahead of elapsed time between two checks without doubt."""
DOUBT_MS: Final = 3_600_000
"""How long a jump forward must last before anything is deleted because of it."""

_SLICE_COST: Final = 1_000
"""Work between two pauses: units visited, about half a microsecond each."""
_LOOK_COST: Final = 20
_WALK_UNITS: Final = 256


class Limits(NamedTuple):
    """The retention limits of a topic's queues."""

    age_ms: int
    size: int


def limits_of(topic: Topic, config: StoreConfig) -> Limits:
    """Return a topic's limits; the store's where its policy has none."""
    policy = topic.policy
    if not policy.expires:
        return Limits(UNLIMITED, UNLIMITED)
    age_ms, size = policy.retention_ms, policy.retention_bytes
    return Limits(
        max(UNLIMITED, config.retention_ms if age_ms is None else age_ms),
        max(UNLIMITED, config.retention_bytes if size is None else size),
    )


class TrustedTime:
    """The wall time used for deletion.

    Setting a clock back only makes entries live longer. A jump ahead would delete everything at
    once because of one wrong time server, so a jump only counts after it has lasted for an hour.
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
    """The size of the units from `start` to `end`."""

    __slots__ = ("end", "size", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.size = 0


class Expiry:
    """Advances log starts. Owned by retention, and used on its thread."""

    def __init__(
        self, *, topics: Topics, queues: QueueTable, clock: Clock, config: StoreConfig
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._config = config
        self._time = TrustedTime(clock)
        self._counts: dict[Queue, _Count] = {}
        self._starts: dict[Topic, dict[int, int]] = {}
        self.advanced_count = 0
        """How many times a queue's log start was advanced."""

    def configure(self, config: StoreConfig) -> None:
        """Use other limits from the next pass on."""
        self._config = config

    def run(self, topics: Iterable[Topic]) -> Iterator[bool]:
        """Expire entries of these topics, with a pause after every slice."""
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
        """Drop the state of a queue whose topic was deleted."""
        self._counts.pop(queue, None)

    def _look(self, topic: Topic, queue: Queue, limits: Limits, now_ms: int) -> Iterator[int]:
        """Find a queue's new log start, and yield the cost of each part of that work."""
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
                # The log start advanced for another reason: units before it may be deleted by now.
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
    """Measure the units up to an offset."""
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
    """Remove units from the front: those before an offset, and those above the size limit.

    As in Kafka, the remaining size is never below the limit.
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
