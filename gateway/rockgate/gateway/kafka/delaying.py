"""Records that Kafka clients delay by their headers: how a batch with any of them is appended.

docs/delay.md says what becomes of it. Only topics whose `message.type` is DELAY or MIXED come here.
The batch is appended whole and marked, with its schedule in the same group; if it belongs to a
transaction, or has very many records that wait, with the word that it is held instead.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from rockgate.gateway.delay.headers import Terms
from rockgate.gateway.delay.opening import (
    Opened,
    is_heavy,
    open_batch,
    open_politely,
    waits_of,
    waits_within,
)
from rockgate.gateway.delay.shown import Shown
from rockgate.gateway.kafka.errors import RequestError
from rockgate.protocol.entry import DELAYED
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader, Buffer
from rockgate.store.appending import Appended, Intake
from rockgate.store.commitlog import Draft, Stamp
from rockgate.store.consumequeue import Queue
from rockgate.store.delayheld import (
    HELD_TOPIC,
    NOBODY,
    UNDECIDED,
    HeldEntries,
    Hold,
    Kind,
    encode,
)
from rockgate.store.store import Store

AT_ONCE_MAX: Final = 500
"""Records that are scheduled together with their batch: about a millisecond's work."""

Ready = dict[int, "Sifted | MalformedBatch"]
"""What a thread has made of batches, by the identity of their bytes."""


class Heavy(RequestError):
    """A batch must be opened by a thread before it can be appended."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, "the batch is to be opened first")


class Sifted(NamedTuple):
    """A batch of which records wait."""

    opened: Opened
    rest: bytearray | None
    """What readers see of it, if that was made already."""


class RecordDelays:
    """Takes batches with records that wait. One for all connections."""

    def __init__(self, *, store: Store, held: HeldEntries, terms: Terms) -> None:
        self._appender = store.appender
        self._deliveries = store.deliveries
        self._terms = terms
        self.held = held
        self.shown = Shown(store.log)
        self.ready: Ready = {}
        """Set around the appending of a request whose batches a thread has opened."""

    def sift(self, records: Buffer, body: Buffer) -> Sifted | None:
        """Return which records of a produced batch wait; None if none does.

        `body` is what is going to be stored of `records`. MalformedBatch names a record whose
        headers are bad, and Heavy says that a thread must look first.
        """
        known = self.ready.get(id(records))
        if isinstance(known, MalformedBatch):
            raise known
        if known is not None:
            return known if known.opened.indexes else None
        if is_heavy(records):
            raise Heavy
        opened = open_batch(body, waits_within(self._terms, self._deliveries.now_ms()))
        return Sifted(opened, None) if opened.indexes else None

    async def make_ready(self, records: Buffer) -> Sifted | MalformedBatch:
        """Let a thread open a batch that takes long."""
        wanted = waits_within(self._terms, self._deliveries.now_ms())

        def work() -> Sifted | MalformedBatch:
            try:
                opened = open_politely(records, wanted)
                return Sifted(opened, opened.rest() if opened.indexes else None)
            except MalformedBatch as malformed:
                return malformed

        return await asyncio.to_thread(work)

    def append(
        self,
        queue: Queue,
        body: Buffer,
        header: BatchHeader,
        sifted: Sifted,
        *,
        stamp: Stamp,
        append_ms: int,
        sys_flag: int,
    ) -> Appended:
        """Append a batch with its schedule; `append_ms` is -1 unless the topic stamps it."""
        opened = sifted.opened
        # What nobody can read yet is not found by its time either.
        record_ms = append_ms if append_ms >= 0 and opened.rest_count else opened.rest_max_ms
        draft = Draft(
            b"",
            0,
            0,
            body,
            b"",
            header.record_count,
            record_ms,
            sys_flag=sys_flag,
            stamp=stamp,
        )
        now_ms = self._deliveries.now_ms()
        if not header.is_transactional and len(opened.indexes) <= AT_ONCE_MAX:
            waits = waits_of(opened, self._terms, now_ms)
            appended = self._deliveries.append(queue, draft, waits)
        else:
            appended = self._hold(queue, draft, header, now_ms)
        if sifted.rest is not None:
            stamp(memoryview(sifted.rest), appended.offset)
            self.shown.put(appended.position, sifted.rest)
        return appended

    def _hold(self, queue: Queue, draft: Draft, header: BatchHeader, now_ms: int) -> Appended:
        is_owned, base = header.is_transactional, queue.next_offset
        hold = Hold(
            queue.topic_id,
            queue.queue_id,
            base,
            base + header.record_count,
            header.producer_id if is_owned else NOBODY,
            UNDECIDED if is_owned else now_ms,
        )
        marked = draft._replace(sys_flag=draft.sys_flag | DELAYED)
        change = Draft(HELD_TOPIC, 0, -1, encode(Kind.HOLD, hold))
        return self._appender.group([Intake(queue, marked), Intake(None, change)])[0]
