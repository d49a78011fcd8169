"""Produce: append record batches.

Kafka advertises 0-13 and serves 3-13 (old librdkafka picks its record format by the lowest version
advertised), so that only 3-13 are declared. v7 allows zstd, v8 reports which record was rejected,
v10 names the new leader, v12 adds partitions to the transaction by itself (KIP-890), v13 uses topic
ids.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class PartitionProduceData:
    """The batch for one partition: exactly one, of magic 2."""

    index: int = field(Int32)
    records: bytes | memoryview | None = field(NullableRecords)


@struct
class TopicProduceData:
    """The batches for one topic."""

    name: str = field(String, "3-12")
    topic_id: bytes = field(Uuid, "13+")
    partition_data: list[PartitionProduceData] = field(Array(PartitionProduceData))


@message(key=ApiKey.PRODUCE, versions="3-13", flexible="9+")
class ProduceRequest:
    """Batches for any number of partitions; with `acks` 0 there is no response."""

    transactional_id: str | None = field(NullableString, default=None)
    acks: int = field(Int16)
    timeout_ms: int = field(Int32)
    topic_data: list[TopicProduceData] = field(Array(TopicProduceData))


@struct
class BatchIndexAndErrorMessage:
    """One record that was refused, by its place in the batch."""

    batch_index: int = field(Int32)
    batch_index_error_message: str | None = field(NullableString, default=None)


@struct
class LeaderIdAndEpoch:
    """The current leader of the partition; -1 if not known."""

    leader_id: int = field(Int32, default=-1)
    leader_epoch: int = field(Int32, default=-1)


@struct
class PartitionProduceResponse:
    """Where the batch of one partition begins, or why it was refused."""

    index: int = field(Int32)
    error_code: int = field(Int16)
    base_offset: int = field(Int64)
    log_append_time_ms: int = field(Int64, default=-1)
    log_start_offset: int = field(Int64, "5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = field(Array(BatchIndexAndErrorMessage), "8+")
    error_message: str | None = field(NullableString, "8+", default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "10+", tag=0)


@struct
class TopicProduceResponse:
    """The outcome for one topic."""

    name: str = field(String, "3-12")
    topic_id: bytes = field(Uuid, "13+")
    partition_responses: list[PartitionProduceResponse] = field(Array(PartitionProduceResponse))


@struct
class NodeEndpoint:
    """The address of a leader that a partition names."""

    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(NullableString, default=None)


@message(key=ApiKey.PRODUCE, versions="3-13", flexible="9+")
class ProduceResponse:
    """The outcome for every partition of the request."""

    responses: list[TopicProduceResponse] = field(Array(TopicProduceResponse))
    throttle_time_ms: int = field(Int32)
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "10+", tag=0)
