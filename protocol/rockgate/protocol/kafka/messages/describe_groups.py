"""DescribeGroups: state and members of classic groups.

v3 can ask for authorized operations, v4 adds instance ids. Up to v5 a group that does not exist is
"Dead" without an error; v6 answers GROUP_ID_NOT_FOUND.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Bytes,
    Int16,
    Int32,
    NullableString,
    SlicedArray,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """The groups to describe."""

    groups: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Bool, "3+")


@struct
class DescribedGroupMember:
    """A member, its subscription and its assignment."""

    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString, "4+", default=None)
    client_id: str = field(String)
    client_host: str = field(String)
    member_metadata: bytes = field(Bytes)
    member_assignment: bytes = field(Bytes)


@struct
class DescribedGroup:
    """One group."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, "6+", default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    protocol_type: str = field(String)
    protocol_data: str = field(String)
    members: list[DescribedGroupMember] = field(SlicedArray(DescribedGroupMember))
    authorized_operations: int = field(Int32, "3+", default=-(1 << 31))


@message(key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """The groups asked for."""

    throttle_time_ms: int = field(Int32, "1+")
    groups: list[DescribedGroup] = field(SlicedArray(DescribedGroup))
