"""ShareGroupDescribe: state and members of share groups (KIP-932)."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
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


@message(key=ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
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
    """What a member reads."""

    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@struct
class Member:
    """A member and what it reads."""

    member_id: str = field(String)
    rack_id: str | None = field(NullableString, default=None)
    member_epoch: int = field(Int32)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    assignment: Assignment = field(Assignment)


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


@message(key=ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    """The groups asked for."""

    throttle_time_ms: int = field(Int32)
    groups: list[DescribedGroup] = field(SlicedArray(DescribedGroup))
