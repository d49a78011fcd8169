"""A store of short segments with the bodies of both wires, and what tests of compaction ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tests.store.keeping import CONFIG, Keeping
from tests.world import World

from rockgate.gateway.compaction.bodies import EntryBodies
from rockgate.gateway.transcode.dictionary import record_key
from rockgate.gateway.visibility.stable_offsets import FIRST, StableOffsets
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import body_of
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.control import Marker, MarkerType, build_marker
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.testing.memory_files import MemoryDisk

DAY_MS = 86_400_000

Pair = tuple[str, str | None]
Seen = tuple[int, str, str | None]
"""Offset, key and value of a record."""


class Compacting(Keeping):
    """The world. What is appended is noted in `model`, by topic and queue."""

    def __init__(self, disk: MemoryDisk | None = None, **settings: Any) -> None:
        self.model: dict[tuple[str, int], list[Seen]] = {}
        self.hidden: dict[tuple[str, int, int], Pair] = {}
        """Records of transactions that did not commit, by topic, queue and offset."""
        self.begun: list[Seen] = []
        """What is being appended: after a crash it may be there or not."""
        self.serial = 0
        wanted = {"compaction_interval_ms": 1_000, "compaction_bytes_per_second": 1 << 40}
        World.__init__(self, replace(CONFIG, **(wanted | settings)), disk)

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.stable_offsets = StableOffsets(topics)
        return [self.stable_offsets]

    def open(self) -> None:
        super().open()
        self.store.attach(bodies=EntryBodies(self.store.reader, self.stable_offsets))

    # Writing

    def note(self, name: str, partition: int, offset: int, pair: Pair) -> None:
        self.model.setdefault((name, partition), []).append((offset, *pair))

    def produce(
        self,
        *pairs: Pair,
        name: str = "table",
        partition: int = 0,
        compression: Compression = Compression.NONE,
        producer_id: int = -1,
        is_transactional: bool = False,
        is_visible: bool = True,
    ) -> int:
        """Append a batch, and return its base offset."""
        queue, now_ms = self.queue(name, partition), self.clock.now_ms()
        records = [
            Record(i, now_ms + i, key.encode(), None if value is None else value.encode())
            for i, (key, value) in enumerate(pairs)
        ]
        body = build_batch(
            records,
            base_offset=0,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            is_transactional=is_transactional,
        )
        self.begun = [(queue.next_offset + index, *pair) for index, pair in enumerate(pairs)]
        base = self.append(queue, body, len(records), now_ms + len(records) - 1)
        if is_transactional:
            self.stable_offsets.wrote(queue.topic_id, queue.queue_id, producer_id, base)
        for index, pair in enumerate(pairs):
            if is_visible:
                self.note(name, partition, base + index, pair)
            else:
                self.hidden[name, partition, base + index] = pair
        return base

    def append(
        self,
        queue: Queue,
        body: bytearray,
        count: int,
        record_ms: int,
        properties: bytes = b"",
        sys_flag: int = 0,
    ) -> int:
        stamp = partial(batch.stamp, leader_epoch=self.store.epochs.current)
        appended = self.store.appender.batch(
            queue,
            body,
            count=count,
            record_ms=record_ms,
            properties=properties,
            sys_flag=sys_flag,
            stamp=lambda view, offset: stamp(view, base_offset=offset),
        )
        return appended.offset

    def send(self, pair: Pair, name: str = "table", partition: int = 0) -> int:
        """Append a message entry; one without a body deletes its key."""
        key, value = pair
        body = b"" if value is None else value.encode()
        self.begun = [(self.queue(name, partition).next_offset, *pair)]
        appended = self.message(
            name,
            partition,
            body=body,
            properties={"KEYS": key},
            born_ms=self.clock.now_ms(),
        )
        self.note(name, partition, appended.offset, pair)
        return appended.offset

    def end(self, producer_id: int, first: int, *, commits: bool, name: str = "table") -> int:
        """Append the marker that ends a transaction."""
        queue = self.queue(name)
        kind = MarkerType.COMMIT if commits else MarkerType.ABORT
        body = build_marker(Marker(kind, producer_id, 0, 0), timestamp=self.clock.now_ms())
        properties = b"%b\x01%d\x02" % (FIRST, first)
        offset = self.append(queue, body, 1, self.clock.now_ms(), properties)
        self.stable_offsets.ended(
            (queue.topic_id, queue.queue_id),
            producer_id,
            first=first,
            offset=offset,
            is_abort=not commits,
            high_watermark=queue.next_offset,
        )
        return offset

    def roll(self) -> None:
        """Fill the active segment, so that all before it may be compacted."""
        self.ensure("filler")
        self.fill_segment("filler")

    def compact(self) -> None:
        """Let the store do all that is due."""
        self.pass_time(2_000)
        self.pass_time(2_000)

    # Reading

    def records(self, name: str = "table", partition: int = 0) -> list[Seen]:
        """What readers get; everything between is an offset without a record."""
        queue, found = self.queue(name, partition), []
        offset = queue.log_start
        for unit, view in self.entries(name, partition):
            assert unit.base <= offset, "offsets are missing"
            offset = unit.base + unit.offset_count
            found += [each for each in seen_in(view) if each[0] >= queue.log_start]
        assert offset == queue.next_offset
        return found

    def check(self, name: str = "table", partition: int = 0) -> list[Seen]:
        """Compare what is read with the model, and return it."""
        found = []
        for seen in self.records(name, partition):
            hidden = self.hidden.get((name, partition, seen[0]))
            if hidden is None:
                found.append(seen)
            else:
                assert hidden == seen[1:]
        model = self.model.get((name, partition), [])
        check_read(found, model, self.queue(name, partition).log_start)
        return found


def seen_in(view: memoryview) -> Iterable[Seen]:
    """The visible records of one entry, which has to be whole."""
    entry = envelope.read(view)
    envelope.check(view, entry)
    body = body_of(view)
    if not entry.is_batch:
        key = record_key(envelope.properties_of(view, entry))
        assert key is not None
        return [(entry.queue_offset, key.decode(), bytes(body).decode() or None)]
    header = batch.check(body)
    assert header.base_offset == entry.queue_offset
    assert header.last_offset_delta == entry.offset_count - 1
    if header.is_control:
        return []
    return [
        (
            each.offset,
            (each.key or b"").decode(),
            None if each.value is None else each.value.decode(),
        )
        for each in read_records(body)
    ]


def check_read(found: Sequence[Seen], model: Sequence[Seen], log_start: int = 0) -> None:
    """Nothing is invented, nothing is out of order, and each key's last value is there."""
    appended = {seen[0]: seen for seen in model}
    offsets = [offset for offset, _, _ in found]
    assert offsets == sorted(set(offsets))
    for seen in found:
        assert appended.get(seen[0]) == seen, "a record that nobody wrote"
    last = {key: (offset, value) for offset, key, value in model}
    there = {key: (offset, value) for offset, key, value in found}
    for key, (offset, value) in last.items():
        if offset < log_start:
            continue
        if value is None:
            assert key not in there or there[key] == (offset, None), f"{key} came back"
        else:
            assert there.get(key) == (offset, value), f"the last value of {key} is gone"
