"""A world with delayed records: produced and read as by a client, with a manual clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.gateway.kafka.transactions.ledger import Ledger
from tests.gateway.kafka.world import call
from tests.world import NOW_MS

from rockgate.gateway.kafka.handlers.produce import Produced
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.kafka.hot.produce import ProducedPartition
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.fetch import FetchPartition
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import Compression, check
from rockgate.protocol.kafka.records.record import Header, Record, build_batch, read_records

Given = tuple[bytes, dict[str, str]]
"""A record's value and its headers as text."""


class Batch(NamedTuple):
    """A batch as a reader gets it."""

    first: int
    next_offset: int
    records: list[Record]


def delayed(value: bytes, ms: int) -> Given:
    return value, {"TIMER_DELAY_MS": str(ms)}


def plain(value: bytes) -> Given:
    return value, {}


def records_of(given: Sequence[Given]) -> list[Record]:
    return [
        Record(at, NOW_MS + at, b"key", value, headers_of(headers))
        for at, (value, headers) in enumerate(given)
    ]


def headers_of(headers: dict[str, str]) -> tuple[Header, ...]:
    return tuple((name, value.encode()) for name, value in headers.items())


class Postponing(Ledger):
    """The topic `orders`, of type MIXED by default."""

    def mixed(self, partitions: int = 1, **config: str) -> None:
        self.topic(partitions=partitions, **({"message_type": "MIXED"} | config))

    def batch(
        self,
        given: Sequence[Given],
        *,
        codec: Compression = Compression.NONE,
        producer: ProducerIdAndEpoch | None = None,
        sequence: int = 0,
        is_transactional: bool = False,
    ) -> bytes:
        return bytes(
            build_batch(
                records_of(given),
                base_offset=0,
                compression=codec,
                producer_id=-1 if producer is None else producer.id,
                producer_epoch=-1 if producer is None else producer.epoch,
                base_sequence=-1 if producer is None else sequence,
                is_transactional=is_transactional,
            )
        )

    def request(
        self, batch: bytes, *, partition: int = 0, id_: str | None = None, acks: int = -1
    ) -> ProduceRequest:
        data = PartitionProduceData(index=partition, records=batch)
        return ProduceRequest(
            transactional_id=id_,
            acks=acks,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name="orders", partition_data=[data])],
        )

    def produce(
        self, batch: bytes, *, partition: int = 0, id_: str | None = None
    ) -> ProducedPartition:
        """Produce a batch that is decoded at once."""
        request = self.request(batch, partition=partition, id_=id_)
        answer = self.handlers[ApiKey.PRODUCE].handle(request, call(12))
        assert isinstance(answer, Produced), "it takes a thread"
        return answer.topics[0].partitions[0]

    async def produce_later(self, batch: bytes, *, partition: int = 0) -> ProducedPartition:
        """Produce a batch of any size."""
        request = self.request(batch, partition=partition)
        answer = self.handlers[ApiKey.PRODUCE].handle(request, call(12))
        if not isinstance(answer, Produced):
            answer = await answer
        told: ProducedPartition = answer.topics[0].partitions[0]
        return told

    def put(self, *given: Given, codec: Compression = Compression.NONE, partition: int = 0) -> int:
        """Produce records, and return the first offset."""
        done = self.produce(self.batch(given, codec=codec), partition=partition)
        assert done.error_code == 0, done
        return done.base_offset

    def settle(self) -> None:
        while any([self.store.tick(), self.scheduling.step(), self.coordinator.step()]):
            pass

    def shown(
        self,
        partition: int = 0,
        *,
        start: int = 0,
        size_max: int = 1 << 20,
        committed: bool = False,
    ) -> list[Batch]:
        """What a reader gets from an offset on, one response after the other."""
        queue = self.queue(partition=partition)
        found: list[Batch] = []
        offset = max(start, queue.log_start)
        end = self.partitions.bounds(queue)[2 if committed else 1]
        while offset < end:
            asked = FetchPartition(partition=partition, fetch_offset=offset)
            read, _, count = self.partitions.read(queue, asked, size_max, True, committed, None)
            assert not read.error_code
            assert count, "an answer brings its reader forward"
            data = memoryview(b"".join(bytes(each) for each in read.records or ()))
            while data:
                size = 12 + int.from_bytes(data[8:12], "big")
                header = check(data[:size])
                following = header.base_offset + header.last_offset_delta + 1
                assert following > offset, "a batch brings its reader forward"
                records = [] if header.is_control else read_records(data[:size])
                found.append(Batch(header.base_offset, following, records))
                offset, data = following, data[size:]
        return found

    def values(self, partition: int = 0, *, committed: bool = False) -> list[bytes]:
        """The values that a reader gets, in order; each record within its batch."""
        found = []
        for batch in self.shown(partition, committed=committed):
            for record in batch.records:
                assert batch.first <= record.offset < batch.next_offset
                found.append(record.value or b"")
        return found

    @property
    def waiting_count(self) -> int:
        return self.store.delay.waiting_count
