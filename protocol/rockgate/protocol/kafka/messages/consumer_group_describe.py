"""ConsumerGroupDescribe: state and members of KIP-848 groups.

v1 adds the type of each member: -1 unknown, 0 classic, 1 consumer.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    SlicedArray,
    String,
    Uuid,
    field,
    message,
    struct,
)


@message(key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """The groups to describe."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Bool)


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class Assignment:
    """The assignment of a member, current or target."""

    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@struct
class Member:
    """A member, its current and its target assignment."""

    member_id: str = field(String)
    instance_id: str | None = field(NullableString, default=None)
    rack_id: str | None = field(NullableString, default=None)
    member_epoch: int = field(Int32)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    subscribed_topic_regex: str | None = field(NullableString, default=None)
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    member_type: int = field(Int8, "1+", default=-1)


@struct
class DescribedGroup:
    """One group."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    assignor_name: str = field(String)
    members: list[Member] = field(SlicedArray(Member))
    authorized_operations: int = field(Int32, default=-(1 << 31))


@message(key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """The groups asked for."""

    throttle_time_ms: int = field(Int32)
    groups: list[DescribedGroup] = field(SlicedArray(DescribedGroup))
