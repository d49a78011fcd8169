"""A store in memory in which messages wait, and the gateway's part of delivering them."""

from __future__ import annotations

from rockgate.protocol import entry as envelope
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.read.reader import Slice
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Intake

CONFIG = StoreConfig(
    segment_bytes=8192,
    populate_ahead_bytes=4096,
    flush="sync",
    checkpoint_bytes=6000,
    checkpoint_interval_ms=3_000,
    upkeep_gap_ms=0,
    snapshot_bytes=9000,
    snapshot_interval_ms=7_000,
    key_index=False,
    retention_interval_ms=1_000,
)


class WaitingStore:
    """The topics `later`, where messages wait and expire after a second, and `target`."""

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        clock: ManualClock | None = None,
        config: StoreConfig = CONFIG,
    ) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = clock or ManualClock()
        self.config = config
        self.open()

    def open(self) -> None:
        self.store = Store(self.disk.root(), self.config, self.clock)
        self.store.deliveries.redeliver = self.redeliver
        self.refuses = False
        config = {"retention.ms": "1000"}
        wanted = [
            NewTopic(name="later", queue_count=1, config=config),
            NewTopic(name="target", queue_count=1),
        ]
        missing = [each for each in wanted if self.store.topics.find(each.name) is None]
        if missing:
            self.store.topics.create_many(missing)

    def reopen(self) -> None:
        self.store.close()
        self.open()

    def kill(self) -> None:
        self.disk = self.disk.killed()
        self.open()

    def queue(self, name: str) -> Queue:
        return self.store.queue(self.store.topics.get(name), 0)

    def redeliver(self, found: Slice, offset: int) -> Intake | None:
        if self.refuses:
            return None
        entry = envelope.read(found.entry)
        body = bytes(found.entry[entry.body_at : entry.body_at + entry.body_size])
        if entry.is_batch:
            body = body.split(b",")[offset - entry.queue_offset]
        return Intake(self.queue("target"), Draft(b"", 0, 0, body))

    def schedule(self, body: bytes, due_ms: int) -> int:
        draft = Draft(b"", 0, 0, body)
        return self.store.deliveries.append(self.queue("later"), draft, [(0, due_ms)]).offset

    def recall(self, offset: int) -> bool:
        return self.store.delay.recall(self.queue("later").topic_id, 0, offset)

    def deliver(self) -> None:
        """Let everything that is due be delivered, and upkeep be done."""
        while self.store.tick():
            pass

    def ripen(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.deliver()

    def delivered(self) -> list[bytes]:
        queue = self.queue("target")
        bodies, offset = [], queue.log_start
        self.store.flush()
        while offset < queue.next_offset:
            for found in self.store.reader.read(queue, offset, 1 << 20):
                bodies.append(bytes(envelope.body_of(found.entry)))
                offset = found.unit.base + found.unit.offset_count
        return bodies
