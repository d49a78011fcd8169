"""Requests to a broker, and responses in a form in which two brokers can be compared.

Leader epochs are relative to the broker's current one, session ids are reduced to whether there is
one, and records to their offsets: a broker may truncate the last batch of a response.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any, TypeVar

from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from rockgate.protocol.kafka.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from rockgate.protocol.kafka.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import Compression, split
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.protocol.kafka.schema import ZERO_UUID, decode, encode

T = TypeVar("T")
SECONDS_MAX = 60.0
UNSAID = -99
OWN = 1 << 20
"""Added to a leader epoch: relative to the broker's current one."""


class Part:
    """The request for one partition."""

    def __init__(
        self,
        index: int = 0,
        offset: int = 0,
        *,
        topic: str = "",
        size_max: int = 1 << 20,
        epoch: int = -1,
        last_epoch: int = -1,
    ) -> None:
        self.index = index
        self.offset = offset
        self.topic = topic
        self.size_max = size_max
        self.epoch = epoch
        self.last_epoch = last_epoch


class Broker:
    """One connection to a broker, and the current topic."""

    def __init__(self, name: str, address: tuple[str, int]) -> None:
        self.name = name
        self.address = address
        self._socket = socket.create_connection(address, timeout=SECONDS_MAX)
        self._connection = ClientConnection(client_id="beside")
        self.topic = ""
        self.epoch = 0
        self.ids: dict[str, bytes] = {}
        self.seconds = 0.0

    def close(self) -> None:
        self._socket.close()

    def call(self, key: ApiKey, version: int, request: Any, response: type[T]) -> T:
        self._connection.send(key, version, [encode(request, version)])
        self._socket.sendall(b"".join(self._connection.data_to_send()))
        started = time.monotonic()
        while True:
            data = self._socket.recv(1 << 16)
            assert data, f"{self.name} closed the connection"
            for answer in self._connection.receive_data(data):
                self.seconds = time.monotonic() - started
                return decode(response, version, answer.body, memory_max=1 << 26)

    # Topics and records

    def create(self, name: str, partitions: int = 3) -> None:
        """Create a topic, wait until it is writable, and make it the current one."""
        # Kafka expires by the timestamps of records, and those of the tests are long past.
        for_ever = CreatableTopicConfig(name="retention.ms", value="-1")
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=[for_ever]
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        made = self.call(ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse)
        assert made.topics[0].error_code == 0, made
        self.topic = name
        deadline = time.monotonic() + SECONDS_MAX
        while not self._is_ready(name, partitions):
            assert time.monotonic() < deadline, f"{self.name} does not lead {name}"

    def _is_ready(self, name: str, partitions: int) -> bool:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        found = self.call(ApiKey.METADATA, 12, asked, MetadataResponse).topics[0]
        if found.error_code or len(found.partitions) != partitions:
            return False
        self.ids[name] = found.topic_id
        self.epoch = found.partitions[0].leader_epoch
        return all(answer[0] == 0 for answer in self.list(-1, *range(partitions)))

    def delete(self, name: str) -> None:
        """Delete a topic and wait until it cannot be read."""
        state = DeleteTopicState(name=name)
        request = DeleteTopicsRequest(topics=[state], timeout_ms=10_000)
        gone = self.call(ApiKey.DELETE_TOPICS, 6, request, DeleteTopicsResponse)
        assert gone.responses[0].error_code == 0, gone
        deadline = time.monotonic() + SECONDS_MAX
        while self.list(-1)[0][0] == 0:
            assert time.monotonic() < deadline, f"{self.name} still has {name}"

    def produce(
        self,
        partition: int,
        times: Sequence[int],
        *,
        value: bytes = b"value",
        codec: Compression = Compression.NONE,
    ) -> None:
        """Append one batch."""
        records = [Record(index, at, b"key", value) for index, at in enumerate(times)]
        batch = build_batch(records, base_offset=0, compression=codec)
        data = PartitionProduceData(index=partition, records=bytes(batch))
        topic = TopicProduceData(name=self.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        response = self.call(ApiKey.PRODUCE, 9, request, ProduceResponse)
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code == 0, answer

    # Requests

    def fetch(
        self,
        *parts: Part,
        version: int = 12,
        session: tuple[int, int] = (0, -1),
        forget: Sequence[int] = (),
        wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        isolation_level: int = 0,
        ids: dict[str, bytes] | None = None,
    ) -> tuple[Any, ...]:
        """Fetch; the last part of the result is its session id, for the next request."""
        by_id, known = version >= 13, {**self.ids, **(ids or {})}
        topics: dict[str, list[FetchPartition]] = {}
        for part in parts:
            topics.setdefault(part.topic or self.topic, []).append(
                FetchPartition(
                    partition=part.index,
                    current_leader_epoch=self._own(part.epoch),
                    fetch_offset=part.offset,
                    last_fetched_epoch=self._own(part.last_epoch),
                    partition_max_bytes=part.size_max,
                )
            )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=session[0],
            session_epoch=session[1],
            topics=[
                FetchTopic(
                    topic="" if by_id else name,
                    topic_id=known.get(name, b"?" * 16) if by_id else ZERO_UUID,
                    partitions=found,
                )
                for name, found in topics.items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(
                    topic="" if by_id else self.topic,
                    topic_id=known[self.topic] if by_id else ZERO_UUID,
                    partitions=list(forget),
                )
            ]
            if forget
            else [],
        )
        response = self.call(ApiKey.FETCH, version, request, FetchResponse)
        found = [self._partition(each) for t in response.responses for each in t.partitions]
        has_waited = self.seconds >= 0.4
        has_session = response.session_id != 0
        return (
            (response.error_code, has_session, has_waited, sorted(found)),
            response.session_id,
        )

    def _partition(self, each: Any) -> tuple[Any, ...]:
        assert each.records is not None, f"{self.name} gives null for records"
        offsets = [
            record.offset
            for _, view in split(memoryview(each.records))
            for record in read_records(view)
        ]
        diverging = each.diverging_epoch
        return (
            each.partition_index,
            each.error_code,
            (each.high_watermark, each.last_stable_offset, each.log_start_offset),
            (self._relative(diverging.epoch), diverging.end_offset),
            each.aborted_transactions,
            each.preferred_read_replica,
            offsets,
        )

    def list(
        self,
        time_ms: int,
        *partitions: int,
        version: int = 11,
        epoch: int = -1,
        topic: str = "",
        isolation_level: int = 0,
    ) -> list[tuple[int, int, int, int]]:
        """Error, offset, timestamp and leader epoch, by partition."""
        asked = [
            ListOffsetsPartition(
                partition_index=index, current_leader_epoch=self._own(epoch), timestamp=time_ms
            )
            for index in partitions or (0,)
        ]
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=topic or self.topic, partitions=asked)],
        )
        response = self.call(ApiKey.LIST_OFFSETS, version, request, ListOffsetsResponse)
        found = {
            each.partition_index: (
                each.error_code,
                each.offset,
                each.timestamp,
                self._relative(each.leader_epoch),
            )
            for answered in response.topics
            for each in answered.partitions
        }
        return [found[index] for index in sorted(found)]

    def epoch_end(
        self, epoch: int, *, current: int = -1, index: int = 0, topic: str = "", version: int = 4
    ) -> tuple[int, int, int]:
        """Error, leader epoch and end offset."""
        asked = OffsetForLeaderPartition(
            partition=index,
            current_leader_epoch=self._own(current),
            leader_epoch=self._own(epoch),
        )
        wanted = OffsetForLeaderTopic(topic=topic or self.topic, partitions=[asked])
        request = OffsetForLeaderEpochRequest(topics=[wanted])
        response = self.call(
            ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request, OffsetForLeaderEpochResponse
        )
        each = response.topics[0].partitions[0]
        return each.error_code, self._relative(each.leader_epoch), each.end_offset

    def delete_records(
        self, offset: int, *, index: int = 0, topic: str = "", version: int = 2
    ) -> tuple[int, int]:
        """Error and low watermark."""
        asked = DeleteRecordsPartition(partition_index=index, offset=offset)
        wanted = DeleteRecordsTopic(name=topic or self.topic, partitions=[asked])
        request = DeleteRecordsRequest(topics=[wanted], timeout_ms=10_000)
        response = self.call(ApiKey.DELETE_RECORDS, version, request, DeleteRecordsResponse)
        each = response.topics[0].partitions[0]
        return each.error_code, each.low_watermark

    def _own(self, epoch: int) -> int:
        return epoch if epoch < OWN // 2 else self.epoch + epoch - OWN

    def _relative(self, epoch: int) -> int:
        return epoch if epoch < 0 else OWN + epoch - self.epoch
