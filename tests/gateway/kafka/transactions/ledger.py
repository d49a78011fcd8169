"""A world with transactions: a coordinator, its handlers, and a reader of committed records."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.gateway.kafka.world import KafkaWorld, call
from tests.world import NOW_MS

from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.handlers.add_offsets_to_txn import AddOffsetsToTxn
from rockgate.gateway.kafka.handlers.add_partitions_to_txn import AddPartitionsToTxn
from rockgate.gateway.kafka.handlers.describe_transactions import DescribeTransactions
from rockgate.gateway.kafka.handlers.end_txn import EndTxn
from rockgate.gateway.kafka.handlers.init_producer_id import InitProducerId
from rockgate.gateway.kafka.handlers.list_transactions import ListTransactions
from rockgate.gateway.kafka.handlers.offset_fetch import OffsetFetch
from rockgate.gateway.kafka.handlers.produce import Produce
from rockgate.gateway.kafka.handlers.txn_offset_commit import TxnOffsetCommit
from rockgate.gateway.kafka.handlers.write_txn_markers import WriteTxnMarkers
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.deadlines import Deadlines
from rockgate.gateway.kafka.transactions.markers import Markers
from rockgate.gateway.kafka.transactions.produce_check import TransactionalWrites
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from rockgate.protocol.kafka.messages.end_txn import EndTxnRequest
from rockgate.protocol.kafka.messages.fetch import FetchPartition
from rockgate.protocol.kafka.messages.init_producer_id import InitProducerIdRequest
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.control import MarkerType, read_marker
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.protocol.kafka.schema import decode, encode

TIMEOUT_MS_MAX = 900_000
ID_EXPIRY_MS = 604_800_000
OFFSETS_BYTES_MAX = 32 << 20


class Outcome(NamedTuple):
    """What a producer learns about its id."""

    code: int
    producer: ProducerIdAndEpoch


def transactional_writes(world: KafkaWorld) -> TransactionalWrites:
    """The transactional part of Produce, over a world's folds."""
    return TransactionalWrites(
        coordinator=coordinator_of(world),
        stable_offsets=world.folds.stable_offsets,
        producers=world.folds.producers,
    )


def markers_of(world: KafkaWorld) -> Markers:
    folds, store = world.folds, world.store
    return Markers(
        appender=store.appender,
        queues=store.queues,
        reader=store.reader,
        clock=store.clock,
        epochs=store.epochs,
        deliveries=store.deliveries,
        stable_offsets=folds.stable_offsets,
        producers=folds.producers,
        held=folds.held,
    )


def produce_of(world: KafkaWorld, durability: Durability, writes: TransactionalWrites) -> Produce:
    store = world.store
    return Produce(
        topics=store.topics,
        queues=store.queues,
        appender=store.appender,
        log=store.log,
        clock=store.clock,
        epochs=store.epochs,
        durability=durability,
        producers=world.folds.producers,
        settings=world.settings,
        writes=writes,
        delays=world.delays,
    )


def coordinator_of(world: KafkaWorld) -> Coordinator:
    folds, store = world.folds, world.store
    coordinator = Coordinator(
        transactions=folds.transactions,
        producers=folds.producers,
        markers=markers_of(world),
        appender=store.appender,
        progress=store.progress,
        topics=store.topics,
        timeout_ms_max=TIMEOUT_MS_MAX,
        offsets_bytes_max=OFFSETS_BYTES_MAX,
    )
    coordinator.resume()
    return coordinator


