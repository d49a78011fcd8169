"""DescribeProducers: v0.

Behaviour
- The idempotent producers that a partition remembers, each with its epoch, its last sequence, when
  it last wrote, and where its open transaction began, if it has one.
- An unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION; a name that no topic can have is
  INVALID_TOPIC_EXCEPTION.

Departs from Kafka
- The timestamp is the server's time when the batch arrived, not that of its last record.
- A partition that is named twice is listed once.
- The coordinator epoch is never set: it is not stored.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.produce.producers import Producer, Producers
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.dedup import merged
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, TopicView, has_partition
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

NO_COORDINATOR = NO_OFFSET = -1


class DescribeProducers:
    """Describes the producers of partitions."""

    def __init__(
        self, *, catalog: TopicCatalog, producers: Producers, stable_offsets: StableOffsets
    ) -> None:
        self._catalog = catalog
        self._producers = producers
        self._stable_offsets = stable_offsets

    def handle(
        self, request: DescribeProducersRequest, call: Call
    ) -> DescribeProducersResponse | Awaitable[DescribeProducersResponse]:
        """Describe each partition, in slices if there are many."""
        return in_slices(self._steps(request))

    def _steps(self, request: DescribeProducersRequest) -> Steps[DescribeProducersResponse]:
        response = DescribeProducersResponse(topics=[])
        for name, indexes in _merged(request).items():
            partitions: list[PartitionResponse] = []
            response.topics.append(TopicResponse(name=name, partitions=partitions))
            for index in indexes:
                # A topic may be deleted between two slices: it is looked up for each.
                partitions.append(self._partition(name, self._catalog.find(name), index))
                yield None
        return response

    def refuse(
        self, request: DescribeProducersRequest, code: ErrorCode
    ) -> DescribeProducersResponse:
        """Reject every partition with the same error."""
        return DescribeProducersResponse(
            topics=[
                TopicResponse(name=name, partitions=[_refused(index, code) for index in indexes])
                for name, indexes in _merged(request).items()
            ]
        )

    def _partition(self, name: str, topic: TopicView | None, index: int) -> PartitionResponse:
        if topic is None and not names.is_legal(name):
            return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        if not has_partition(topic, index):
            return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                _state(each, self._stable_offsets.first_of(topic.id, index, each.producer_id))
                for each in self._producers.of(topic.id, index)
            ],
        )


def _merged(request: DescribeProducersRequest) -> dict[str, list[int]]:
    return merged((each.name, each.partition_indexes) for each in request.topics)


def _state(producer: Producer, transaction_start: int | None) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_ms,
        coordinator_epoch=NO_COORDINATOR,
        current_txn_start_offset=NO_OFFSET if transaction_start is None else transaction_start,
    )


def _refused(index: int, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=code.meaning)
