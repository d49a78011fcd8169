"""Acquires messages for pops: reads queues, and puts what was found in flight.

docs/internals/pop.md specifies it. Reading and acquiring are one step of the loop: what has to be
loaded or opened first is awaited, and then everything is read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Final, NamedTuple

from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets
from rockgate.gateway.remoting.messages.puller import Pulled, Puller
from rockgate.gateway.remoting.messages.subscriptions import EVERYTHING
from rockgate.gateway.remoting.pop.clock_steps import ClockSteps
from rockgate.gateway.remoting.pop.starts import MESSAGES_MAX, Pop, Starts, may_have
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
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
    RETRY,
    Acquired,
    Handle,
    messages_in,
    offsets_in,
    retry_topic,
    write_handle,
)
from rockgate.store.api.append import StateAppender
from rockgate.store.api.inflight import (
    INFLIGHT_TOPIC,
    Acquire,
    Extend,
    MessagesInFlight,
    Window,
    encode,
    runs_of,
)
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic

INVISIBLE_MS_MAX: Final = 12 * 3_600_000
TRIES_MAX: Final = 8
"""How often a pop retries after something was loaded for it."""
QUEUES_AT_ONCE: Final = 256
"""Queues that are read in one turn of the loop."""
RETRY_EVERY: Final = 5
"""One pop in this many reads the retry topic first."""


class Popped(NamedTuple):
    """The result of a pop."""

    pop_ms: int
    acquired: list[Acquired]
    buffers: list[Buffer]
    size: int
    rest: int
    """Approximate number of messages left."""


class _Found:
    """What one pop has collected."""

    __slots__ = ("acquired", "buffers", "changes", "cold", "count", "is_full", "rest", "size")

    def __init__(self) -> None:
        self.acquired: list[Acquired] = []
        self.buffers: list[Buffer] = []
        self.changes: list[tuple[bytes, bytes]] = []
        self.count = 0
        self.size = 0
        self.rest = 0
        self.is_full = False
        """Whether messages were left because too many are already in flight."""
        self.cold: Awaitable[Pulled] | None = None


class Acquirer:
    """Acquires messages."""

    def __init__(
        self,
        *,
        in_flight: MessagesInFlight,
        journal: StateAppender,
        puller: Puller,
        queues: Queues,
        topics: TopicRegistry,
        offsets: ConsumerOffsets,
        clock: ClockSteps,
        broker_name: str,
        statistics: BrokerStatistics | None = None,
    ) -> None:
        self._statistics = statistics
        self._in_flight = in_flight
        self._journal = journal
        self._puller = puller
        self._queues = queues
        self._topics = topics
        self._offsets = offsets
        self._starts = Starts(in_flight=in_flight, journal=journal, puller=puller, offsets=offsets)
        self._clock = clock
        self._broker_name = broker_name
        self._turn = 0
        self.popped_count = 0

    def pop(self, asked: Pop) -> Popped | Awaitable[Popped]:
        """Acquire what is available; an awaitable if something must be loaded or opened first."""
        # Its offsets are committed from here, which only members of one protocol may do.
        self._offsets.check_owner(asked.group)
        self._turn += 1
        return self._pop(asked, self._turn, 0, 0)

    def _pop(self, asked: Pop, turn: int, skip: int, tries: int) -> Popped | Awaitable[Popped]:
        """Acquire in one step of the loop; the first queues may have been read before."""
        found = _Found()
        now_ms = self._clock.now_ms()
        retried = None
        if not asked.is_ordered:
            retried = self._topics.find(
                retry_topic(names.to_rocketmq(asked.topic.name), names.to_rocketmq(asked.group))
            )
        if retried is not None and turn % RETRY_EVERY == 0:
            self._pop_queue(asked, retried, self._queues.of(retried.id)[0], now_ms, found)
        looked = self._pop_topic(asked, turn, skip, now_ms, found)
        if retried is not None and turn % RETRY_EVERY:
            self._pop_queue(asked, retried, self._queues.of(retried.id)[0], now_ms, found)
        if found.cold is not None:
            if not found.count and tries < TRIES_MAX:
                return self._pop_later(asked, turn, skip, tries, found.cold)
            _abandon(found.cold)
        if found.is_full and not found.count:
            raise Refused(
                ResponseCode.SYSTEM_BUSY,
                f"Groups have {self._in_flight.count:,} messages in flight in "
                f"{len(self._in_flight):,} windows, which is the maximum. "
                "Acknowledge messages, or try again later.",
            )
        if found.changes:
            self._journal.append_states(found.changes)
        if not found.count and looked < asked.topic.read_queues and asked.queue_id < 0:
            return self._pop_more(asked, turn, looked)
        if asked.attempt is not None and asked.is_ordered:
            for each in found.acquired:
                window = self._in_flight.find(asked.group, asked.topic.id, each.queue_id)
                if window is not None:
                    window.attempt = asked.attempt
        self.popped_count += found.count
        if found.count and self._statistics is not None:
            self._statistics.popped(
                asked.topic.id,
                asked.group,
                count=found.count,
                size=found.size,
                checkpoints=len(found.acquired),
                seconds=self._puller.last_seconds,
            )
        return Popped(now_ms, found.acquired, found.buffers, found.size, found.rest)

    def next_offset(self, group: str, topic: Topic, queue: Queue) -> int:
        """Return where the next pop of a queue would begin, changing nothing."""
        return self._starts.next_offset(group, topic, queue)

    def has_any(self, asked: Pop) -> bool:
        """Return whether a pop might find something; filters are not applied."""
        topics = [(asked.topic, asked.queue_id)]
        if not asked.is_ordered:
            name = retry_topic(names.to_rocketmq(asked.topic.name), names.to_rocketmq(asked.group))
            if (retried := self._topics.find(name)) is not None:
                topics.append((retried, -1))
        now_ms = self._clock.now_ms()
        for topic, queue_id in topics:
            queues = self._queues.of(topic.id)
            for queue in queues[: topic.read_queues] if queue_id < 0 else [queues[queue_id]]:
                at = self._starts.next_offset(asked.group, topic, queue)
                window = self._in_flight.find(asked.group, topic.id, queue.queue_id)
                if window is not None and (asked.is_ordered or window.has_in_place):
                    again = self._starts.again(window, asked, now_ms)
                    if again is None:
                        continue
                    at = again
                if at < self._puller.end(queue):
                    return True
        return False

    async def _pop_later(
        self, asked: Pop, turn: int, skip: int, tries: int, cold: Awaitable[Pulled]
    ) -> Popped:
        await cold
        popped = self._pop(asked, turn, skip, tries + 1)
        return popped if isinstance(popped, Popped) else await popped

    async def _pop_more(self, asked: Pop, turn: int, skip: int) -> Popped:
        """Read further queues in the next turn of the loop."""
        await asyncio.sleep(0)
        popped = self._pop(asked, turn, skip, 0)
        return popped if isinstance(popped, Popped) else await popped

    def _pop_topic(self, asked: Pop, turn: int, skip: int, now_ms: int, found: _Found) -> int:
        """Read some queues of the topic; return how many were read in all."""
        topic = asked.topic
        queues = self._queues.of(topic.id)
        if asked.queue_id >= 0:
            self._pop_queue(asked, topic, queues[asked.queue_id], now_ms, found)
            return 1
        count = topic.read_queues
        until = min(count, skip + QUEUES_AT_ONCE)
        for step in range(skip, until):
            self._pop_queue(asked, topic, queues[(turn + step) % count], now_ms, found)
        return until

    def _pop_queue(
        self, asked: Pop, topic: Topic, queue: Queue, now_ms: int, found: _Found
    ) -> None:
        window, first = self._starts.begin(asked, topic, queue)
        if window is not None and window.followed_ms != self._in_flight.clock_ms:
            self._clock.settle(window)
        end = self._puller.end(queue)
        is_repeated = False
        if window is not None and (asked.is_ordered or window.has_in_place):
            at = self._starts.again(window, asked, now_ms)
            if at is None:
                return
            first = max(at, queue.log_start)
            is_repeated = asked.is_ordered and window.is_held(now_ms)
        if first >= end:
            return
        room = asked.count_max - found.count
        if window is not None:
            room = min(room, window.room)
        if self._starts.is_full and (window is None or self._in_flight.count >= MESSAGES_MAX):
            found.is_full = True
            return
        if room <= 0 or found.size >= asked.size_max:
            found.rest += end - first
            return
        wanted = asked.wanted if topic is asked.topic else EVERYTHING
        pulled = self._puller.pull(queue, first, wanted, room, asked.size_max - found.size)
        if not isinstance(pulled, Pulled):
            if found.cold is not None:
                _abandon(found.cold)
            found.cold = pulled
            return
        found.rest += max(0, end - pulled.next_offset)
        buffers = pulled.buffers
        if window is not None and first < window.end:
            views = [
                each
                for each in messages_in(buffers)
                if may_have(window, each[0], now_ms, asked, is_repeated=is_repeated)
            ]
            buffers = [view for _, view in views]
            offsets = [offset for offset, _ in views]
        else:
            offsets = offsets_in(buffers)
        if not offsets:
            self._pass_over(asked, window, queue, first, pulled.next_offset, found)
            return
        change: Acquire | Extend
        where, deadline_ms = (asked.group, *_key(queue)), now_ms + asked.invisible_ms
        if is_repeated:
            # The response was lost: this is the same delivery again.
            change = Extend(*where, deadline_ms, runs_of(offsets))
        else:
            end = max(pulled.next_offset, 0 if window is None else window.end)
            is_in_place = asked.is_ordered or not self._can_move(asked, topic)
            change = Acquire(*where, first, end, deadline_ms, is_in_place, runs_of(offsets))
        found.changes.append((INFLIGHT_TOPIC, encode(change)))
        found.count += len(offsets)
        before = _earlier(window, offsets, is_repeated=is_repeated) if asked.is_ordered else []
        kind = NORMAL if topic is asked.topic else RETRY
        found.acquired.append(Acquired(kind, queue.queue_id, first, offsets, before))
        if kind == RETRY:
            handle = Handle(
                first, now_ms, asked.invisible_ms, 0, kind, self._broker_name, queue.queue_id
            )
            buffers = [
                _retried(view, asked.topic, handle, offset) for offset, view in messages_in(buffers)
            ]
        found.buffers += buffers
        found.size += sum(map(len, buffers))

    def _pass_over(
        self,
        asked: Pop,
        window: Window | None,
        queue: Queue,
        first: int,
        following: int,
        found: _Found,
    ) -> None:
        """Note that nothing up to an offset matches."""
        if following <= first:
            return
        if window is not None:
            window.scanned = max(window.scanned, following)
            return
        where = asked.group, *_key(queue)
        change = encode(Acquire(*where, first, following, 0, False, []))
        found.changes.append((INFLIGHT_TOPIC, change))

    def _can_move(self, asked: Pop, topic: Topic) -> bool:
        """Whether an expired message can go to a retry topic, whose name may be too long."""
        if topic is not asked.topic:
            return True
        return is_legal(retry_topic(names.to_rocketmq(topic.name), names.to_rocketmq(asked.group)))


def _earlier(window: Window | None, offsets: list[int], *, is_repeated: bool) -> list[int]:
    """Return how often each offset was delivered before this delivery."""
    if window is None:
        return [0] * len(offsets)
    return [window.deliveries(each) - is_repeated for each in offsets]


def _key(queue: Queue) -> tuple[bytes, int]:
    return queue.topic_id, queue.queue_id


def _abandon(later: Awaitable[Pulled]) -> None:
    """Close a coroutine that will not be awaited."""
    if isinstance(later, Coroutine):
        later.close()


def _retried(view: memoryview, topic: Topic, handle: Handle, offset: int) -> bytes:
    """Return a message of a retry topic as one of the requested topic."""
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
