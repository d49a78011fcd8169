"""OffsetFetch: how far a group has read.

Null topics ask for all of them (v2). v7 can require that no transaction is pending, v8 asks for
several groups at once and drops the single-group fields, v9 supports KIP-848 members, v10 uses
topic ids. An offset of -1 without an error means that nothing was committed.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Encoded,
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
class OffsetFetchRequestTopic:
    """Partitions of one topic, up to v7."""

    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@struct
class OffsetFetchRequestTopics:
    """Partitions of one topic, from v8."""

    name: str = field(String, "8-9")
    topic_id: bytes = field(Uuid, "10+")
    partition_indexes: list[int] = field(Array(Int32))


@struct
class OffsetFetchRequestGroup:
    """One group, and the member that asks, if it is one."""

    group_id: str = field(String)
    member_id: str | None = field(NullableString, "9+", default=None)
    member_epoch: int = field(Int32, "9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = field(Nullable(Array(OffsetFetchRequestTopics)))


@message(key=ApiKey.OFFSET_FETCH, versions="1-10", flexible="6+")
class OffsetFetchRequest:
    """Whose offsets to fetch: one group up to v7, many from v8."""

    group_id: str = field(String, "1-7")
    topics: list[OffsetFetchRequestTopic] | None = field(
        Nullable(Array(OffsetFetchRequestTopic), "2+"), "1-7"
    )
    groups: list[OffsetFetchRequestGroup] = field(Array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = field(Bool, "7+")


@struct
class OffsetFetchResponsePartition:
    """A committed offset, up to v7."""

    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, "5+", default=-1)
    metadata: str | None = field(NullableString)
    error_code: int = field(Int16)


@struct
class OffsetFetchResponseTopic:
    """The offsets of one topic, up to v7."""

    name: str = field(String)
    partitions: list[OffsetFetchResponsePartition | Encoded] = field(
        Array(OffsetFetchResponsePartition, encoded=True)
    )


@struct
class OffsetFetchResponsePartitions:
    """A committed offset, from v8."""

    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, default=-1)
    metadata: str | None = field(NullableString)
    error_code: int = field(Int16)


@struct
class OffsetFetchResponseTopics:
    """The offsets of one topic, from v8."""

    name: str = field(String, "8-9")
    topic_id: bytes = field(Uuid, "10+")
    partitions: list[OffsetFetchResponsePartitions | Encoded] = field(
        Array(OffsetFetchResponsePartitions, encoded=True)
    )


@struct
class OffsetFetchResponseGroup:
    """The offsets of one group."""

    group_id: str = field(String)
    topics: list[OffsetFetchResponseTopics] = field(SlicedArray(OffsetFetchResponseTopics))
    error_code: int = field(Int16)


@message(key=ApiKey.OFFSET_FETCH, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    """Committed offsets; the single-group fields up to v7, `groups` from v8."""

    throttle_time_ms: int = field(Int32, "3+")
    topics: list[OffsetFetchResponseTopic] = field(SlicedArray(OffsetFetchResponseTopic), "1-7")
    error_code: int = field(Int16, "2-7")
    groups: list[OffsetFetchResponseGroup] = field(SlicedArray(OffsetFetchResponseGroup), "8+")
