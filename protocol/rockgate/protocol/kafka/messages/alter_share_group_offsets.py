"""AlterShareGroupOffsets: move the start offsets of an empty share group."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class AlterShareGroupOffsetsRequestPartition:
    """Where to start in one partition."""

    partition_index: int = field(Int32)
    start_offset: int = field(Int64)


@struct
class AlterShareGroupOffsetsRequestTopic:
    """Where to start in one topic."""

    topic_name: str = field(String)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(
        Array(AlterShareGroupOffsetsRequestPartition)
    )


@message(key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    """The group and its new start offsets."""

    group_id: str = field(String)
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(
        Array(AlterShareGroupOffsetsRequestTopic)
    )


@struct
class AlterShareGroupOffsetsResponsePartition:
    """Whether one start offset was changed."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)


@struct
class AlterShareGroupOffsetsResponseTopic:
    """The outcome for one topic."""

    topic_name: str = field(String)
    topic_id: bytes = field(Uuid)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(
        Array(AlterShareGroupOffsetsResponsePartition)
    )


@message(key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    """The outcome for each partition."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(
        Array(AlterShareGroupOffsetsResponseTopic)
    )