class Ledger(KafkaWorld):
    """Handlers of transactions over a store in memory; every request is encoded and decoded."""

    def open(self) -> None:
        super().open()
        store, folds = self.store, self.folds
        self.durability = durability = Durability(store)
        self.coordinator = coordinator = coordinator_of(self)
        self.deadlines = Deadlines(
            transactions=folds.transactions,
            coordinator=coordinator,
            clock=self.clock,
            id_expiry_ms=ID_EXPIRY_MS,
        )
        self.groups = Groups(
            config=GroupsConfig(),
            saved=folds.groups,
            progress=StoreProgress(store.progress),
            durability=durability,
            new_id=lambda prefix: f"{prefix}-1",
            clock=self.hand,
            pending=folds.transactions.pending,
        )
        self.groups.load()
        writes = TransactionalWrites(
            coordinator=coordinator, stable_offsets=folds.stable_offsets, producers=folds.producers
        )
        self.handlers: dict[ApiKey, Any] = {
            ApiKey.PRODUCE: produce_of(self, durability, writes),
            ApiKey.INIT_PRODUCER_ID: InitProducerId(
                producers=folds.producers, coordinator=coordinator, durability=durability
            ),
            ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxn(
                topics=store.topics, coordinator=coordinator, durability=durability
            ),
            ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxn(
                coordinator=coordinator, durability=durability
            ),
            ApiKey.END_TXN: EndTxn(coordinator=coordinator, durability=durability),
            ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommit(
                topics=store.topics,
                groups=self.groups,
                coordinator=coordinator,
                durability=durability,
                metadata_bytes_max=4096,
            ),
            ApiKey.OFFSET_FETCH: OffsetFetch(
                catalog=StoreCatalog(store.topics, 1000),
                progress=StoreProgress(store.progress),
                pending=folds.transactions.pending,
            ),
            ApiKey.WRITE_TXN_MARKERS: WriteTxnMarkers(
                topics=store.topics,
                markers=markers_of(self),
                stable_offsets=folds.stable_offsets,
                durability=durability,
                accepts_all=True,
            ),
            ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactions(
                transactions=folds.transactions, topics=store.topics
            ),
            ApiKey.LIST_TRANSACTIONS: ListTransactions(
                transactions=folds.transactions, clock=self.clock
            ),
        }

    def send(self, key: ApiKey, request: Any, version: int) -> Any:
        """The handler's response, decoded; a future stays one."""
        received = decode(APIS[key].request, version, encode(request, version))
        handler = self.handlers[key]
        try:
            return handler.handle(received, call(version))
        except RequestError as error:
            # As dispatch does.
            return handler.refuse(received, error.code)

    # Requests

    def init(
        self,
        id_: str = "tx",
        *,
        version: int = 5,
        timeout_ms: int = 60_000,
        has: ProducerIdAndEpoch | None = None,
    ) -> Outcome:
        request = InitProducerIdRequest(transactional_id=id_, transaction_timeout_ms=timeout_ms)
        if has is not None:
            request.producer_id, request.producer_epoch = has
        answer = self.send(ApiKey.INIT_PRODUCER_ID, request, version)
        return Outcome(
            answer.error_code, ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
        )

    def add(
        self,
        producer: ProducerIdAndEpoch,
        *partitions: int,
        id_: str = "tx",
        topic: str = "orders",
        version: int = 3,
    ) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=id_,
            v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[*partitions])],
        )
        answer = self.send(ApiKey.ADD_PARTITIONS_TO_TXN, request, version)
        results = answer.results_by_topic_v3_and_below[0].results_by_partition
        return [each.partition_error_code for each in results]

    def write(
        self,
        producer: ProducerIdAndEpoch,
        sequence: int,
        *values: bytes,
        id_: str | None = "tx",
        topic: str = "orders",
        partition: int = 0,
        version: int = 12,
        is_transactional: bool = True,
    ) -> int:
        records = [Record(at, NOW_MS, None, value) for at, value in enumerate(values)]
        batch = build_batch(
            records,
            base_offset=0,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        data = PartitionProduceData(index=partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=id_,
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        answer = self.handlers[ApiKey.PRODUCE].handle(request, call(version))
        return int(answer.topics[0].partitions[0].error_code)

    def end(
        self, producer: ProducerIdAndEpoch, *, commit: bool, id_: str = "tx", version: int = 5
    ) -> Outcome:
        request = EndTxnRequest(
            transactional_id=id_,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        answer = self.send(ApiKey.END_TXN, request, version)
        return Outcome(
            answer.error_code, ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
        )

    def add_group(
        self, producer: ProducerIdAndEpoch, group: str = "g", *, id_: str = "tx", version: int = 3
    ) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=id_,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            group_id=group,
        )
        return int(self.send(ApiKey.ADD_OFFSETS_TO_TXN, request, version).error_code)

    def commit_offset(
        self,
        producer: ProducerIdAndEpoch,
        offset: int,
        *,
        group: str = "g",
        id_: str = "tx",
        partition: int = 0,
        version: int = 5,
        generation: int = -1,
        member: str = "",
    ) -> int:
        request = TxnOffsetCommitRequest(
            transactional_id=id_,
            group_id=group,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            generation_id=generation,
            member_id=member,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name="orders",
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata="",
                        )
                    ],
                )
            ],
        )
        answer = self.send(ApiKey.TXN_OFFSET_COMMIT, request, version)
        return int(answer.topics[0].partitions[0].error_code)

    def committed_offset(
        self, *, group: str = "g", partition: int = 0, stable: bool = True
    ) -> tuple[int, int]:
        """The error and the committed offset of a group's partition."""
        request = OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[partition])],
            require_stable=stable,
        )
        answer = self.send(ApiKey.OFFSET_FETCH, request, 7).topics[0].partitions[0]
        return answer.error_code, answer.committed_offset

    # Reading

    def read(
        self, partition: int = 0, *, topic: str = "orders", committed: bool = True, start: int = 0
    ) -> list[bytes]:
        """The values that a consumer sees from an offset on."""
        queue = self.queue(topic, partition)
        shown: list[bytes] = []
        offset = max(start, queue.log_start)
        while True:
            asked = FetchPartition(partition=partition, fetch_offset=offset)
            found, _, count = self.partitions.read(queue, asked, 200, True, committed, None)
            assert not found.error_code
            if not count:
                return shown
            data = b"".join(bytes(each) for each in found.records or ())
            offset = _consume(data, [*(found.aborted or ())], offset, shown)

    def bounds(self, partition: int = 0, topic: str = "orders") -> tuple[int, int]:
        """The last stable offset and the high watermark."""
        _, high_watermark, stable = self.partitions.bounds(self.queue(topic, partition))
        return stable, high_watermark


def _consume(data: bytes, aborted: list[tuple[int, int]], offset: int, shown: list[bytes]) -> int:
    """Read batches like a client that drops aborted records; return the next offset."""
    dropped: set[int] = set()
    aborted.sort(key=lambda each: each[1])
    at = 0
    while at < len(data):
        header = read_header(memoryview(data)[at:])
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        batch = data[at : at + size]
        at += size
        while aborted and aborted[0][1] <= header.base_offset + header.last_offset_delta:
            dropped.add(aborted.pop(0)[0])
        following = header.base_offset + header.last_offset_delta + 1
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and marker.type is MarkerType.ABORT:
                dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            shown += [
                record.value or b"" for record in read_records(batch) if record.offset >= offset
            ]
        offset = following
    return offset
