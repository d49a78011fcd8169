"""Half messages: stored, committed or rolled back by their producers, and checked otherwise.

docs/internals/half-messages.md specifies it. A decision is one append: the message in its real
queue, and the word that this half message is decided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from rockgate.gateway.remoting.messages.sender import CLIENT_FLAGS, Incoming, Taken
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.names import check_group
from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    Entry,
    get_property,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.properties import REAL_QUEUE_ID, REAL_TOPIC
from rockgate.protocol.remoting.system_topics import CHECKED_OUT_TOPIC
from rockgate.store.api.append import NOTHING_ELSE, Appended, Appender, Draft, Intake
from rockgate.store.api.half import (
    HALF_TOPIC,
    MESSAGES,
    Decided,
    Half,
    HalfMessages,
    Outcome,
    Prepared,
    encode,
)
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.read import EntryReader
from rockgate.store.api.topics import TopicLookup

PREPARED_MARK: Final = b"TRAN_MSG"
GROUP: Final = b"PGROUP"
IMMUNITY: Final = b"CHECK_IMMUNITY_TIME_IN_SECONDS"
IMMUNE_SECONDS_MAX: Final = 366 * 86_400
_REAL_TOPIC: Final = REAL_TOPIC.encode()
_REAL_QUEUE: Final = REAL_QUEUE_ID.encode()
_REAL_PLACE: Final = b"%%b%b\x01%%b\x02%b\x01%%d\x02" % (_REAL_TOPIC, _REAL_QUEUE)
"""How the destination is appended to the properties of a half message."""
_MARKS: Final = frozenset((_REAL_TOPIC, _REAL_QUEUE, PREPARED_MARK))
"""Properties of a half message that is not delivered yet."""
_MESSAGES: Final = MESSAGES.decode()
RECENT_MAX: Final = 256
"""How many half messages are remembered: most are committed at once, and then need not be read."""
RECENT_BYTES_MAX: Final = 4096
"""The largest that is remembered."""
_new = tuple.__new__  # skips NamedTuple's constructor
log = logging.getLogger(__name__)

Place = Callable[[Queue, Draft], list[Intake]]
"""How a message is appended to its real queue: as it is, or together with its schedule."""


class StoredHalf(NamedTuple):
    """A half message as it is stored in the log."""

    entry: Entry
    body: memoryview
    properties: bytes


class Committed(NamedTuple):
    """The outcome of committing a half message."""

    offset: int
    """Its offset in its real queue, or where it waits until it is due."""
    is_sync: bool
    """Whether its topic requires a flush before the request is answered."""


class Halves:
    """Stores half messages and carries out their decisions."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        reader: EntryReader,
        appender: Appender,
        halves: HalfMessages,
        durability: Durability,
        place: Place = lambda queue, draft: [Intake(queue, draft)],
    ) -> None:
        """`place` returns where a committed message is appended."""
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._appender = appender
        self.undecided = halves
        self._durability = durability
        self._place = place
        self.on_prepared: list[Callable[[Half], None]] = []
        """Called with every stored half message, to schedule its check."""
        self.ended_counts = dict.fromkeys(Outcome, 0)
        self._recent: dict[int, Draft] = {}
        """The newest by offset; `prepared_offset` is where each was appended."""

    # Storing

    def prepare(self, incoming: Incoming) -> Taken:
        """Append a half message, which is not visible; its offset identifies it."""
        queue = self._queue()
        header, host = incoming.header, incoming.caller.peer.host
        real, properties = incoming.queue, incoming.properties
        group = get_property(properties, GROUP)
        name = header.producer_group if group is None else group.decode("utf-8", "replace")
        check_group(name)
        offset = queue.next_offset
        fields = (
            *(queue.topic, 0, offset, incoming.body),
            *(_REAL_PLACE % (properties, real.topic, real.queue_id), 0),
            *(header.born_timestamp, host.packed, header.flag),
            header.sys_flag & CLIENT_FLAGS | TRANSACTION_PREPARED | host.flag,
            header.reconsume_times or 0,
            *NOTHING_ELSE,
        )
        draft = _new(Draft, fields)
        change = Prepared(offset, name, _immunity(properties))
        _, position, end, store_ms, _ = self._appender.placed_with(
            queue, draft, HALF_TOPIC, encode(change)
        )
        self._remember(draft, position)
        half = self.undecided.find(offset)
        assert half is not None, "a half message that was appended is known"
        for watch in self.on_prepared:
            watch(half)
        appended = Appended(offset, position, end, store_ms, real.queue_id)
        if queue.is_sync or real.is_sync:
            return self._durability.after(end, appended)
        return appended

    # Ending

    def commit(self, offset: int, group: str) -> Committed | None:
        """Deliver a half message; None if it was decided before."""
        if self._undecided(offset, group) is None:
            return None
        stored = self._recalled(offset) or _as_draft(self.read(offset))
        properties, topic, queue_id = _delivered(stored.properties)
        queue = self._real_queue(topic, queue_id)
        decided = encode(Decided(offset, Outcome.COMMITTED))
        draft = _draft(stored, queue, properties, TRANSACTION_COMMIT)
        intakes = self._place(queue, draft)
        if len(intakes) == 1:
            done = self._appender.placed_with(queue, draft, HALF_TOPIC, decided)
        else:
            done = self._appender.group([*intakes, _state(decided)])[0]
        self.ended_counts[Outcome.COMMITTED] += 1
        waiting = intakes[0].queue or queue
        return Committed(done.offset, queue.is_sync or waiting.is_sync)

    def roll_back(self, offset: int, group: str) -> bool:
        """Roll a half message back; False if it was decided before."""
        if self._undecided(offset, group) is None:
            return False
        self._append(Decided(offset, Outcome.ROLLED_BACK))
        self._recent.pop(offset, None)
        self.ended_counts[Outcome.ROLLED_BACK] += 1
        return True

    def give_up(self, half: Half) -> None:
        """Move a half message that remains undecided to where it can be inspected."""
        stored = self.read(half.offset)
        queue = self._queues.of(self._topics.get(CHECKED_OUT_TOPIC).id)[0]
        decided = _state(encode(Decided(half.offset, Outcome.GIVEN_UP)))
        draft = _draft(_as_draft(stored), queue, stored.properties, 0)
        self._appender.group([Intake(queue, draft), decided], is_upkeep=True)
        self.ended_counts[Outcome.GIVEN_UP] += 1
        log.warning(
            "half message discarded offset=%d group=%s checks=%d",
            half.offset,
            quoted(half.group),
            half.check_count,
        )

    def resume(self, view: memoryview) -> Half:
        """Store a discarded message as a half message again; its checks start over."""
        stored = _stored(view)
        group = get_property(stored.properties, GROUP)
        if group is None or get_property(stored.properties, _REAL_TOPIC) is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, "Message does not name its producer group and topic."
            )
        queue = self._queue()
        draft = _draft(_as_draft(stored), queue, stored.properties, TRANSACTION_PREPARED)
        change = Prepared(draft.offset, group.decode(), _immunity(stored.properties))
        self._appender.placed_with(queue, draft, HALF_TOPIC, encode(change))
        half = self.undecided.find(draft.offset)
        assert half is not None, "a half message that was appended is known"
        for watch in self.on_prepared:
            watch(half)
        return half

    def read(self, offset: int) -> StoredHalf:
        """Return an undecided half message from the log."""
        queue = self._queue()
        unit = queue.find(offset)
        assert unit is not None, "an undecided half message is kept"
        return _stored(self._reader.entry(queue, unit).entry)

    def _remember(self, draft: Draft, position: int) -> None:
        """Remember a half message that was appended, in place of the oldest."""
        body = draft.body
        if len(body) + len(draft.properties) > RECENT_BYTES_MAX:
            return
        recent = self._recent
        if len(recent) >= RECENT_MAX:
            del recent[next(iter(recent))]
        # The body is part of a receive buffer, which is not to be held.
        fields = (*draft[:3], bytes(body), *draft[4:11], position, *draft[12:])
        recent[draft.offset] = _new(Draft, fields)

    def _recalled(self, offset: int) -> Draft | None:
        """Return a half message that is remembered, unless its entry was relocated."""
        found = self._recent.pop(offset, None)
        if found is None:
            return None
        unit = self._queue().find(offset)
        return found if unit is not None and unit.position == found.prepared_offset else None

    def _undecided(self, offset: int, group: str) -> Half | None:
        half = self.undecided.find(offset)
        if half is None:
            return None
        if half.group != group:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"Half message {offset} belongs to producer group '{half.group}', not '{group}'.",
            )
        return half

    def _queue(self) -> Queue:
        return self._queues.of(self._topics.get(_MESSAGES).id)[0]

    def _real_queue(self, name: str, queue_id: int) -> Queue:
        topic = self._topics.find(name)
        if topic is None or queue_id >= topic.queue_count:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic '{name}' no longer exists.")
        return self._queues.of(topic.id)[queue_id]

    def _append(self, change: Decided) -> None:
        self._appender.append_state(HALF_TOPIC, encode(change))


