"""DeleteShareGroupOffsets: delete an empty share group's offsets of topics."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class DeleteShareGroupOffsetsRequestTopic:
    """A topic whose offsets are deleted."""

    topic_name: str = field(String)


@message(key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """The group and its topics."""

    group_id: str = field(String)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(
        Array(DeleteShareGroupOffsetsRequestTopic)
    )


@struct
class DeleteShareGroupOffsetsResponseTopic:
    """Whether the offsets of one topic were deleted."""

    topic_name: str = field(String)
    topic_id: bytes = field(Uuid)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)


@message(key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(
        Array(DeleteShareGroupOffsetsResponseTopic)
    )
