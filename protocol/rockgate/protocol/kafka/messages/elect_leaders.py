"""ElectLeaders: trigger leader elections.

From v1 `election_type` is preferred (0) or unclean (1). Null topics mean all.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Encoded,
    Int8,
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
class TopicPartitions:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """Where to elect."""

    election_type: int = field(Int8, "1+")
    topic_partitions: list[TopicPartitions] | None = field(Nullable(Array(TopicPartitions)))
    timeout_ms: int = field(Int32, default=60000)


@struct
class PartitionResult:
    """The outcome for one partition."""

    partition_id: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)


@struct
class ReplicaElectionResult:
    """The outcome for one topic."""

    topic: str = field(String)
    partition_result: list[PartitionResult] = field(Array(PartitionResult))


@message(key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """The outcome of the elections."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, "1+")
    replica_election_results: list[ReplicaElectionResult | Encoded] = field(
        Array(ReplicaElectionResult, encoded=True)
    )
