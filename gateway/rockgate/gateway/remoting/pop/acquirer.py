"""Acquires messages for pops: reads queues, and puts what was found in flight.

docs/internals/pop.md specifies it. Reading and acquiring are one step of the loop: what has to be
brought in or opened first is awaited, and then everything is looked at again.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets
from rockgate.gateway.remoting.messages.puller import Pulled, Puller
from rockgate.gateway.remoting.messages.subscriptions import EVERYTHING, Filter
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry, is_legal
from rockgate.gateway.transcode import names
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import pack_properties, parse_properties
from rockgate.protocol.remoting import message as messages
from rockgate.protocol.remoting import properties as named
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.pop import (
    NORMAL,
    ORDER_REVIVE_QUEUE,
    RETRY,
    Acquired,
    Handle,
    retry_topic,
    write_handle,
)
from rockgate.store.api.append import StateAppender
from rockgate.store.api.clock import Clock
from rockgate.store.api.inflight import (
    INFLIGHT_TOPIC,
    Acquire,
    Extend,
    MessagesInFlight,
    Reset,
    Window,
    encode,
    runs_of,
)
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic

INVISIBLE_MS_MAX: Final = 12 * 3_600_000
TRIES_MAX: Final = 8
"""How often a pop looks again after something was brought in for it."""
RETRY_EVERY: Final = 5
"""One pop of so many looks into the retry topic first."""
FROM_THE_BEGINNING: Final = 0
_AT: Final = struct.Struct(">i16xq")
"""Size and queue offset of a message."""


class Pop(NamedTuple):
    """What a member asks for."""

    group: str
    """In the store's form."""
    topic: Topic
    queue_id: int
    """-1 for any."""
    count_max: int
    size_max: int
    invisible_ms: int
    wanted: Filter
    init_mode: int
    is_ordered: bool
    attempt: str | None


class Popped(NamedTuple):
    """What it gets."""

    pop_ms: int
    acquired: list[Acquired]
    buffers: list[Buffer]
    size: int
    rest: int
    """Messages that were left, about."""


class _Found:
    """What one pop gathers."""

    __slots__ = ("acquired", "buffers", "changes", "count", "later", "rest", "size")

    def __init__(self) -> None:
        self.acquired: list[Acquired] = []
        self.buffers: list[Buffer] = []
        self.changes: list[tuple[bytes, bytes]] = []
        self.count = 0
        self.size = 0
        self.rest = 0
        self.later: Awaitable[Pulled] | None = None


