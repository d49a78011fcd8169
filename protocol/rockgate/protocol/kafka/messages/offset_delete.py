"""OffsetDelete: delete committed offsets of a group.

Refused with GROUP_SUBSCRIBED_TO_TOPIC while a live group reads the topic. Never flexible.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    String,
    field,
    message,
    struct,
)


@struct
class OffsetDeleteRequestPartition:
    """One offset to delete."""

    partition_index: int = field(Int32)


@struct
class OffsetDeleteRequestTopic:
    """The offsets to delete of one topic."""

    name: str = field(String)
    partitions: list[OffsetDeleteRequestPartition] = field(Array(OffsetDeleteRequestPartition))


@message(key=ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteRequest:
    """The group and the offsets to delete."""

    group_id: str = field(String)
    topics: list[OffsetDeleteRequestTopic] = field(Array(OffsetDeleteRequestTopic))


@struct
class OffsetDeleteResponsePartition:
    """Whether one offset was deleted."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@struct
class OffsetDeleteResponseTopic:
    """The outcome for one topic."""

    name: str = field(String)
    partitions: list[OffsetDeleteResponsePartition] = field(Array(OffsetDeleteResponsePartition))


@message(key=ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteResponse:
    """The outcome for each partition."""

    error_code: int = field(Int16)
    throttle_time_ms: int = field(Int32)
    topics: list[OffsetDeleteResponseTopic] = field(Array(OffsetDeleteResponseTopic))
