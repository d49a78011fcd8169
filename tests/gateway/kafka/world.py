"""A world with the parts of Kafka's handlers, for tests without a server."""

from __future__ import annotations

from collections.abc import Sequence

from tests.gateway.fakes import HandClock
from tests.world import CONFIG, NOW_MS, World

from rockgate.gateway.compose.folds import KafkaFolds
from rockgate.gateway.compose.security import SecurityFolds
from rockgate.gateway.delay.headers import Terms
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.fetch.converted_batches import ConvertedBatches
from rockgate.gateway.kafka.fetch.leader_epochs import LeaderEpochs
from rockgate.gateway.kafka.fetch.partitions import PartitionReader
from rockgate.gateway.kafka.produce.delay import RecordDelays
from rockgate.gateway.kafka.produce.delay_schedule import HeldScheduling
from rockgate.gateway.kafka.produce.redelivery import Redelivering
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.transcode.batches import BatchTranscoder
from rockgate.gateway.transcode.compressed_bodies import CompressedBodies
from rockgate.gateway.transcode.keys import record_keys
from rockgate.protocol.kafka.records.batch import (
    Compression,
    stamp,
    stamp_append_time,
)
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.config import StoreConfig
from rockgate.store.keys.entrykeys import Found
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Appended

TERMS = Terms((1_000, 5_000, 10_000), 365 * 86_400_000)
"""Three delay levels, and a maximum of a year."""


class KafkaWorld(World):
    """A store with the folds of Kafka and of security, and the parts of handlers."""

    def __init__(self, config: StoreConfig = CONFIG, disk: MemoryDisk | None = None) -> None:
        self.hand = HandClock()
        super().__init__(config, disk)

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.folds = KafkaFolds.make(journal, topics)
        self.security = SecurityFolds.make(journal)
        return [*self.folds.all(), *self.security.all()]

    def record_keys(self, body: memoryview) -> Found:
        return record_keys(body)

    def open(self) -> None:
        super().open()
        self.poll_registry = PollRegistry(self.hand)
        self.store.attach(
            on_append=self.poll_registry.wake, on_flushed=self.poll_registry.wake_flushed
        )
        self.poll_registry.follow(self.store.topics, self.store.queues)
        self.epochs = LeaderEpochs(self.store.epochs, self.store.reader)
        self.cold_reads = ColdReads(self.store.residency, self.store.log)
        self.settings = SettingsCache(TopicDefaults())
        self.delays = RecordDelays(
            appender=self.store.appender,
            deliveries=self.store.deliveries,
            lookup=self.store.lookup,
            held=self.folds.held,
            terms=TERMS,
        )
        self.scheduling = HeldScheduling(
            appender=self.store.appender,
            deliveries=self.store.deliveries,
            queues=self.store.queues,
            reader=self.store.reader,
            residency=self.store.residency,
            commit_log=self.store.log,
            clock=self.store.clock,
            held=self.folds.held,
            terms=TERMS,
        )
        self.store.deliveries.records = Redelivering(
            topics=self.store.topics,
            queues=self.store.queues,
            epochs=self.store.epochs,
            clock=self.store.clock,
            settings=self.settings,
        )
        self.store.deliveries.redeliver = lambda found, offset: None
        self.store.retention.keep(self.folds.held)
        self.opening = CompressedBodies(self.poll_registry.wake_changed)
        self.partitions = PartitionReader(
            reader=self.store.reader,
            epochs=self.epochs,
            converted=ConvertedBatches(
                reader=self.store.reader,
                epochs=self.epochs,
                transcoder=BatchTranscoder(self.opening),
                visible_batches=self.delays.visible_batches,
            ),
            stable_offsets=self.folds.stable_offsets,
        )

    def append(
        self,
        name: str = "orders",
        partition: int = 0,
        *,
        times: Sequence[int] = (NOW_MS,),
        value: bytes = b"value",
        compression: Compression = Compression.NONE,
        append_time: int | None = None,
        sys_flag: int = 0,
    ) -> Appended:
        """Append one batch with a record for each time, as Produce does."""
        records = [Record(index, time, b"key", value) for index, time in enumerate(times)]
        body = build_batch(records, base_offset=0, compression=compression)
        epoch = self.store.epochs.current

        def stamped(view: memoryview, offset: int) -> None:
            stamp(view, offset, epoch)
            if append_time is not None:
                stamp_append_time(view, append_time)

        return self.store.appender.batch(
            self.queue(name, partition),
            body,
            count=len(records),
            record_ms=max(times) if append_time is None else append_time,
            stamp=stamped,
            sys_flag=sys_flag,
        )


LISTENER = Endpoint(protocol="kafka", address=Address("b", 1), advertised=Address("here", 9092))


def call(version: int) -> Call:
    """The particulars of a request, from a client of a listener that is advertised as `here`."""
    peer = Peer(connection_id=1, local=Address("a", 1), remote=Address("b", 2), listener=LISTENER)
    return Call(version, "me", peer)