class Acquirer:
    """Hands messages out."""

    def __init__(
        self,
        *,
        in_flight: MessagesInFlight,
        journal: StateAppender,
        puller: Puller,
        queues: Queues,
        topics: TopicRegistry,
        offsets: ConsumerOffsets,
        clock: Clock,
        broker_name: str,
    ) -> None:
        self._in_flight = in_flight
        self._journal = journal
        self._puller = puller
        self._queues = queues
        self._topics = topics
        self._offsets = offsets
        self._clock = clock
        self._broker_name = broker_name
        self._turn = 0
        self.popped_count = 0

    def pop(self, asked: Pop, tries: int = 0) -> Popped | Awaitable[Popped]:
        """Acquire what there is now; later if something must first be brought in or opened."""
        found = _Found()
        now_ms = self._clock.now_ms()
        retried = None
        if not asked.is_ordered:
            retried = self._topics.find(
                retry_topic(names.to_rocketmq(asked.topic.name), names.to_rocketmq(asked.group))
            )
        self._turn += 1
        is_retry_first = self._turn % RETRY_EVERY == 0
        if retried is not None and is_retry_first:
            self._pop_topic(asked, retried, -1, now_ms, found)
        self._pop_topic(asked, asked.topic, asked.queue_id, now_ms, found)
        if retried is not None and not is_retry_first:
            self._pop_topic(asked, retried, -1, now_ms, found)
        if found.later is not None:
            if not found.count and tries < TRIES_MAX:
                return self._pop_later(asked, found.later, tries)
            _abandon(found.later)
        if found.changes:
            self._journal.append_states(found.changes)
        if asked.attempt is not None and asked.is_ordered:
            for each in found.acquired:
                window = self._in_flight.find(asked.group, asked.topic.id, each.queue_id)
                if window is not None:
                    window.attempt = asked.attempt
        self.popped_count += found.count
        return Popped(now_ms, found.acquired, found.buffers, found.size, found.rest)

    def next_offset(self, group: str, topic: Topic, queue: Queue) -> int:
        """Return where the next pop of a queue would begin, changing nothing."""
        window = self._in_flight.find(group, topic.id, queue.queue_id)
        if window is not None:
            return max(window.scanned, queue.log_start)
        known = self._offsets.committed(group, topic, queue.queue_id)
        return max(0 if known is None else known, queue.log_start)

    def has_any(self, asked: Pop) -> bool:
        """Say whether a pop might find something; a filter is not asked."""
        topics = [(asked.topic, asked.queue_id)]
        if not asked.is_ordered:
            name = retry_topic(names.to_rocketmq(asked.topic.name), names.to_rocketmq(asked.group))
            if (retried := self._topics.find(name)) is not None:
                topics.append((retried, -1))
        now_ms = self._clock.now_ms()
        for topic, queue_id in topics:
            queues = self._queues.of(topic.id)
            for queue in queues[: topic.read_queues] if queue_id < 0 else [queues[queue_id]]:
                at = self.next_offset(asked.group, topic, queue)
                window = self._in_flight.find(asked.group, topic.id, queue.queue_id)
                if window is not None and (asked.is_ordered or window.has_in_place):
                    again = self._first_again(window, asked, now_ms)
                    if again is None:
                        continue
                    at = again
                if at < self._puller.end(queue):
                    return True
        return False

    async def _pop_later(self, asked: Pop, later: Awaitable[Pulled], tries: int) -> Popped:
        await later
        popped = self.pop(asked, tries + 1)
        return popped if isinstance(popped, Popped) else await popped

    def _pop_topic(
        self, asked: Pop, topic: Topic, queue_id: int, now_ms: int, found: _Found
    ) -> None:
        queues = self._queues.of(topic.id)
        if queue_id >= 0:
            self._pop_queue(asked, topic, queues[queue_id], now_ms, found)
            return
        count = min(topic.read_queues, len(queues))
        for step in range(count):
            self._pop_queue(asked, topic, queues[(self._turn + step) % count], now_ms, found)

    def _pop_queue(
        self, asked: Pop, topic: Topic, queue: Queue, now_ms: int, found: _Found
    ) -> None:
        window, first = self._begin(asked, topic, queue)
        end = self._puller.end(queue)
        is_ordered, is_repeated = asked.is_ordered, False
        if window is not None and (is_ordered or window.has_in_place):
            at = self._first_again(window, asked, now_ms)
            if at is None:
                return
            first = at
            is_repeated = is_ordered and window.is_held(now_ms)
        if first >= end:
            return
        room = asked.count_max - found.count
        if window is not None:
            room = min(room, window.room)
        if room <= 0 or found.size >= asked.size_max:
            found.rest += end - first
            return
        is_retry = topic is not asked.topic
        wanted = EVERYTHING if is_retry else asked.wanted
        pulled = self._puller.pull(queue, first, wanted, room, asked.size_max - found.size)
        if not isinstance(pulled, Pulled):
            if found.later is not None:
                _abandon(found.later)
            found.later = pulled
            return
        if pulled.code == ResponseCode.PULL_OFFSET_MOVED:
            return
        found.rest += max(0, end - pulled.next_offset)
        views = list(_messages(pulled.buffers))
        if window is not None and first < window.end:
            views = [
                each
                for each in views
                if _may_have(window, each[0], now_ms, asked, is_repeated=is_repeated)
            ]
            buffers: list[Buffer] = [view for _, view in views]
        else:
            buffers = pulled.buffers
        if not views:
            self._pass_over(asked, window, queue, first, pulled.next_offset, found)
            return
        offsets = [offset for offset, _ in views]
        deliveries = [0 if window is None else window.deliveries(each) for each in offsets]
        where = asked.group, queue.topic_id, queue.queue_id
        deadline_ms = now_ms + asked.invisible_ms
        change: Acquire | Extend
        if is_repeated:
            # The answer was lost on its way: it is the same delivery once more.
            deliveries = [count - 1 for count in deliveries]
            change = Extend(*where, deadline_ms, runs_of(offsets))
        else:
            end = max(pulled.next_offset, 0 if window is None else window.end)
            is_in_place = is_ordered or not self._can_move(asked, topic)
            change = Acquire(*where, first, end, deadline_ms, is_in_place, runs_of(offsets))
        found.changes.append((INFLIGHT_TOPIC, encode(change)))
        kind = RETRY if is_retry else NORMAL
        found.acquired.append(Acquired(kind, queue.queue_id, first, offsets, deliveries))
        if is_retry:
            handle = Handle(
                *(first, now_ms, asked.invisible_ms),
                *(ORDER_REVIVE_QUEUE if is_ordered else 0, kind),
                *(self._broker_name, queue.queue_id),
            )
            buffers = [_retried(view, asked.topic, handle, offset) for offset, view in views]
        found.buffers += buffers
        found.size += sum(map(len, buffers))
        found.count += len(offsets)

    def _begin(self, asked: Pop, topic: Topic, queue: Queue) -> tuple[Window | None, int]:
        """Return the window, and where to read on."""
        group, queue_id = asked.group, queue.queue_id
        window = self._in_flight.find(group, topic.id, queue_id)
        known = self._offsets.committed(group, topic, queue_id)
        moved = self._offsets.resets.take(group, queue) if self._offsets.resets.pending else None
        if window is None:
            first = moved if moved is not None else known
            if first is None:
                first = self._first_offset(asked, topic, queue)
            first = max(first, queue.log_start)
            if known is None and first > queue.log_start:
                # The end is another one by the next pop, so where the group begins is written down.
                change = encode(Acquire(group, topic.id, queue_id, first, first, 0, False, []))
                self._journal.append_state(INFLIGHT_TOPIC, change)
                window = self._in_flight.find(group, topic.id, queue_id)
            return window, first
        if moved is None and known is not None and window.committed not in (None, known):
            # Somebody else has committed: that is where the group continues.
            moved = known
        if moved is not None:
            change = encode(Reset(group, topic.id, queue_id, moved))
            self._journal.append_state(INFLIGHT_TOPIC, change)
        window.committed = known
        return window, max(window.scanned, queue.log_start)

    def _first_offset(self, asked: Pop, topic: Topic, queue: Queue) -> int:
        """Return where a group begins that was never here."""
        is_young = queue.log_start == 0
        if asked.init_mode == FROM_THE_BEGINNING or is_young or topic is not asked.topic:
            return queue.log_start
        return self._puller.end(queue)

    def _first_again(self, window: Window, asked: Pop, now_ms: int) -> int | None:
        """Return where to read in a queue of which messages may come again in place.

        None if the queue is blocked: it is consumed in order, and something of it is in flight.
        """
        if asked.is_ordered:
            is_same = asked.attempt is not None and window.attempt == asked.attempt
            if not is_same and window.is_held(now_ms):
                return None
            return min(window.start, window.scanned)
        expired = window.expired(now_ms, is_in_place=True)
        return expired[0].offset if expired else window.scanned

    def _pass_over(
        self,
        asked: Pop,
        window: Window | None,
        queue: Queue,
        first: int,
        following: int,
        found: _Found,
    ) -> None:
        """Remember that nothing up to an offset is wanted."""
        if following <= first:
            return
        if window is not None:
            window.scanned = max(window.scanned, following)
            return
        where = asked.group, queue.topic_id, queue.queue_id
        change = encode(Acquire(*where, first, following, 0, False, []))
        found.changes.append((INFLIGHT_TOPIC, change))

    def _can_move(self, asked: Pop, topic: Topic) -> bool:
        """Whether an expired message can go to a retry topic, whose name may be too long."""
        if topic is not asked.topic:
            return True
        return is_legal(retry_topic(names.to_rocketmq(topic.name), names.to_rocketmq(asked.group)))


