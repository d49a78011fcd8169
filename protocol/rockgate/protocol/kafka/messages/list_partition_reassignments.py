"""ListPartitionReassignments: the partitions that are being moved."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
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
class ListPartitionReassignmentsTopics:
    """Partitions of one topic."""

    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@message(key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """The partitions to list; null topics mean all."""

    timeout_ms: int = field(Int32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        Nullable(Array(ListPartitionReassignmentsTopics)), default=None
    )


@struct
class OngoingPartitionReassignment:
    """A partition that is being reassigned."""

    partition_index: int = field(Int32)
    replicas: list[int] = field(Array(Int32))
    adding_replicas: list[int] = field(Array(Int32))
    removing_replicas: list[int] = field(Array(Int32))


@struct
class OngoingTopicReassignment:
    """The reassignments of one topic."""

    name: str = field(String)
    partitions: list[OngoingPartitionReassignment] = field(Array(OngoingPartitionReassignment))


@message(key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """The reassignments under way."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    topics: list[OngoingTopicReassignment] = field(Array(OngoingTopicReassignment))
