"""OffsetForLeaderEpoch: where an epoch ended, so that a consumer can detect lost data.

v3 distinguishes replicas from consumers, which are -1; -2 is an older client.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
    struct,
)


@struct
class OffsetForLeaderPartition:
    """The epoch to look up in one partition."""

    partition: int = field(Int32)
    current_leader_epoch: int = field(Int32, default=-1)
    leader_epoch: int = field(Int32)


@struct
class OffsetForLeaderTopic:
    """The epochs to look up in one topic."""

    topic: str = field(String)
    partitions: list[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition))


@message(key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """The epochs to look up."""

    replica_id: int = field(Int32, "3+", default=-2)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic))


@struct
class EpochEndOffset:
    """The largest epoch not above the one asked for, and where it ends."""

    error_code: int = field(Int16)
    partition: int = field(Int32)
    leader_epoch: int = field(Int32, default=-1)
    end_offset: int = field(Int64, default=-1)


@struct
class OffsetForLeaderTopicResult:
    """What was found in one topic."""

    topic: str = field(String)
    partitions: list[EpochEndOffset] = field(Array(EpochEndOffset))


@message(key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """What was found."""

    throttle_time_ms: int = field(Int32)
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult))
