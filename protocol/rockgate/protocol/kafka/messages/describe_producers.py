"""DescribeProducers: the producers that have recently written to a partition."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Encoded,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class TopicRequest:
    """Partitions of one topic."""

    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@message(key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersRequest:
    """The partitions to describe."""

    topics: list[TopicRequest] = field(Array(TopicRequest))


@struct
class ProducerState:
    """The state of one producer in the partition."""

    producer_id: int = field(Int64)
    producer_epoch: int = field(Int32)
    last_sequence: int = field(Int32, default=-1)
    last_timestamp: int = field(Int64, default=-1)
    coordinator_epoch: int = field(Int32)
    current_txn_start_offset: int = field(Int64, default=-1)


@struct
class PartitionResponse:
    """The producers of one partition."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    active_producers: list[ProducerState] = field(Array(ProducerState))


@struct
class TopicResponse:
    """The producers of one topic."""

    name: str = field(String)
    partitions: list[PartitionResponse] = field(Array(PartitionResponse))


@message(key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersResponse:
    """The producers found."""

    throttle_time_ms: int = field(Int32)
    topics: list[TopicResponse | Encoded] = field(Array(TopicResponse, encoded=True))
