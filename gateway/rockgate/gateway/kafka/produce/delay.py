"""Records that Kafka clients delay by their headers: how a batch with any of them is appended.

docs/internals/delay.md describes the rest. Only topics whose `message.type` is DELAY or MIXED come
here. The batch is appended whole and marked, with its schedule in the same group; if it belongs to
a transaction, or has very many delayed records, with an entry that it is held instead.
"""

from __future__ import annotations

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.delay.headers import Asked, Terms, Wait, waits_within
from rockgate.gateway.delay.visible_batch import VisibleBatches
from rockgate.gateway.kafka.produce.topic_checks import WAITS_MAX, Waits
from rockgate.protocol.entry import DELAYED
from rockgate.protocol.kafka.records.batch import BatchHeader, Buffer
from rockgate.protocol.kafka.records.sifting import Wanted
from rockgate.store.api.append import Appended, Appender, Draft, Intake, Stamp
from rockgate.store.api.delay import (
    HELD_TOPIC,
    NO_OWNER,
    UNDECIDED,
    Deliveries,
    HeldChangeKind,
    HeldEntries,
    Hold,
    encode,
)
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import Lookup


class RecordDelays:
    """Appends batches with delayed records. One for all connections."""

    def __init__(
        self,
        *,
        appender: Appender,
        deliveries: Deliveries,
        lookup: Lookup,
        held: HeldEntries,
        terms: Terms,
        threads: BatchThreads | None = None,
    ) -> None:
        self._appender = appender
        self._deliveries = deliveries
        self._terms = terms
        self.held = held
        self.visible_batches = VisibleBatches(lookup, threads)

    def wanted(self) -> Wanted[Asked]:
        """Return the reader of delays for records that arrive now."""
        return waits_within(self._terms, self._deliveries.now_ms())

    def append(
        self,
        queue: Queue,
        body: Buffer,
        header: BatchHeader,
        waits: Waits,
        *,
        stamp: Stamp,
        append_ms: int,
        sys_flag: int,
    ) -> Appended:
        """Append a batch with its schedule; `append_ms` is -1 unless the topic stamps it."""
        # Delayed records are not found by their time either.
        record_ms = append_ms if append_ms >= 0 and waits.rest_count else waits.rest_max_ms
        draft = Draft(
            topic=b"",
            queue_id=0,
            offset=0,
            body=body,
            properties=b"",
            batch_count=header.record_count,
            born_ms=record_ms,
            sys_flag=sys_flag,
            stamp=stamp,
        )
        now_ms = self._deliveries.now_ms()
        if not header.is_transactional and waits.total <= WAITS_MAX:
            due = [
                (index, self._terms.when(Wait._make(asked), now_ms))
                for index, asked in zip(waits.indexes, waits.asked, strict=True)
            ]
            appended = self._deliveries.append(queue, draft, due)
        else:
            appended = self._hold(queue, draft, header, now_ms)
        if waits.rest is not None:
            stamp(memoryview(waits.rest), appended.offset)
            self.visible_batches.put(appended.position, waits.rest)
        return appended

    def _hold(self, queue: Queue, draft: Draft, header: BatchHeader, now_ms: int) -> Appended:
        is_owned, base = header.is_transactional, queue.next_offset
        hold = Hold(
            queue.topic_id,
            queue.queue_id,
            base,
            base + header.record_count,
            header.producer_id if is_owned else NO_OWNER,
            UNDECIDED if is_owned else now_ms,
        )
        marked = draft._replace(sys_flag=draft.sys_flag | DELAYED)
        change = Draft(
            topic=HELD_TOPIC, queue_id=0, offset=-1, body=encode(HeldChangeKind.HOLD, hold)
        )
        return self._appender.group([Intake(queue, marked), Intake(None, change)])[0]
