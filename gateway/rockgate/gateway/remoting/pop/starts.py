"""Where a pop begins to read a queue, and which of the messages there it may have.

docs/internals/pop.md specifies it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.messages.subscriptions import Filter
from rockgate.store.api.append import StateAppender
from rockgate.store.api.inflight import (
    INFLIGHT_TOPIC,
    Acquire,
    MessagesInFlight,
    Reset,
    Window,
    encode,
)
from rockgate.store.api.queues import Queue
from rockgate.store.api.topics import Topic

FROM_THE_BEGINNING: Final = 0
WINDOWS_MAX: Final = 200_000
"""Windows of all groups together: a client may invent group names."""
MESSAGES_MAX: Final = 4_000_000
"""Messages in flight, of all groups together."""


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


class Starts:
    """Finds where to read on."""

    def __init__(
        self,
        *,
        in_flight: MessagesInFlight,
        journal: StateAppender,
        puller: Puller,
        offsets: ConsumerOffsets,
    ) -> None:
        self._in_flight = in_flight
        self._journal = journal
        self._puller = puller
        self._offsets = offsets

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another window, or for more messages in flight."""
        return len(self._in_flight) >= WINDOWS_MAX or self._in_flight.count >= MESSAGES_MAX

    def next_offset(self, group: str, topic: Topic, queue: Queue) -> int:
        """Return where the next pop of a queue would begin, changing nothing."""
        window = self._in_flight.find(group, topic.id, queue.queue_id)
        if window is not None:
            return max(window.scanned, queue.log_start)
        known = self._offsets.committed(group, topic, queue.queue_id)
        return max(0 if known is None else known, queue.log_start)

    def begin(self, asked: Pop, topic: Topic, queue: Queue) -> tuple[Window | None, int]:
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
            if known is None and first > queue.log_start and not self.is_full:
                # The end is another one by the next pop, so where the group begins is written down.
                change = encode(Acquire(group, topic.id, queue_id, first, first, 0, False, []))
                self._journal.append_state(INFLIGHT_TOPIC, change)
                window = self._in_flight.find(group, topic.id, queue_id)
            return window, first
        if moved is None and known is not None and window.committed not in (None, known):
            # Another client has committed: the group continues there.
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

    def again(self, window: Window, asked: Pop, now_ms: int) -> int | None:
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


def may_have(window: Window, offset: int, now_ms: int, asked: Pop, *, is_repeated: bool) -> bool:
    """Whether a pop that reads from an earlier offset may have a message."""
    if offset >= window.end:
        return not is_repeated
    item = window.find(offset)
    if item is None or not item.is_in_place:
        return False
    return asked.is_ordered or item.deadline_ms <= now_ms
