"""ConsumerGroupHeartbeat: join, stay in and leave a KIP-848 group, by one request.

A member sends what has changed and null for the rest; epoch 0 joins, -1 leaves, -2 leaves for now
as a static member. From v1 the client makes its own member id and may subscribe by regular
expression.
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


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """The member, and what changed since its last heartbeat."""

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    instance_id: str | None = field(NullableString, default=None)
    rack_id: str | None = field(NullableString, default=None)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    subscribed_topic_names: list[str] | None = field(Nullable(Array(String)), default=None)
    subscribed_topic_regex: str | None = field(NullableString, "1+", default=None)
    server_assignor: str | None = field(NullableString, default=None)
    topic_partitions: list[TopicPartitions] | None = field(
        Nullable(Array(TopicPartitions)), default=None
    )


@struct
class Assignment:
    """The member's whole target assignment."""

    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@message(key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and a new assignment if there is one."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    member_id: str | None = field(NullableString, default=None)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    assignment: Assignment | None = field(Nullable(Assignment), default=None)