def _may_have(window: Window, offset: int, now_ms: int, asked: Pop, *, is_repeated: bool) -> bool:
    """Whether a pop that reads from an earlier offset may have a message."""
    if offset >= window.end:
        return not is_repeated
    item = window.find(offset)
    if item is None or not item.is_in_place:
        return False
    return asked.is_ordered or item.deadline_ms <= now_ms


def _abandon(later: Awaitable[Pulled]) -> None:
    """Close a coroutine that nobody is going to await."""
    if isinstance(later, Coroutine):
        later.close()


def _messages(buffers: Sequence[Buffer]) -> Iterator[tuple[int, memoryview]]:
    """Yield offset and bytes of each message."""
    for buffer in buffers:
        view = memoryview(buffer)
        at = 0
        while at < len(view):
            size, offset = _AT.unpack_from(view, at)
            yield offset, view[at : at + size]
            at += size


def _retried(view: memoryview, topic: Topic, handle: Handle, offset: int) -> bytes:
    """Return a message of a retry topic as one of the topic that was asked for."""
    read = envelope.read(view)
    properties = parse_properties(envelope.properties_of(view, read))
    properties[named.POP_CHECKPOINT] = write_handle(handle, offset)
    return messages.encode(
        topic=names.to_rocketmq(topic.name).encode(),
        body=view[read.body_at : read.body_at + read.body_size],
        properties=pack_properties(properties.items()),
        queue_id=read.queue_id,
        queue_offset=read.queue_offset,
        position=read.position,
        born_ms=read.born_ms,
        born_host=read.born_host,
        store_ms=read.store_ms,
        store_host=read.store_host,
        flag=read.flag,
        sys_flag=read.sys_flag,
        reconsume_times=read.reconsume_times,
        prepared_offset=read.prepared_offset,
    )
