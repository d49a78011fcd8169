"""Delayed messages of RocketMQ clients: storage, due time and delivery.

    property                      waits in                         until
    DELAY = level                 SCHEDULE_TOPIC_XXXX, its queue   the level's time from now
    TIMER_DELAY_SEC, _MS          rmq_sys_wheel_timer              that duration from now
    TIMER_DELIVER_MS              rmq_sys_wheel_timer              that time
    __STARTDELIVERTIME            rmq_sys_wheel_timer              that time

A level above the last is the last; level 0 is no delay, and any other level counts before a time.
A time that is past is due at once, one too far ahead is refused. docs/internals/delay.md says how
things wait; a message that waits keeps its real topic and queue in its properties, and gets them
back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rockgate.gateway.delay.headers import AT
from rockgate.gateway.remoting.messages.sender import (
    CLIENT_FLAGS,
    Incoming,
    MessageKind,
    Taken,
    classify,
)
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.transcode import names
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    BORN_HOST_V6,
    MOVED,
    TRANSACTION_ROLLBACK,
    pack_properties,
    parse_properties,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.properties import (
    DELAY_LEVEL,
    DELAYING,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_S,
)
from rockgate.protocol.remoting.system_topics import LEVELS_TOPIC, TIMES_TOPIC
from rockgate.store.api.append import NOTHING_ELSE, Appender, Draft, Intake
from rockgate.store.api.delay import Delays as Schedule
from rockgate.store.api.delay import Deliveries, due_after, due_at
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.read import EntryReader, Lookup, Slice
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.errors import UnknownTopic

WAITING_MARKS: Final = DELAYING | {REAL_TOPIC, REAL_QUEUE_ID}
"""Properties of a delayed message; it is delivered without them."""
_REAL_TOPIC: Final = REAL_TOPIC.encode()
_REAL_QUEUE: Final = REAL_QUEUE_ID.encode()
_LEFT_OUT: Final = frozenset(name.encode() for name in (*WAITING_MARKS, "WAIT", ""))
_new: Final = tuple.__new__  # what NamedTuple._make calls, without its own call in between
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
PRESERVED_FLAGS: Final = CLIENT_FLAGS | BORN_HOST_V6 | TRANSACTION_ROLLBACK


class Delays:
    """Stores delayed messages, and converts them for delivery."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        reader: EntryReader,
        lookup: Lookup,
        appender: Appender,
        schedule: Schedule,
        deliveries: Deliveries,
        durability: Durability,
        levels_ms: Sequence[int],
        delay_ms_max: int,
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._lookup = lookup
        self._appender = appender
        self._schedule = schedule
        self._deliveries = deliveries
        self._durability = durability
        self._levels_ms = levels_ms
        self._delay_ms_max = delay_ms_max

    def take(self, incoming: Incoming) -> Taken:
        """Append a delayed message; the response names the requested queue."""
        header, host = incoming.header, incoming.caller.peer.host
        draft = Draft(
            topic=b"",
            queue_id=0,
            offset=0,
            body=incoming.body,
            properties=incoming.properties,
            batch_count=0,
            born_ms=header.born_timestamp,
            born_host=host.packed,
            flag=header.flag,
            sys_flag=header.sys_flag & CLIENT_FLAGS | host.flag,
            reconsume_times=header.reconsume_times or 0,
        )
        return self.append(incoming.queue, draft)

    def append(self, queue: Queue, draft: Draft) -> Taken:
        """Append a message to its queue, immediately or delayed as it requests."""
        intakes = self.place(queue, draft)
        done = self._appender.group(intakes)
        appended = done[0]._replace(queue_id=queue.queue_id)
        waiting = intakes[0].queue
        if queue.is_sync or (waiting is not None and waiting.is_sync):
            # Its schedule is the last of the group: without it recovery would discard all of it.
            return self._durability.after(done[-1].end, appended)
        return appended

    def place(self, queue: Queue, draft: Draft) -> list[Intake]:
        """Return how a message is appended: to its queue, or where it is delayed."""
        if classify(0, draft.properties) is not MessageKind.DELAYED:
            return [Intake(queue, draft)]
        properties = parse_properties(draft.properties)
        level = _number(properties, DELAY_LEVEL)
        if level is not None and level > 0:
            level = min(level, len(self._levels_ms))
            when = due_after(self._deliveries.now_ms(), self._levels_ms[level - 1])
            waiting = self._queue(LEVELS_TOPIC, level - 1)
        else:
            at = self._time(properties)
            if at is None:
                return [Intake(queue, draft)]
            when = at
            waiting = self._queue(TIMES_TOPIC, 0)
        real = ((REAL_TOPIC, queue.topic.decode()), (REAL_QUEUE_ID, str(queue.queue_id)))
        marked = draft._replace(properties=draft.properties + pack_properties(real))
        return self._deliveries.intakes(waiting, marked, [(0, when)])

    def _time(self, properties: dict[str, str]) -> int | None:
        """Return when a message is due, for a schedule; None if it is not delayed."""
        now_ms = self._deliveries.now_ms()
        delay_ms: int | None = None
        if (seconds := _number(properties, TIMER_DELAY_S)) is not None:
            delay_ms = seconds * 1_000
        elif (milliseconds := _number(properties, TIMER_DELAY_MS)) is not None:
            delay_ms = milliseconds
        if delay_ms is not None:
            at_ms = now_ms + delay_ms
        else:
            times = [_number(properties, name) for name in AT]
            given = [each for each in times if each is not None]
            if not given:
                return None
            at_ms = given[0]
        if at_ms - now_ms > self._delay_ms_max:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"timer message illegal, the delay time of {at_ms - now_ms} ms is bigger than the"
                f" max delay {self._delay_ms_max} ms",
            )
        return due_at(at_ms) if delay_ms is None else due_after(now_ms, delay_ms)

    def _queue(self, name: str, index: int) -> Queue:
        queues = self._queues.of(self._topics.get(name).id)
        return queues[index % len(queues)]

    def recall(self, topic: str, unique_key: str, offset: int) -> bool:
        """Recall a message that is delayed to a time; False if it is not, or is another one."""
        queue = self._queue(TIMES_TOPIC, 0)
        if not self._schedule.is_waiting(queue.topic_id, queue.queue_id, offset):
            return False
        unit = queue.find(offset)
        if unit is None or unit.base >= self._reader.high_watermark(queue):
            return False
        view = self._reader.entry(queue, unit).entry
        properties = parse_properties(envelope.properties_of(view, envelope.read(view)))
        real = names.to_store(topic)
        if (properties.get(REAL_TOPIC), properties.get("UNIQ_KEY")) != (real, unique_key):
            return False
        return self._schedule.recall(queue.topic_id, queue.queue_id, offset)

    def redeliver(self, found: Slice, offset: int) -> Intake:
        """Return a delayed message as it is delivered; UnknownTopic if its topic was deleted."""
        view = found.entry
        entry = envelope.read(view)
        properties = envelope.properties_of(view, entry)
        # Tens of thousands may be due in a second: unchanged properties are not parsed.
        remaining: list[bytes] = []
        left_out: dict[bytes, bytes] = {}
        for part in properties.split(b"\x02"):
            name, _, value = part.partition(b"\x01")
            if name in _LEFT_OUT:
                # The last one wins, which is the one that the server has added.
                left_out[name] = value
            else:
                remaining.append(part)
        remaining.append(b"WAIT\x01false\x02")
        draft = _new(
            Draft,
            (
                *(b"", 0, 0),
                bytes(view[entry.body_at : entry.body_at + entry.body_size]),
                b"\x02".join(remaining),
                0,
                entry.born_ms,
                entry.born_host,
                entry.flag,
                entry.sys_flag & PRESERVED_FLAGS,
                entry.reconsume_times,
                *NOTHING_ELSE,
            ),
        )
        target = left_out.get(_REAL_TOPIC, b""), left_out.get(_REAL_QUEUE, b"")
        return _new(Intake, (self._target(*target, entry), draft))

    def _is_older(self, entry: envelope.Entry, topic: Topic) -> bool:
        """Whether a moved entry is older than its topic."""
        made_ms = self._lookup.stored_ms(topic.created_position)
        return made_ms is not None and entry.store_ms < made_ms

    def _target(self, name: bytes, number: bytes, entry: envelope.Entry) -> Queue:
        """Return the destination queue of a message; UnknownTopic if its topic was deleted."""
        text = name.decode("utf-8", "replace")
        topic = self._topics.get(text)
        if entry.position < topic.created_position or (
            entry.sys_flag & MOVED and self._is_older(entry, topic)
        ):
            # The topic was created anew; this message was deleted with the old one.
            raise UnknownTopic(text)
        queues = self._queues.of(topic.id)
        queue_id = int(number) if number.isdigit() else 0
        return queues[queue_id if queue_id < len(queues) else 0]


def _number(properties: dict[str, str], name: str) -> int | None:
    """Return a numeric property, or None if it is missing; Refused if it is not a number."""
    text = properties.get(name)
    if text is None:
        return None
    # Python's int accepts more than Java's long: spaces, underscores, other digits.
    if not _NUMBER.fullmatch(text):
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"{name} {text[:40]!r} is not a number.")
    return int(text)
