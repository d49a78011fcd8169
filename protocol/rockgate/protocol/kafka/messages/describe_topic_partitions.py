"""DescribeTopicPartitions: topics and partitions page by page, for admin clients.

An empty list asks for all topics. A response ends after `response_partition_limit` partitions with
a cursor for the next page. Topics and partitions may be given encoded, see `encode_part`.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Encoded,
    Int16,
    Int32,
    Nullable,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class TopicRequest:
    """A topic by name."""

    name: str = field(String)


@struct
class Cursor:
    """The first topic and partition of a page."""

    topic_name: str = field(String)
    partition_index: int = field(Int32)


@message(key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """Which topics, and the cursor to continue from."""

    topics: list[TopicRequest] = field(Array(TopicRequest))
    response_partition_limit: int = field(Int32, default=2000)
    cursor: Cursor | None = field(Nullable(Cursor), default=None)


@struct
class DescribeTopicPartitionsResponsePartition:
    """The leader and the replicas of a partition."""

    error_code: int = field(Int16)
    partition_index: int = field(Int32)
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32, default=-1)
    replica_nodes: list[int] = field(Array(Int32))
    isr_nodes: list[int] = field(Array(Int32))
    eligible_leader_replicas: list[int] | None = field(Nullable(Array(Int32)), default=None)
    last_known_elr: list[int] | None = field(Nullable(Array(Int32)), default=None)
    offline_replicas: list[int] = field(Array(Int32))


@struct
class DescribeTopicPartitionsResponseTopic:
    """A topic and some of its partitions."""

    error_code: int = field(Int16)
    name: str | None = field(NullableString)
    topic_id: bytes = field(Uuid)
    is_internal: bool = field(Bool)
    partitions: list[DescribeTopicPartitionsResponsePartition | Encoded] = field(
        Array(DescribeTopicPartitionsResponsePartition, encoded=True)
    )
    topic_authorized_operations: int = field(Int32, default=-(1 << 31))


@message(key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """One page."""

    throttle_time_ms: int = field(Int32)
    topics: list[DescribeTopicPartitionsResponseTopic | Encoded] = field(
        Array(DescribeTopicPartitionsResponseTopic, encoded=True)
    )
    next_cursor: Cursor | None = field(Nullable(Cursor), default=None)
