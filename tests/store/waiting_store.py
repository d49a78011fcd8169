"""A store in memory with delayed messages, and the gateway's part of their delivery."""

from __future__ import annotations

from tests.world import World

from rockgate.protocol import entry as envelope
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.read.slices import Slice
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


class WaitingStore(World):
    """The topics `later`, where delayed messages expire after a second, and `target`."""

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        clock: ManualClock | None = None,
        config: StoreConfig = CONFIG,
    ) -> None:
        super().__init__(config, disk, clock)

    def open(self) -> None:
        super().open()
        self.store.deliveries.redeliver = self.redeliver
        self.refuses = False
        self.ensure("later", retention_ms="1000")
        self.ensure("target")

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

    def delivered(self) -> list[bytes]:
        self.store.flush()
        return self.bodies("target")
