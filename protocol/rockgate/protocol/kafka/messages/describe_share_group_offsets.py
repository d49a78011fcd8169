"""DescribeShareGroupOffsets: the start offsets of share groups.

v1 adds the lag (KIP-1226). Null topics ask for all.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    Nullable,
    NullableString,
    SlicedArray,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class DescribeShareGroupOffsetsRequestTopic:
    """Partitions of one topic."""

    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class DescribeShareGroupOffsetsRequestGroup:
    """One group, and which topics to describe."""

    group_id: str = field(String)
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(
        Nullable(Array(DescribeShareGroupOffsetsRequestTopic))
    )


@message(key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    """The groups to describe."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(
        Array(DescribeShareGroupOffsetsRequestGroup)
    )


@struct
class DescribeShareGroupOffsetsResponsePartition:
    """The first offset not yet acknowledged; -1 before anything was read."""

    partition_index: int = field(Int32)
    start_offset: int = field(Int64)
    leader_epoch: int = field(Int32)
    lag: int = field(Int64, "1+", default=-1)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    """The offsets of one topic."""

    topic_name: str = field(String)
    topic_id: bytes = field(Uuid)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(
        Array(DescribeShareGroupOffsetsResponsePartition)
    )


@struct
class DescribeShareGroupOffsetsResponseGroup:
    """The offsets of one group."""

    group_id: str = field(String)
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(
        SlicedArray(DescribeShareGroupOffsetsResponseTopic)
    )
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)


@message(key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """The groups asked for."""

    throttle_time_ms: int = field(Int32)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(
        SlicedArray(DescribeShareGroupOffsetsResponseGroup)
    )
