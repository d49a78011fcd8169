"""Finds records by their time.

A queue knows, for each entry, the largest record time up to and including it, so the first entry
that reaches a time is found by searching; then that one batch is opened for its first record.
Delayed records are skipped: an entry's largest time is that of its other records.

The record of a running maximum may have been deleted, and then it hides the entries that follow.
Those are scanned, by the largest time in each envelope, some at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.delay.headers import asked_of, sifted
from rockgate.gateway.kafka.fetch.leader_epochs import LeaderEpochs
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import DELAYED, born_ms_of
from rockgate.protocol.kafka.errors import BatchTooLarge
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.bounds import LIGHT, Bounds, is_heavy
from rockgate.protocol.kafka.records.record import open_records
from rockgate.protocol.kafka.records.skimming import skim_times
from rockgate.store.api.queues import Queue, Unit
from rockgate.store.api.read import EntryReader, Slice

WALK_UNITS: Final = 256

T = TypeVar("T")


class FoundRecord(NamedTuple):
    """One record."""

    offset: int
    timestamp: int
    epoch: int


class TimeSearch:
    """Searches queues by time."""

    def __init__(
        self,
        reader: EntryReader,
        epochs: LeaderEpochs,
        cold_reads: ColdReads,
        threads: BatchThreads | None = None,
    ) -> None:
        self._threads = threads or BatchThreads()
        self._reader = reader
        self._epochs = epochs
        self._cold_reads = cold_reads

    async def first_at(self, queue: Queue, time_ms: int, end: int) -> FoundRecord | None:
        """Return the first remaining record at or after a time, before `end`."""
        first = queue.first_at_record_time(time_ms)
        if first is None:
            return None
        # Most searches end with the first entry; further ones are read by the hundred.
        offset, count = max(first.base, queue.log_start), 1
        while part := await self._part(queue, offset, end, count):
            for unit, largest_ms in part:
                if largest_ms >= time_ms:
                    found = await self._open(queue, unit.base, time_ms)
                    if found is not None:
                        return found if found.offset < end else None
            offset, count = part[-1][0].base + part[-1][0].offset_count, WALK_UNITS
        return None

    async def largest(self, queue: Queue, end: int) -> FoundRecord | None:
        """Return the first remaining record with the largest time before `end`."""
        last = queue.find(end - 1) if end > queue.log_start else None
        if last is None or last.max_ms < 0:
            return None
        first = queue.first_at_record_time(last.max_ms)
        if first is not None and first.base > queue.log_start:
            found = await self.first_at(queue, last.max_ms, end)
            if found is not None:
                return found
        # The record of the maximum is deleted or compacted, or may be: search all that are left.
        best, best_ms = 0, -1
        offset = queue.log_start
        while part := await self._part(queue, offset, end, WALK_UNITS):
            for unit, entry_ms in part:
                is_whole = unit.base >= queue.log_start
                largest_ms = entry_ms if is_whole else await self._largest_left(queue, unit.base)
                if largest_ms > best_ms:
                    best, best_ms = unit.base, largest_ms
            offset = part[-1][0].base + part[-1][0].offset_count
        return None if best_ms < 0 else await self._open(queue, best, best_ms)

    async def _part(
        self, queue: Queue, offset: int, end: int, count: int
    ) -> list[tuple[Unit, int]]:
        """Return some entries from an offset on, with the largest record time of each."""
        if count > 1:
            await asyncio.sleep(0)
        await self._cold_reads.load(self._cold_reads.cold(_take(queue, offset, end, count)))
        # What was found before other requests ran may have moved since.
        units = _take(queue, offset, end, count)
        return [(unit, self._largest_ms(queue, unit)) for unit in units]

    def _largest_ms(self, queue: Queue, unit: Unit) -> int:
        """Return the largest record time of an entry, which for messages is the born time."""
        return born_ms_of(self._reader.entry(queue, unit).entry)

    async def _open(self, queue: Queue, offset: int, time_ms: int) -> FoundRecord | None:
        """Return the first record in an entry at or after a time that is not deleted."""
        unit = queue.find(offset)
        if unit is None:
            return None
        part, epoch = self._reader.entry(queue, unit), self._epochs.of(queue, unit)
        found = await self._look(part, partial(_first_in, part, time_ms, queue.log_start))
        return None if found is None else FoundRecord(*found, epoch)

    async def _largest_left(self, queue: Queue, offset: int) -> int:
        unit = queue.find(offset)
        if unit is None:
            return -1
        part = self._reader.entry(queue, unit)
        largest_ms = await self._look(part, partial(_largest_in, part, queue.log_start))
        return -1 if largest_ms is None else largest_ms

    async def _look(self, part: Slice, into: Callable[[Bounds], T]) -> T | None:
        """Search an entry, in a thread if it is heavy; None if it is skipped."""
        try:
            if not is_heavy(envelope.body_of(part.entry)):
                with contextlib.suppress(BatchTooLarge):
                    return into(LIGHT)
            return await self._threads.run(partial(into, self._threads.bounds))
        except BatchTooLarge as damage:
            unit = part.unit
            self._threads.pass_over(
                damage, position=unit.position, offset=unit.base, count=unit.offset_count
            )
            return None


def _take(queue: Queue, offset: int, end: int, count: int) -> list[Unit]:
    units = (Unit._make(fields) for fields in islice(queue.walk(offset), count))
    return [unit for unit in units if unit.base < end]


def _first_in(part: Slice, time_ms: int, log_start: int, bounds: Bounds) -> tuple[int, int] | None:
    for offset, timestamp in _times(part, bounds):
        if timestamp >= time_ms and offset >= log_start:
            return offset, timestamp
    return None


def _largest_in(part: Slice, log_start: int, bounds: Bounds) -> int:
    times = _times(part, bounds)
    return max((time_ms for offset, time_ms in times if offset >= log_start), default=-1)


def _times(part: Slice, bounds: Bounds) -> Iterator[tuple[int, int]]:
    entry = envelope.read(part.entry)
    if not entry.is_batch:
        yield entry.queue_offset, entry.born_ms
        return
    body = envelope.body_of(part.entry)
    header = read_header(body)
    data = open_records(body, header, bounds=bounds)
    waiting: frozenset[int] = frozenset()
    if entry.sys_flag & DELAYED:
        waiting = frozenset(sifted(body, header, asked_of, bounds=bounds, data=data).indexes)
    for index, (delta, timestamp) in enumerate(skim_times(data, header)):
        if index not in waiting:
            yield header.base_offset + delta, timestamp
