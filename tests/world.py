"""A store on memory files with a manual clock: the base of tests above the file layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.store.reading import entries

from rockgate.gateway.topics.policy import queue_policy
from rockgate.protocol.entry import body_of, pack_properties
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import Directory, DiskDirectory
from rockgate.store.keys.entrykeys import Found
from rockgate.store.log.draft import NO_HOST, Draft
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.read.slices import Slice
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import NewTopic, random_topic_id
from rockgate.store.state.topics import Topics
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Appended

CONFIG = StoreConfig(segment_bytes=1 << 20, populate_ahead_bytes=1 << 16, key_index=False)
NOW_MS = 1_700_000_000_000
SECOND = 1_000
ALL = 1 << 40


class World:
    """An open store, and short names for what tests do with it.

    Subclasses that need more of the server extend `open`, which runs again when the store is
    reopened, and `make_folds`.
    """

    def __init__(
        self,
        config: StoreConfig = CONFIG,
        disk: MemoryDisk | None = None,
        clock: ManualClock | None = None,
        *,
        path: Path | None = None,
    ) -> None:
        self.config = config
        self.disk = disk or MemoryDisk()
        self.clock = clock or ManualClock(NOW_MS)
        self._path = path
        self.open()

    @property
    def directory(self) -> Directory:
        """The data directory: in memory, unless a path was given."""
        return self.disk.root() if self._path is None else DiskDirectory(self._path)

    def open(self) -> None:
        self.store = self.open_store()

    def open_store(self, **settings: Any) -> Store:
        """Open the directory for writing, optionally with other settings than the world's."""
        return self.open_to_read(**settings).begin_epoch()

    def open_to_read(self, **settings: Any) -> Store:
        """Open the directory without an epoch: nothing can be appended."""
        return Store(
            self.directory,
            replace(self.config, **settings),
            self.clock,
            folds=self.make_folds,
            record_keys=self.record_keys,
            policy_of=queue_policy,
            new_topic_id=self.new_topic_id,
        )

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        return ()

    def record_keys(self, body: memoryview) -> Found:
        return ()

    def new_topic_id(self) -> bytes:
        return random_topic_id()

    def reopen(self) -> None:
        """Stop and start: the next epoch begins."""
        self.store.close()
        self.open()

    def kill(self) -> None:
        """Kill the process, and start again with the page cache."""
        self.disk = self.disk.killed()
        self.open()

    # Topics

    def topic(self, name: str = "orders", partitions: int = 1, **config: str) -> Topic:
        """Create a topic; underscores in the names of settings stand for dots."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        return self.store.topics.create(
            NewTopic(name=name, queue_count=partitions, config=settings)
        )

    def ensure(self, name: str = "orders", partitions: int = 1, **config: str) -> Topic:
        """Return the topic, creating it unless it survived from before a restart."""
        return self.store.topics.find(name) or self.topic(name, partitions, **config)

    def queue(self, name: str = "orders", partition: int = 0) -> Queue:
        return self.store.queue(self.store.topics.get(name), partition)

    def delete_records(self, offset: int, name: str = "orders", partition: int = 0) -> None:
        topic = self.store.topics.get(name)
        self.store.topics.advance_log_starts({topic: {partition: offset}})

    # Messages

    def message(
        self,
        name: str = "orders",
        partition: int = 0,
        *,
        body: bytes = b"message",
        properties: Mapping[str, str] | None = None,
        born_ms: int = NOW_MS,
        born_host: bytes = NO_HOST,
        flag: int = 0,
    ) -> Appended:
        """Append one message entry, as the RocketMQ side does."""
        packed = pack_properties((properties or {}).items())
        draft = Draft(b"", 0, 0, body, packed, born_ms=born_ms, born_host=born_host, flag=flag)
        return self.store.appender.message(self.queue(name, partition), draft)

    def entries(self, name: str = "orders", partition: int = 0) -> list[Slice]:
        """All that a reader gets from a queue, from its log start on."""
        queue = self.queue(name, partition)
        offset, found = queue.log_start, list[Slice]()
        while slices := entries(self.store, queue, offset, ALL):
            found += slices
            offset = slices[-1].unit.base + slices[-1].unit.offset_count
        return found

    def bodies(self, name: str = "orders", partition: int = 0) -> list[bytes]:
        return [bytes(body_of(each.entry)) for each in self.entries(name, partition)]

    # Time

    def settle(self) -> None:
        """Do everything that is due."""
        while self.store.tick():
            pass

    def pass_time(self, milliseconds: int) -> None:
        """Let time elapse, and the store do what is due."""
        self.clock.advance(milliseconds)
        self.settle()
