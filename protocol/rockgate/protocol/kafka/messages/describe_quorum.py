"""DescribeQuorum: the state of the metadata quorum.

v1 adds when replicas last fetched and caught up, v2 their directories and addresses.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uint16,
    Uuid,
    field,
    message,
    struct,
)


@struct
class PartitionData:
    """A partition of the metadata log."""

    partition_index: int = field(Int32)


@struct
class TopicData:
    """Partitions of one topic."""

    topic_name: str = field(String)
    partitions: list[PartitionData] = field(Array(PartitionData))


@message(key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """What to describe: the metadata log."""

    topics: list[TopicData] = field(Array(TopicData))


@struct
class ReplicaState:
    """The progress of one replica."""

    replica_id: int = field(Int32)
    replica_directory_id: bytes = field(Uuid, "2+")
    log_end_offset: int = field(Int64)
    last_fetch_timestamp: int = field(Int64, "1+", default=-1)
    last_caught_up_timestamp: int = field(Int64, "1+", default=-1)


@struct
class PartitionQuorum:
    """The voters and observers of one partition."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, "2+")
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)
    high_watermark: int = field(Int64)
    current_voters: list[ReplicaState] = field(Array(ReplicaState))
    observers: list[ReplicaState] = field(Array(ReplicaState))


@struct
class TopicQuorum:
    """The quorums of one topic."""

    topic_name: str = field(String)
    partitions: list[PartitionQuorum] = field(Array(PartitionQuorum))


@struct
class Listener:
    """An address of a node."""

    name: str = field(String)
    host: str = field(String)
    port: int = field(Uint16)


@struct
class Node:
    """The addresses of a node."""

    node_id: int = field(Int32)
    listeners: list[Listener] = field(Array(Listener))


@message(key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """The quorum as this broker sees it."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, "2+")
    topics: list[TopicQuorum] = field(Array(TopicQuorum))
    nodes: list[Node] = field(Array(Node), "2+")
