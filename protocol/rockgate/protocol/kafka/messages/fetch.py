"""Fetch: read record batches from an offset on.

v7 adds sessions: after the first, a request names only changed partitions. v9 and v12 add leader
epochs, v11 the client's rack, v13 uses topic ids, v16 names new leaders. Replica fields are for
followers: a consumer leaves them at their defaults. Records may be null by the schema; brokers have
always sent empty ones, and librdkafka relies on it.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    NullableRecords,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class ReplicaState:
    """The follower that fetches; a consumer is -1."""

    replica_id: int = field(Int32, default=-1)
    replica_epoch: int = field(Int64, default=-1)


@struct
class FetchPartition:
    """From where and how much to read of one partition."""

    partition: int = field(Int32)
    current_leader_epoch: int = field(Int32, "9+", default=-1)
    fetch_offset: int = field(Int64)
    last_fetched_epoch: int = field(Int32, "12+", default=-1)
    log_start_offset: int = field(Int64, "5+", default=-1)
    partition_max_bytes: int = field(Int32)
    replica_directory_id: bytes = field(Uuid, "17+", tag=0)
    high_watermark: int = field(Int64, "18+", tag=1, default=(1 << 63) - 1)


@struct
class FetchTopic:
    """What to read of one topic."""

    topic: str = field(String, "4-12")
    topic_id: bytes = field(Uuid, "13+")
    partitions: list[FetchPartition] = field(Array(FetchPartition))


@struct
class ForgottenTopic:
    """Partitions to drop from the session."""

    topic: str = field(String, "7-12")
    topic_id: bytes = field(Uuid, "13+")
    partitions: list[int] = field(Array(Int32))


@message(key=ApiKey.FETCH, versions="4-18", flexible="12+")
class FetchRequest:
    """What to read, and how long to wait for `min_bytes` of it."""

    cluster_id: str | None = field(NullableString, "12+", tag=0, default=None)
    replica_id: int = field(Int32, "4-14", default=-1)
    replica_state: ReplicaState = field(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field(Int32)
    min_bytes: int = field(Int32)
    max_bytes: int = field(Int32, default=0x7FFFFFFF)
    isolation_level: int = field(Int8)
    session_id: int = field(Int32, "7+")
    session_epoch: int = field(Int32, "7+", default=-1)
    topics: list[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic), "7+")
    rack_id: str = field(String, "11+")


@struct
class EpochEndOffset:
    """Where the logs of leader and follower diverge."""

    epoch: int = field(Int32, default=-1)
    end_offset: int = field(Int64, default=-1)


@struct
class LeaderIdAndEpoch:
    """The current leader of the partition; -1 if not known."""

    leader_id: int = field(Int32, default=-1)
    leader_epoch: int = field(Int32, default=-1)


@struct
class SnapshotId:
    """The snapshot that a follower must fetch first."""

    end_offset: int = field(Int64, default=-1)
    epoch: int = field(Int32, default=-1)


@struct
class AbortedTransaction:
    """A transaction to skip, from its first offset to its marker."""

    producer_id: int = field(Int64)
    first_offset: int = field(Int64)


@struct
class PartitionData:
    """The batches of one partition and the bounds of its log."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    high_watermark: int = field(Int64)
    last_stable_offset: int = field(Int64, default=-1)
    log_start_offset: int = field(Int64, "5+", default=-1)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = field(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(
        Nullable(Array(AbortedTransaction))
    )
    preferred_read_replica: int = field(Int32, "11+", default=-1)
    records: bytes | memoryview | None = field(NullableRecords)


@struct
class FetchableTopicResponse:
    """What was read of one topic."""

    topic: str = field(String, "4-12")
    topic_id: bytes = field(Uuid, "13+")
    partitions: list[PartitionData] = field(Array(PartitionData))


@struct
class NodeEndpoint:
    """The address of a leader that a partition names."""

    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(NullableString, default=None)


@message(key=ApiKey.FETCH, versions="4-18", flexible="12+")
class FetchResponse:
    """What was read; in a session only the partitions that changed."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, "7+")
    session_id: int = field(Int32, "7+")
    responses: list[FetchableTopicResponse] = field(Array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "16+", tag=0)
