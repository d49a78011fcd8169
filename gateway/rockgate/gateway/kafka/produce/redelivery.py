"""What delayed records become when they are due: a new batch, in the queue they were sent to.

Key, value, time and headers are as they were sent, but for the headers that delayed it: a copy of
the record is not delayed again. Records of one queue that are due one after another are one batch,
within a bound. It has no producer and has the codec of the batch that they were sent in; under
LogAppendTime it has the time of its delivery, as any batch that is appended.

What takes long is done by a job, before it is needed: opening a heavy batch, and compressing a
large record. What is left after some milliseconds is done by the next step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.delay.headers import NAMES, Opened, open_batch, open_in_steps
from rockgate.gateway.kafka.produce.validate import SettingsCache, TopicSettings
from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import INDEXED, body_of
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import HEADER_SIZE, stamp, stamp_append_time
from rockgate.protocol.kafka.records.bounds import LIGHT, WIDEST, is_heavy
from rockgate.protocol.kafka.records.record import is_delta
from rockgate.protocol.kafka.records.regrouping import Raw, raw_record, regrouped
from rockgate.store.api.append import Draft, Intake, Stamp
from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Epochs
from rockgate.store.api.queues import Queues
from rockgate.store.api.read import Slice
from rockgate.store.api.topics import TopicLookup
from rockgate.store.errors import StoreCorrupt

CACHE_BYTES: Final = 32 << 20
BATCH_BYTES: Final = 64 << 10
"""Bytes of one batch, uncompressed; a larger record is alone."""
LARGE_BYTES: Final = 256 << 10
"""A larger record is converted to its batch by a job."""
LIGHT_MAX: Final = 8
"""Light batches that are opened in one step; a job opens the rest."""
OPEN_AT_ONCE: Final = 64 << 20
"""Bytes of batches that one job opens; the next one opens the rest."""
STEP_SECONDS: Final = 0.005
"""Duration of one step of deliveries."""
_RECORD_OVERHEAD: Final = 120


class _Made(NamedTuple):
    """A batch of one record, and that record's time."""

    body: bytearray
    timestamp: int


Known = Opened | MalformedBatch


