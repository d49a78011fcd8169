"""ShareGroupHeartbeat: join, stay in and leave a share group (KIP-932).

As in KIP-848 a member sends what has changed; epoch 0 joins and -1 leaves. v0 was early access and
was removed.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Nullable,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@message(key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """The member, and what changed since its last heartbeat."""

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    rack_id: str | None = field(NullableString, default=None)
    subscribed_topic_names: list[str] | None = field(Nullable(Array(String)), default=None)


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@struct
class Assignment:
    """The member's whole assignment."""

    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@message(key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The member's epoch, and a new assignment if there is one."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    member_id: str | None = field(NullableString, default=None)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    assignment: Assignment | None = field(Nullable(Assignment), default=None)
