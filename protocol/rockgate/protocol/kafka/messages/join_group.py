"""JoinGroup: enter a classic group, or rejoin it for a rebalance.

v1 gives the rebalance its own timeout. From v4 a first join without a member id is answered with
MEMBER_ID_REQUIRED and an id to retry with. v5 adds static members, v7 names the protocol type, v8
carries a reason, v9 lets a static leader skip the assignment.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Bytes,
    Int16,
    Int32,
    Nullable,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class JoinGroupRequestProtocol:
    """An assignor that the member supports, with its subscription."""

    name: str = field(String)
    metadata: bytes = field(Bytes)


@message(key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """A member and the assignors that it supports."""

    group_id: str = field(String)
    session_timeout_ms: int = field(Int32)
    rebalance_timeout_ms: int = field(Int32, "1+", default=-1)
    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString, "5+", default=None)
    protocol_type: str = field(String)
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol))
    reason: str | None = field(NullableString, "8+", default=None)


@struct
class JoinGroupResponseMember:
    """A member, for the leader to assign to."""

    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString, "5+", default=None)
    metadata: bytes = field(Bytes)


@message(key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The new generation; only the leader gets the members."""

    throttle_time_ms: int = field(Int32, "2+")
    error_code: int = field(Int16)
    generation_id: int = field(Int32, default=-1)
    protocol_type: str | None = field(NullableString, "7+", default=None)
    protocol_name: str | None = field(Nullable(String, "7+"))
    leader: str = field(String)
    skip_assignment: bool = field(Bool, "9+")
    member_id: str = field(String)
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember))