class Redelivering:
    """Builds deliveries of records. The store requests them when they are due."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        epochs: Epochs,
        clock: Clock,
        settings: SettingsCache,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._clock = clock
        self._epoch = epochs.current
        self._settings = settings
        self._seconds = seconds
        self._until = 0.0
        self._cache: BoundedCache[int, Opened] = BoundedCache(CACHE_BYTES)
        self._ready: dict[int, Known] = {}
        """Batches of the current items, by position."""
        self._made: dict[tuple[int, int], _Made] = {}
        """Large records of them, by position and offset."""
        self._has_job_done = False

    def prepare(self, wanted: Sequence[tuple[Slice, Sequence[int]]]) -> _Opening | None:
        """Return the work that a thread has to do before these can be delivered."""
        here = {found.unit.position for found, _ in wanted}
        self._ready = {at: known for at, known in self._ready.items() if at in here}
        self._made = {at: made for at, made in self._made.items() if at[0] in here}
        self._until = 0.0
        light_left = LIGHT_MAX
        missing: list[tuple[Slice, Sequence[int], Opened | None]] = []
        for found, offsets in wanted:
            position = found.unit.position
            known: Known | None = self._ready.get(position) or self._cache.get(position)
            if known is None and light_left:
                light_left -= 1
                known = _light(found)
            if known is None:
                missing.append((found, offsets, None))
                continue
            self._ready[position] = known
            if not isinstance(known, MalformedBatch):
                self._keep(position, known)
                large = [each for each in offsets if self._is_unmade(found, known, each)]
                if large:
                    missing.append((found, large, known))
        # A job does as much as may be held at once; its results are delivered before the next.
        is_done, self._has_job_done = self._has_job_done, False
        return _Opening(self, missing) if missing and not is_done else None

    def keep(self, ready: dict[int, Known], made: dict[tuple[int, int], _Made]) -> None:
        """Accept the results of a job."""
        self._ready.update(ready)
        self._made.update(made)
        self._has_job_done = True

    def redeliver(self, run: Sequence[tuple[Slice, int]]) -> tuple[Intake, int] | None:
        """Return what records of one queue become, and of how many; StoreCorrupt if one is bad.

        None if that is for the next step.
        """
        now = self._seconds()
        if self._until and now >= self._until:
            return None
        self._until = self._until or now + STEP_SECONDS
        found, offset = run[0]
        entry = envelope.read(found.entry)
        topic = self._topics.get(entry.topic.decode())
        settings = self._settings.of(topic)
        made = self._made.pop((found.unit.position, offset), None)
        if made is not None:
            body, count, largest_ms = made.body, 1, made.timestamp
        else:
            opened = self._opened(found)
            if opened is None or self._is_unmade(found, opened, offset):
                return None
            records = self._gather(run, opened, settings, topic.name)
            body, count = regrouped(records, opened.header.compression), len(records)
            largest_ms = max(record.timestamp for record in records)
        append_ms = self._clock.now_ms() if settings.is_append_time else -1
        draft = Draft(
            topic=b"",
            queue_id=0,
            offset=0,
            body=body,
            properties=b"",
            batch_count=count,
            born_ms=largest_ms if append_ms < 0 else append_ms,
            sys_flag=INDEXED if settings.is_indexed else 0,
            stamp=self._stamp(append_ms),
        )
        return Intake(self._queues.of(topic.id)[entry.queue_id], draft), count

    def _gather(
        self,
        run: Sequence[tuple[Slice, int]],
        first: Opened,
        settings: TopicSettings,
        topic: str,
    ) -> list[Raw]:
        """Return the first records of a run, as many as may share a batch."""
        limit = min(BATCH_BYTES, max(0, settings.message_bytes_max - HEADER_SIZE))
        records: list[Raw] = []
        size = 0
        for found, offset in run:
            opened = self._opened(found)
            if opened is None or opened.header.compression is not first.header.compression:
                break
            at, end = opened.span(offset - found.unit.base)
            if not end:
                reason = f"no delayed record at offset {offset}"
                raise StoreCorrupt(topic, found.unit.position, reason)
            size += end - at
            if records and size > limit:
                break
            try:
                record = raw_record(opened.data, opened.header, at, end, NAMES, WIDEST)
            except MalformedBatch as damage:
                raise StoreCorrupt(topic, found.unit.position, str(damage)) from None
            if records and not is_delta(record.timestamp - records[0].timestamp):
                break
            records.append(record)
        return records

    def _opened(self, found: Slice) -> Opened | None:
        position = found.unit.position
        known = self._ready.get(position)
        if isinstance(known, MalformedBatch):
            raise StoreCorrupt("Batch with delayed records", position, str(known))
        return known

    def _is_unmade(self, found: Slice, opened: Opened, offset: int) -> bool:
        """Whether a record is large, and no job has built its batch."""
        at, end = opened.span(offset - found.unit.base)
        return end - at > LARGE_BYTES and (found.unit.position, offset) not in self._made

    def _keep(self, position: int, opened: Opened) -> None:
        size = len(opened.data) + _RECORD_OVERHEAD * len(opened.indexes)
        self._cache.put(position, opened, size)

    def _stamp(self, append_ms: int) -> Stamp:
        def stamped(view: memoryview, offset: int) -> None:
            stamp(view, offset, self._epoch)
            if append_ms >= 0:
                stamp_append_time(view, append_ms)

        return stamped


def _light(found: Slice) -> Known | None:
    """Open a batch that does not take long; None if it does."""
    body = body_of(found.entry)
    if is_heavy(body):
        return None
    try:
        return open_batch(body, bounds=LIGHT)
    except BatchTooLarge:
        return None
    except MalformedBatch as damage:
        return damage


class _Opening:
    """Batches that a thread opens, and large records of them that it converts to batches."""

    def __init__(
        self,
        owner: Redelivering,
        missing: Sequence[tuple[Slice, Sequence[int], Opened | None]],
    ) -> None:
        self._owner = owner
        self._missing = missing
        self._ready: dict[int, Known] = {}
        self._made: dict[tuple[int, int], _Made] = {}

    def run(self) -> None:
        """Do as much as may be held at once."""
        size = 0
        for found, offsets, opened in self._missing:
            if size >= OPEN_AT_ONCE:
                return
            unit, view = found
            if opened is None:
                try:
                    # It was accepted, so it is delivered, whatever the bounds are now.
                    opened = open_in_steps(body_of(view), bounds=WIDEST)
                except MalformedBatch as damage:
                    self._ready[unit.position] = damage
                    continue
                self._ready[unit.position] = opened
                size += len(opened.data)
            for offset in offsets:
                at, end = opened.span(offset - unit.base)
                if end - at <= LARGE_BYTES or size - len(opened.data) >= OPEN_AT_ONCE:
                    continue
                try:
                    record = raw_record(opened.data, opened.header, at, end, NAMES, WIDEST)
                except MalformedBatch as damage:
                    self._ready[unit.position] = damage
                    break
                body = regrouped([record], opened.header.compression)
                self._made[unit.position, offset] = _Made(body, record.timestamp)
                size += len(body)

    def keep(self) -> None:
        """Pass on the results."""
        self._owner.keep(self._ready, self._made)
