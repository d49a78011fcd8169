"""Reads messages for a pull: one queue from an offset on, and the next offset in every case.

    offset                     answer                  next offset
    in the queue               SUCCESS                 behind the last message looked at
    in it, nothing wanted      PULL_RETRY_IMMEDIATELY  behind the last message looked at: how many
                                                       a filter is asked about has a bound
    at the end                 waits, PULL_NOT_FOUND   the same
    beyond the end             PULL_OFFSET_MOVED       the end
    before the start           PULL_OFFSET_MOVED       the start
    below zero, or any other   PULL_OFFSET_MOVED       the start
    the queue is empty         waits, PULL_NOT_FOUND   the start (0 in a new queue)

The end is what a reader may see: the high watermark, and no further than the last stable offset of
Kafka's transactions. Message entries are sent as they are stored; batch entries are transcoded, but
for those of aborted transactions, which are skipped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import NamedTuple

from rockgate.gateway.remoting.messages.subscriptions import Evaluation, Filter
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.entry import MAGIC_BATCH, body_of, places
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Buffer
from rockgate.store.api.log import Place
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import Reader, Slice

ROUNDS_MAX = 64
"""Maximum number of runs and batches in the response to a pull."""


class Pulled(NamedTuple):
    """What a pull found."""

    code: int
    remark: bytes
    next_offset: int
    min_offset: int
    max_offset: int
    buffers: list[Buffer]
    size: int
    message_count: int = 0

    @property
    def is_waiting(self) -> bool:
        """Whether more may come after waiting."""
        return self.code == ResponseCode.PULL_NOT_FOUND


class Puller:
    """Reads queues for RocketMQ clients."""

    def __init__(
        self,
        *,
        reader: Reader,
        cold_reads: ColdReads,
        stable_offsets: StableOffsets,
        transcoder: Transcoder,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self._now = now
        self.hit_count = 0
        """Reads that found something."""
        self.miss_count = 0
        """Reads that found none: at the end, outside of the queue, or nothing matched."""
        self.longest_seconds = 0.0
        """The longest read so far, including what had to be loaded for it."""
        self.last_seconds = 0.0
        """How long the last read took."""
        self._reader = reader
        self._stable_offsets = stable_offsets
        self._transactional = stable_offsets.transactional
        self._transcoder = transcoder
        self._cold_reads = cold_reads

    def end(self, queue: Queue) -> int:
        """The offset after the last that readers may see."""
        high_watermark = self._reader.high_watermark(queue)
        if not self._transactional:
            return high_watermark
        return self._stable_offsets.last_stable(queue.topic_id, queue.queue_id, high_watermark)

    def pull(
        self, queue: Queue, offset: int, wanted: Filter, count_max: int, size_max: int
    ) -> Pulled | Awaitable[Pulled]:
        """The available messages; an awaitable if something must be loaded or opened first."""
        began = self._now()
        start, end = queue.log_start, self.end(queue)
        if not start <= offset < end:
            return self._counted(outside(offset, start, end), began)
        cold: list[Place] = []
        heavy: list[Slice] = []
        found = self._gather(queue, offset, end, wanted, count_max, size_max, cold, heavy)
        if not found.buffers and (cold or heavy):
            asked = queue, offset, wanted, count_max, size_max, cold, heavy
            return self._counted_later(asked, began)
        return self._counted(found, began)

    def _counted(self, found: Pulled, began: float) -> Pulled:
        seconds = self.last_seconds = self._now() - began
        if seconds > self.longest_seconds:
            self.longest_seconds = seconds
        if found.buffers:
            self.hit_count += 1
        else:
            self.miss_count += 1
        return found

    async def _counted_later(
        self,
        asked: tuple[Queue, int, Filter, int, int, list[Place], list[Slice]],
        began: float,
    ) -> Pulled:
        # The inner coroutine is created here: this one may be closed without having begun.
        return self._counted(await self._pull_later(*asked), began)

    async def _pull_later(
        self,
        queue: Queue,
        offset: int,
        wanted: Filter,
        count_max: int,
        size_max: int,
        cold: list[Place],
        heavy: list[Slice],
    ) -> Pulled:
        while True:
            await self._cold_reads.load(cold)
            await self._transcoder.prepare(heavy)
            start, end = queue.log_start, self.end(queue)
            if not start <= offset < end:
                return outside(offset, start, end)
            cold, heavy = [], []
            found = self._gather(queue, offset, end, wanted, count_max, size_max, cold, heavy)
            if found.buffers or not (cold or heavy):
                return found
            offset = found.next_offset

    def _gather(
        self,
        queue: Queue,
        offset: int,
        end: int,
        wanted: Filter,
        count_max: int,
        size_max: int,
        cold: list[Place],
        heavy: list[Slice],
    ) -> Pulled:
        """Assemble a response from runs of messages and from batches."""
        buffers: list[Buffer] = []
        size = count = 0
        at = offset
        asked = None if wanted.accepts is None else Evaluation(wanted.accepts)
        for _ in range(ROUNDS_MAX):
            run = self._reader.message_run(
                queue,
                at,
                end,
                count_max=count_max - count,
                size_max=size_max - size,
                accepts_code=wanted.accepts_code,
                accepts=None if asked is None else asked.entry,
                cold=cold,
            )
            buffers += run.buffers
            size += run.size
            count += run.message_count
            at = run.next_offset
            if run.batch is None or count >= count_max or size >= size_max or cold:
                break
            if asked is not None and asked.is_spent:
                break
            if self._is_aborted(queue, run.batch):
                at = run.batch.unit.base + run.batch.unit.offset_count
                continue
            cut = self._transcoder.select(
                run.batch,
                max(at, run.batch.unit.base),
                count_max=count_max - count,
                size_max=size_max - size,
                accepts_code=wanted.accepts_code,
                accepts=None if asked is None else asked.properties,
                heavy=heavy,
            )
            if cut is None or (buffers and size + cut.size > size_max):
                break
            buffers += cut.buffers
            size += cut.size
            count += cut.message_count
            at = cut.next_offset
            if count >= count_max or size >= size_max or at >= end:
                break
        start = queue.log_start
        if buffers:
            return Pulled(ResponseCode.SUCCESS, b"FOUND", at, start, end, buffers, size, count)
        return Pulled(
            ResponseCode.PULL_RETRY_IMMEDIATELY, b"NO_MATCHED_MESSAGE", at, start, end, [], 0
        )

    def is_visible(self, queue: Queue, found: Slice, offset: int) -> bool:
        """Whether an offset of an entry is visible to readers."""
        if not queue.log_start <= offset < self.end(queue):
            return False
        return places(found.entry, 0)[1] != MAGIC_BATCH or not self._is_aborted(queue, found)

    def _is_aborted(self, queue: Queue, found: Slice) -> bool:
        """Whether a batch belongs to an aborted transaction, and so is never visible."""
        unit = found.unit
        last = unit.base + unit.offset_count
        aborted = self._stable_offsets.aborted(queue.topic_id, queue.queue_id, unit.base, last)
        if not aborted:
            return False
        header = read_header(body_of(found.entry))
        return header.is_transactional and any(
            each.producer_id == header.producer_id and each.first <= unit.base <= each.last
            for each in aborted
        )


def outside(offset: int, start: int, end: int) -> Pulled:
    """The response for an offset without messages."""
    moved, nothing = ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_NOT_FOUND
    if start == end and offset == start:
        code, remark, following = nothing, b"NO_MESSAGE_IN_QUEUE", start
    elif offset == end:
        code, remark, following = nothing, b"OFFSET_OVERFLOW_ONE", end
    elif offset > end:
        code, remark, following = moved, b"OFFSET_OVERFLOW_BADLY", end
    else:
        code, remark, following = moved, b"OFFSET_TOO_SMALL", start
    return Pulled(code, remark, following, start, end, [], 0)
