"""LeaveGroup: members leave a classic group.

From v3 several can leave at once, static ones by instance id alone; v5 carries a reason.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class MemberIdentity:
    """A member that leaves."""

    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString, default=None)
    reason: str | None = field(NullableString, "5+", default=None)


@message(key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """Who leaves: `member_id` up to v2, `members` from v3."""

    group_id: str = field(String)
    member_id: str = field(String, "0-2")
    members: list[MemberIdentity] = field(Array(MemberIdentity), "3+")


@struct
class MemberResponse:
    """Whether one member has left."""

    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString)
    error_code: int = field(Int16)


@message(key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """The outcome, from v3 for each member."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)
    members: list[MemberResponse] = field(Array(MemberResponse), "3+")
