"""Acknowledges messages in flight, and changes for how long they are invisible.

A handle that does not name the current delivery has no effect: the message was handed to another
member meanwhile, or its deadline was changed. RocketMQ's brokers answer such a request with success
too, since the client cannot do anything about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rockgate.gateway.remoting.pop.acquirer import INVISIBLE_MS_MAX
from rockgate.gateway.remoting.pop.clock_steps import ClockSteps
from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
from rockgate.protocol.remoting.pop import Handle
from rockgate.store.api.append import StateAppender
from rockgate.store.api.inflight import (
    INFLIGHT_TOPIC,
    Drop,
    End,
    EndReason,
    Extend,
    MessagesInFlight,
    encode,
    runs_of,
)
from rockgate.store.api.queues import Queue


class Receipts:
    """Ends and extends deliveries."""

    def __init__(
        self,
        *,
        in_flight: MessagesInFlight,
        journal: StateAppender,
        clock: ClockSteps,
        wake: Callable[[Queue], None],
        statistics: BrokerStatistics | None = None,
    ) -> None:
        self._statistics = statistics
        self._in_flight = in_flight
        self._journal = journal
        self._clock = clock
        self._wake = wake
        self.acknowledged_count = 0
        self.stale_count = 0
        """Acknowledgements that had no effect."""

    def acknowledge_one(self, group: str, queue: Queue, offset: int, deadline_ms: int) -> None:
        """End one delivery, as `acknowledge` does: clients end most of them one by one."""
        window = self._in_flight.find(group, queue.topic_id, queue.queue_id)
        if window is None or not self._clock.holds(window, offset, deadline_ms):
            self.stale_count += 1
            return
        is_in_place = window.has_in_place
        change = End(*window.key, EndReason.ACKNOWLEDGED, (offset, 1))
        self._journal.append_state(INFLIGHT_TOPIC, encode(change))
        self.acknowledged_count += 1
        if is_in_place or window.room == 1:
            self._wake(queue)

    def acknowledge(
        self, group: str, queue: Queue, offsets: Sequence[int], deadline_ms: int
    ) -> None:
        """End deliveries of one pop; when it returns, that is in the log."""
        window = self._in_flight.find(group, queue.topic_id, queue.queue_id)
        ended = (
            []
            if window is None
            else sorted({each for each in offsets if self._clock.holds(window, each, deadline_ms)})
        )
        self.stale_count += len(offsets) - len(ended)
        if window is None or not ended:
            return
        is_in_place = window.has_in_place
        change = End(*window.key, EndReason.ACKNOWLEDGED, runs_of(ended))
        self._journal.append_state(INFLIGHT_TOPIC, encode(change))
        self.acknowledged_count += len(ended)
        if self._statistics is not None:
            self._statistics.acknowledged(queue.topic_id, group, len(ended))
        if is_in_place or window.room == len(ended):
            # Pops may wait for it: an orderly queue is free, or a full one has room again.
            self._wake(queue)

    def extend(
        self, group: str, queue: Queue, offset: int, handle: Handle, invisible_ms: int
    ) -> tuple[int, int]:
        """Change the deadline of a delivery; return pop time and invisible time of its handle."""
        now_ms = self._clock.now_ms()
        deadline_ms = now_ms + max(0, min(invisible_ms, INVISIBLE_MS_MAX))
        pop_ms = handle.pop_ms if handle.is_ordered else now_ms
        window = self._in_flight.find(group, queue.topic_id, queue.queue_id)
        if window is not None and self._clock.holds(window, offset, handle.deadline_ms):
            self._clock.settle(window)
            change = Extend(*window.key, deadline_ms, [offset, 1])
            self._journal.append_state(INFLIGHT_TOPIC, encode(change))
            if self._statistics is not None:
                # As RocketMQ's brokers count it: the end of one delivery and another one.
                self._statistics.acknowledged(queue.topic_id, group, 1)
                self._statistics.handed_out(queue.topic_id, group, 1)
        return pop_ms, deadline_ms - pop_ms

    def forget_group(self, group: str) -> None:
        """Drop what a group has in flight: it is deleted."""
        if self._in_flight.of_group(group):
            self._journal.append_state(INFLIGHT_TOPIC, encode(Drop(group)))
