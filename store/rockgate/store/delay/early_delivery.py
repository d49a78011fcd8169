"""Delivers one delayed entry before it is due, on request.

docs/internals/delay.md specifies it. It is the delivery that its time would bring, a group of the
new entry and `DELIVERED`, only earlier; whatever fails leaves the item pending, due as before.
"""

from __future__ import annotations

from typing import NamedTuple

from rockgate.store.delay.changes import DELAY_TOPIC, DelayChangeKind
from rockgate.store.delay.delivery import Deliveries
from rockgate.store.delay.fold import Delay, Due, WaitingOffset
from rockgate.store.delay.given import Opening, end_of, with_origin
from rockgate.store.errors import StoreBusy
from rockgate.store.log.commitlog import Draft
from rockgate.store.queues.view import QueueView
from rockgate.store.read.slices import Slice
from rockgate.store.write.append import Appender, Intake

_NO_UNIT = -1
"""Its unit stays in its list, and is skipped when that comes up."""


class Arrival(NamedTuple):
    """Where an entry was delivered."""

    topic: str
    queue_id: int
    offset: int


class EarlyDeliveries:
    """Delivers single items at once. Belongs to the store's thread."""

    def __init__(self, *, delay: Delay, appender: Appender, deliveries: Deliveries) -> None:
        self._delay = delay
        self._appender = appender
        self._deliveries = deliveries

    def prepare(self, entry: Slice, offset: int) -> Opening | None:
        """Return the work that a thread must do first, as for any delivery."""
        records = self._deliveries.records
        if records is None or not self._deliveries.is_batch(entry):
            return None
        return records.prepare([(entry, [offset])])

    def deliver(self, queue: QueueView, entry: Slice, offset: int) -> Arrival | None:
        """Deliver an item if it is pending; the outcome is final when this returns.

        StoreError, with the item pending as before, if it cannot be delivered now; UnknownTopic if
        its destination was deleted.
        """
        if not self._delay.is_waiting(queue.topic_id, queue.queue_id, offset):
            return None
        due = Due(_NO_UNIT, 0, WaitingOffset(queue.topic_id, queue.queue_id, offset, 0))
        made = self._made(entry, offset)
        if made is None or made.queue is None:
            raise StoreBusy("the message cannot be delivered at this moment")
        end = Draft(DELAY_TOPIC, 0, -1, end_of(DelayChangeKind.DELIVERED, [due]))
        done = self._appender.group([with_origin(made, [due]), Intake(None, end)])
        self._deliveries.delivered_count += 1
        return Arrival(made.queue.topic.decode(), made.queue.queue_id, done[0].offset)

    def _made(self, entry: Slice, offset: int) -> Intake | None:
        """What it becomes; None if that is for later."""
        deliveries = self._deliveries
        if deliveries.records is not None and deliveries.is_batch(entry):
            found = deliveries.records.redeliver([(entry, offset)])
            return None if found is None else found[0]
        return None if deliveries.redeliver is None else deliveries.redeliver(entry, offset)
