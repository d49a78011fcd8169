"""What delayed records become when they are due: a new batch, in the queue they were sent to.

Key, value, time and headers are as they were sent, but for the headers that delayed it: nobody who
copies the record delays it again. Records of one queue that are due one behind the other are one
batch, within a bound. It is of no producer and not compressed; under LogAppendTime it has the time
of its delivery, as any batch that is appended.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from rockgate.gateway.delay.headers import without_wait
from rockgate.gateway.delay.kept import Kept
from rockgate.gateway.delay.opening import Opened, open_batch, open_politely
from rockgate.gateway.kafka.topicsettings import SettingsCache
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import INDEXED, body_of
from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import stamp, stamp_append_time
from rockgate.protocol.kafka.records.bounds import WIDEST, is_heavy
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.appending import Intake
from rockgate.store.commitlog import Draft, Stamp
from rockgate.store.errors import StoreCorrupt
from rockgate.store.reading import Slice
from rockgate.store.store import Store

CACHE_BYTES: Final = 32 << 20
BATCH_BYTES: Final = 64 << 10
"""Keys and values of one batch; a larger record is alone."""
OPEN_AT_ONCE: Final = 64 << 20
"""Bytes of batches that one job opens; what is more is opened when its turn comes."""
_RECORD_OVERHEAD: Final = 120

log = logging.getLogger(__name__)


class Redelivering:
    """Makes deliveries of records. The store asks for them when they are due."""

    def __init__(self, *, store: Store, settings: SettingsCache) -> None:
        self._topics = store.topics
        self._queues = store.queues
        self._clock = store.clock
        self._epoch = store.epochs.current
        self._settings = settings
        self._kept: Kept[Opened] = Kept(CACHE_BYTES)
        self._prepared: dict[int, Opened | None] = {}
        """What the last job opened; None for what it did not."""

    def prepare(self, entries: Sequence[Slice]) -> _Opening | None:
        """Return what a thread has to open before any of these can be delivered."""
        missing = [
            each
            for each in entries
            if each.unit.position not in self._prepared
            and each.unit.position not in self._kept
            and is_heavy(body_of(each.entry))
        ]
        return _Opening(self, missing) if missing else None

    def keep(self, opened: dict[int, Opened | None]) -> None:
        """Take what a job has opened."""
        self._prepared = opened
        for position, each in opened.items():
            if each is not None:
                self._keep(position, each)

    def redeliver(self, run: Sequence[tuple[Slice, int]]) -> tuple[Intake, int]:
        """Return what records of one queue become, and of how many; StoreCorrupt if one is bad."""
        entry = envelope.read(run[0][0].entry)
        topic = self._topics.get(entry.topic.decode())
        settings = self._settings.of(topic)
        records: list[Record] = []
        size = 0
        for found, offset in run:
            record = self._open(found).record(offset - found.unit.base)
            if record is None:
                position = found.unit.position
                raise StoreCorrupt(topic.name, position, f"nothing waits at offset {offset}")
            size += len(record.key or b"") + len(record.value or b"")
            if records and size > BATCH_BYTES:
                break
            headers = without_wait(record.headers)
            records.append(Record(len(records), *record[1:4], headers))
        body = build_batch(records, base_offset=0)
        largest_ms = max(record.timestamp for record in records)
        append_ms = self._clock.now_ms() if settings.is_append_time else -1
        draft = Draft(
            b"",
            0,
            0,
            body,
            b"",
            len(records),
            largest_ms if append_ms < 0 else append_ms,
            sys_flag=INDEXED if settings.is_indexed else 0,
            stamp=self._stamp(append_ms),
        )
        return Intake(self._queues.of(topic.id)[entry.queue_id], draft), len(records)

    def _open(self, found: Slice) -> Opened:
        position = found.unit.position
        opened = self._prepared.get(position) or self._kept.get(position)
        if opened is None:
            try:
                opened = open_batch(body_of(found.entry), bounds=WIDEST)
            except MalformedBatch as damage:
                raise StoreCorrupt("a batch of which records wait", position, str(damage)) from None
            self._keep(position, opened)
        return opened

    def _keep(self, position: int, opened: Opened) -> None:
        size = len(opened.data) + _RECORD_OVERHEAD * len(opened.indexes)
        self._kept.put(position, opened, size)

    def _stamp(self, append_ms: int) -> Stamp:
        def stamped(view: memoryview, offset: int) -> None:
            stamp(view, offset, self._epoch)
            if append_ms >= 0:
                stamp_append_time(view, append_ms)

        return stamped


class _Opening:
    """Batches that a thread opens."""

    def __init__(self, owner: Redelivering, entries: Sequence[Slice]) -> None:
        self._owner = owner
        self._entries = entries
        self._opened: dict[int, Opened | None] = dict.fromkeys(
            each.unit.position for each in entries
        )

    def run(self) -> None:
        """Open as many as may be held at once."""
        size = 0
        for unit, view in self._entries:
            if size >= OPEN_AT_ONCE:
                return
            try:
                opened = open_politely(body_of(view), bounds=WIDEST)
            except MalformedBatch:
                continue  # told when it is to be delivered
            self._opened[unit.position] = opened
            size += len(opened.data)

    def keep(self) -> None:
        """Hand them over."""
        self._owner.keep(self._opened)