def _stored(view: memoryview) -> StoredHalf:
    entry = envelope.read(view)
    body = view[entry.body_at : entry.body_at + entry.body_size]
    return StoredHalf(entry, body, envelope.properties_of(view, entry))


def _state(body: bytes) -> Intake:
    return Intake(None, Draft(topic=HALF_TOPIC, queue_id=0, offset=-1, body=body))


def _delivered(properties: bytes) -> tuple[bytes, str, int]:
    """Return a half message's properties for delivery, and its real topic and queue."""
    topic, queue_id = b"", b"0"
    remaining = []
    for part in properties.split(b"\x02"):
        name, _, value = part.partition(b"\x01")
        if name not in _MARKS:
            remaining.append(part)
        elif name == _REAL_TOPIC:
            topic = value
        elif name == _REAL_QUEUE:
            queue_id = value
    return b"\x02".join(remaining), topic.decode(), int(queue_id)


def _as_draft(stored: StoredHalf) -> Draft:
    """Return a half message of the log as it was appended, with its position."""
    entry = stored.entry
    return Draft(
        topic=MESSAGES,
        queue_id=0,
        offset=entry.queue_offset,
        body=stored.body,
        properties=stored.properties,
        batch_count=0,
        born_ms=entry.born_ms,
        born_host=entry.born_host,
        flag=entry.flag,
        sys_flag=entry.sys_flag,
        reconsume_times=entry.reconsume_times,
        prepared_offset=entry.position,
    )


def _draft(stored: Draft, queue: Queue, properties: bytes, transaction: int) -> Draft:
    """Return what is appended to a queue for a half message."""
    flags = stored.sys_flag & (CLIENT_FLAGS | envelope.BORN_HOST_V6) | transaction
    place = queue.topic, queue.queue_id, queue.next_offset, stored.body, properties, 0
    return _new(Draft, (*place, *stored[6:9], flags, *stored[10:]))


def _immunity(properties: bytes) -> int:
    """The age for a message's first check by its own property; -1 without one."""
    if IMMUNITY not in properties:
        return -1
    text = get_property(properties, IMMUNITY)
    try:
        seconds = int(text) if text else -1
    except ValueError:
        return -1
    return min(seconds, IMMUNE_SECONDS_MAX) * 1000 if seconds >= 0 else -1
