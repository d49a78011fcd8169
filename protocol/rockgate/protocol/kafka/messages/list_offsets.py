"""ListOffsets: offsets by time, and the ends of a log.

A timestamp below zero asks for a special offset: -1 the end, -2 the start, -3 (v7) the largest
timestamp, -4 (v8) the earliest local offset, -5 (v9) the last tiered one, -6 (v11) the earliest one
waiting to be tiered. If nothing is found the offset is -1, without an error.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
    struct,
)


@struct
class ListOffsetsPartition:
    """The timestamp or special offset to find in one partition."""

    partition_index: int = field(Int32)
    current_leader_epoch: int = field(Int32, "4+", default=-1)
    timestamp: int = field(Int64)


@struct
class ListOffsetsTopic:
    """What to find in one topic."""

    name: str = field(String)
    partitions: list[ListOffsetsPartition] = field(Array(ListOffsetsPartition))


@message(key=ApiKey.LIST_OFFSETS, versions="1-11", flexible="6+")
class ListOffsetsRequest:
    """Times to look up; `isolation_level` 1 ends at the last stable offset."""

    replica_id: int = field(Int32)
    isolation_level: int = field(Int8, "2+")
    topics: list[ListOffsetsTopic] = field(Array(ListOffsetsTopic))
    timeout_ms: int = field(Int32, "10+")


@struct
class ListOffsetsPartitionResponse:
    """The first record at or after the time asked for."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    timestamp: int = field(Int64, default=-1)
    offset: int = field(Int64, default=-1)
    leader_epoch: int = field(Int32, "4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    """What was found in one topic."""

    name: str = field(String)
    partitions: list[ListOffsetsPartitionResponse] = field(Array(ListOffsetsPartitionResponse))


@message(key=ApiKey.LIST_OFFSETS, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    """What was found."""

    throttle_time_ms: int = field(Int32, "2+")
    topics: list[ListOffsetsTopicResponse] = field(Array(ListOffsetsTopicResponse))
