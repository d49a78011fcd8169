"""AlterPartitionReassignments: move partitions to other brokers, or stop moving them."""

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
    field,
    message,
    struct,
)


@struct
class ReassignablePartition:
    """The new replicas of a partition; null cancels a reassignment under way."""

    partition_index: int = field(Int32)
    replicas: list[int] | None = field(Nullable(Array(Int32)), default=None)


@struct
class ReassignableTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[ReassignablePartition] = field(Array(ReassignablePartition))


@message(key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """Partitions to move."""

    timeout_ms: int = field(Int32, default=60000)
    allow_replication_factor_change: bool = field(Bool, "1+", default=True)
    topics: list[ReassignableTopic] = field(Array(ReassignableTopic))


@struct
class ReassignablePartitionResponse:
    """Whether one partition moves."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)


@struct
class ReassignableTopicResponse:
    """The outcome for one topic."""

    name: str = field(String)
    partitions: list[ReassignablePartitionResponse] = field(Array(ReassignablePartitionResponse))


@message(key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """The outcome for each partition."""

    throttle_time_ms: int = field(Int32)
    allow_replication_factor_change: bool = field(Bool, "1+", default=True)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    responses: list[ReassignableTopicResponse | Encoded] = field(
        Array(ReassignableTopicResponse, encoded=True)
    )
