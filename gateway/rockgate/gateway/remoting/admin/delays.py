"""Delayed messages for administrators: counted, listed, described, cancelled, delivered early.

A scan covers the units of the schedule (docs/internals/delay.md), a slice in each turn of the loop
and a bounded number in each request, so that ten million delayed messages block no other request;
the next request continues where the last answer ended. The destination of a message is stored in
the message: reading each is slower by far, so fewer are examined in a request.

An id is `topic/queue/offset` of where a message waits, a recall handle, the unique key that its
producer gave it, or its offset message id.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.delay.headers import wait_of
from rockgate.gateway.remoting.admin.delay_counts import Soonest, Timeline
from rockgate.gateway.remoting.admin.views import looked_at
from rockgate.gateway.remoting.messages.recall import read_handle
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import get_property
from rockgate.protocol.remoting.bodies.admin import (
    DUE_BOUNDS_MS,
    Cancelled,
    DelayCount,
    Delayed,
    DelayPlace,
    DelayScan,
    DeliveredEarly,
    MessageView,
)
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.headers.admin import ScanDelaysHeader
from rockgate.protocol.remoting.ids import parse_offset_message_id, split_place
from rockgate.protocol.remoting.properties import REAL_TOPIC
from rockgate.protocol.remoting.system_topics import LEVELS_TOPIC, TIMES_TOPIC
from rockgate.store.api.delay import ORIGIN, Deliveries, EarlyDeliveries, Listed
from rockgate.store.api.delay import Delays as Schedule
from rockgate.store.api.queues import Queue, Queues, Unit
from rockgate.store.api.read import EntryReader, Lookup, Slice, no_batch_keys
from rockgate.store.api.topics import TopicLookup
from rockgate.store.errors import StoreError

UNITS_PER_TURN: Final = 500
UNITS_PER_REQUEST: Final = 200_000
LOOKED_PER_TURN: Final = 100
LOOKED_PER_REQUEST: Final = 5_000
"""Units of a turn of the loop and of a request, and the same where every message is looked at."""
CANDIDATES_MAX: Final = 16
"""Messages read per unique key: there is one, unless a producer repeats a key."""
_PLACE: Final = re.compile(r"([^/]{1,249})/(\d{1,9})/(\d{1,18})")
_WAITING_TOPICS: Final = (TIMES_TOPIC, LEVELS_TOPIC)
_ELSEWHERE: Final = frozenset(topic.encode() for topic in _WAITING_TOPICS)
"""Topics whose messages are delivered to other topics."""

IsVisible = Callable[[Queue, Slice, int], bool]


class Place(NamedTuple):
    """The place of a delayed message."""

    queue: Queue
    offset: int

    def __str__(self) -> str:
        return f"{self.queue.topic.decode()}/{self.queue.queue_id}/{self.offset}"


class DelayAdmin:
    """Answers queries about delayed messages. Stateless."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        reader: EntryReader,
        lookup: Lookup,
        schedule: Schedule,
        deliveries: Deliveries,
        early: EarlyDeliveries,
        cold_reads: ColdReads,
        is_visible: IsVisible = lambda queue, found, offset: True,
        threads: BatchThreads | None = None,
    ) -> None:
        """`is_visible` returns whether an offset of a queue is visible to readers."""
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._lookup = lookup
        self._schedule = schedule
        self._deliveries = deliveries
        self._early = early
        self._cold_reads = cold_reads
        self._is_visible = is_visible
        self._threads = threads or BatchThreads()

    # Counting and listing

    async def scan(self, asked: ScanDelaysHeader) -> DelayScan:
        """Count a part of the delayed messages, and list the soonest of them."""
        looks = asked.by_target or asked.topic is not None
        turn, request = UNITS_PER_TURN, UNITS_PER_REQUEST
        if looks:
            turn, request = LOOKED_PER_TURN, LOOKED_PER_REQUEST
        now_ms = self._deliveries.now_ms()
        timeline = Timeline(asked, now_ms)
        counts: dict[tuple[bytes, int, str | None], list[int]] = {}
        soonest = Soonest(asked)
        at, left = max(asked.start, 0), request
        while at >= 0 and left > 0:
            part, at = self._schedule.part(at, turn)
            left -= turn
            targets: Sequence[str | None] = [None] * len(part)
            if looks:
                targets = await self._targets(part)
            for each, target in zip(part, targets, strict=True):
                if asked.topic is not None and target != asked.topic:
                    continue
                key = (each.topic_id, each.queue_id, target)
                due = counts.get(key)
                if due is None:
                    due = counts[key] = [0] * (len(DUE_BOUNDS_MS) + 1)
                due[bisect_left(DUE_BOUNDS_MS, each.due_ms - now_ms)] += 1
                timeline.count(key, each.due_ms)
                if each.due_ms <= soonest.bound_ms:
                    soonest.offer(each)
            await asyncio.sleep(0)
        return DelayScan(
            waiting=self._schedule.waiting_count,
            now_ms=now_ms,
            next=at,
            end=self._schedule.part_end,
            counts=[
                DelayCount(
                    topic=self._name(key[0]),
                    queue=key[1],
                    target=key[2],
                    due=due,
                    buckets=timeline.of(key),
                )
                for key, due in counts.items()
            ],
            soonest=[
                DelayPlace(
                    id=f"{self._name(each.topic_id)}/{each.queue_id}/{each.offset}",
                    due_ms=each.due_ms,
                    sequence=each.sequence,
                )
                for each in soonest.found()
            ],
        )

    async def _targets(self, part: Sequence[Listed]) -> list[str | None]:
        """The topics that these will be delivered to."""
        found: list[tuple[Queue, Unit | None] | None] = []
        for each in part:
            queue = self._queues.find(each.topic_id, each.queue_id)
            if queue is None:
                found.append(None)
            elif queue.topic in _ELSEWHERE:
                found.append((queue, queue.find(each.offset)))
            else:
                # One that waits in its own topic is delivered there: there is nothing to read.
                found.append((queue, None))
        await self._cold_reads.load(
            self._cold_reads.cold(pair[1] for pair in found if pair is not None)
        )
        return [None if pair is None else self._target(*pair) for pair in found]

    def _target(self, queue: Queue, unit: Unit | None) -> str | None:
        if unit is None:
            return None if queue.topic in _ELSEWHERE else queue.topic.decode()
        try:
            view = self._reader.entry(queue, unit).entry
        except StoreError:
            return None
        real = get_property(envelope.properties_of(view, envelope.read(view)), REAL_TOPIC.encode())
        return (queue.topic if real is None else real).decode("utf-8", "replace")

    # Describing

    async def describe(
        self, id_: str, preview: int = 0, *, with_due: bool = True
    ) -> Delayed | None:
        """Return the details of a message, by any of its ids."""
        places = list(self._places(id_))
        waiting = [place for place in places if self._waits(place)]
        for place in waiting or places:
            found = await self._read(place)
            if found is not None and self._may_describe(place, found):
                due_ms = await self._due(place) if with_due else -1
                message = await looked_at(self._threads, found, place.offset, preview)
                return self._described(place, found, message, due_ms)
        return None

    def _may_describe(self, place: Place, found: Slice) -> bool:
        """Whether consumers may see it: a record may belong to an open transaction."""
        return self._waits(place) or self._is_visible(place.queue, found, place.offset)

    def _described(
        self, place: Place, found: Slice, message: MessageView, due_ms: int
    ) -> Delayed | None:
        delayed = Delayed(
            id=str(place),
            is_waiting=self._waits(place),
            due_ms=due_ms,
            origin=_origin(place),
            message=message,
        )
        if delayed.is_waiting:
            return delayed
        if not _has_waited(found, message):
            return None
        delayed.delivered = self._delivered(place, message.topic, message.message_id)
        return delayed

    async def _read(self, place: Place) -> Slice | None:
        unit = place.queue.find(place.offset)
        if unit is None or not unit.base <= place.offset < unit.base + unit.offset_count:
            return None
        await self._cold_reads.load(self._cold_reads.cold([unit]))
        if unit.base >= self._reader.high_watermark(place.queue):
            return None
        # Retention may have moved it in the meantime.
        return self._reader.entry(place.queue, place.queue.find(place.offset) or unit)

    async def _due(self, place: Place) -> int:
        """When a message is due; -1 if it is not delayed. Its unit is searched in slices."""
        at = 0
        while at >= 0 and self._waits(place):
            part, at = self._schedule.part(at, 4 * UNITS_PER_TURN, place.offset)
            for each in part:
                if (each.topic_id, each.queue_id) == (place.queue.topic_id, place.queue.queue_id):
                    return each.due_ms
            await asyncio.sleep(0)
        return -1

    def _delivered(self, place: Place, topic: str, message_id: str | None) -> str | None:
        """Where a message was delivered, found by its unique key."""
        if not message_id:
            return None
        origin = f"{place.queue.topic_id.hex()}:{place.queue.queue_id}:{place.offset}".encode()
        for queue, found in self._by_key(topic, message_id):
            view = found.entry
            if get_property(envelope.properties_of(view, envelope.read(view)), ORIGIN) == origin:
                return str(Place(queue, found.unit.base))
        return None

    # Cancelling

    async def cancel(self, id_: str) -> Cancelled:
        """Cancel a message: of this and its delivery exactly one happens."""
        delayed = await self.describe(id_)
        if delayed is None:
            return Cancelled(is_cancelled=False)
        for place in self._places(delayed.id):
            # Nothing is awaited in between: the fold decides.
            key = (place.queue.topic_id, place.queue.queue_id, place.offset)
            if self._schedule.recall(*key):
                return Cancelled(is_cancelled=True, delayed=delayed)
        return Cancelled(is_cancelled=False, delayed=await self.describe(delayed.id))

    # Delivering before the time

    async def deliver(self, id_: str) -> DeliveredEarly:
        """Deliver a message now: of this, its cancel and its delivery in time, one happens."""
        delayed = await self.describe(id_)
        if delayed is None or not delayed.is_waiting:
            return DeliveredEarly(is_delivered=False, delayed=delayed)
        for place in self._places(delayed.id):
            found = await self._read(place)
            opening = None if found is None else self._early.prepare(found, place.offset)
            if opening is not None:
                await self._threads.run(opening.run)
                opening.keep()
                # Retention may have moved it in the meantime.
                found = await self._read(place)
                if found is not None:
                    self._early.prepare(found, place.offset)
            if found is None:
                continue
            # Nothing is awaited in between: the fold decides.
            arrival = self._early.deliver(place.queue, found, place.offset)
            if arrival is not None:
                delayed.is_waiting = False
                delayed.delivered = f"{arrival.topic}/{arrival.queue_id}/{arrival.offset}"
                return DeliveredEarly(is_delivered=True, delayed=delayed)
        return DeliveredEarly(is_delivered=False, delayed=await self.describe(delayed.id))

    # Ids

    def _places(self, id_: str) -> Iterator[Place]:
        """All places that an id may refer to."""
        place = _PLACE.fullmatch(id_)
        if place is not None:
            yield from self._place(place[1], int(place[2]), int(place[3]))
            return
        handle = read_handle(id_)
        if handle is not None:
            yield from self._place(TIMES_TOPIC, 0, handle.offset)
            return
        for topic in _WAITING_TOPICS:
            for queue, found in self._by_key(topic, id_):
                yield Place(queue, found.unit.base)
        try:
            _, _, address = parse_offset_message_id(id_)
        except MalformedContent:
            return
        position, index = split_place(address)
        entry = self._lookup.entry(position)
        if entry is not None:
            yield Place(entry[0], entry[1].unit.base + (index or 0))

    def _place(self, topic: str, queue_id: int, offset: int) -> Iterator[Place]:
        found = self._topics.find(topic)
        queue = None if found is None else self._queues.find(found.id, queue_id)
        if queue is not None:
            yield Place(queue, offset)

    def _by_key(self, topic: str, key: str) -> Iterator[tuple[Queue, Slice]]:
        encoded = key.encode("utf-8", "surrogatepass")
        lookup = self._lookup
        for position in lookup.by_key(
            topic.encode(), encoded, limit=CANDIDATES_MAX, batch_keys=no_batch_keys
        ):
            found = lookup.entry(position)
            if found is not None:
                yield found

    def _waits(self, place: Place) -> bool:
        queue = place.queue
        return self._schedule.is_waiting(queue.topic_id, queue.queue_id, place.offset)

    def _name(self, topic_id: bytes) -> str:
        topic = self._topics.find_id(topic_id)
        return topic_id.hex() if topic is None else topic.name


def _has_waited(found: Slice, message: MessageView) -> bool:
    """Whether a message was delayed before; of a batch only some records are."""
    entry = envelope.read(found.entry)
    if not entry.sys_flag & envelope.DELAYED:
        return False
    if not entry.is_batch:
        return True
    try:
        return wait_of([(name, value.encode()) for name, value in message.properties]) is not None
    except ValueError:
        return False


def _origin(place: Place) -> str:
    topic = place.queue.topic.decode()
    if topic == LEVELS_TOPIC:
        return f"level {place.queue.queue_id + 1}"
    return "timer" if topic == TIMES_TOPIC else "headers"
