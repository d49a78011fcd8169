"""SyncGroup: the leader sends the assignments of a classic group, the others fetch theirs.

v3 adds static members, v5 checks the member's protocol.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bytes,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class SyncGroupRequestAssignment:
    """The assignment of one member."""

    member_id: str = field(String)
    assignment: bytes = field(Bytes)


@message(key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """A member asks for its assignment; the leader sends all of them."""

    group_id: str = field(String)
    generation_id: int = field(Int32)
    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString, "3+", default=None)
    protocol_type: str | None = field(NullableString, "5+", default=None)
    protocol_name: str | None = field(NullableString, "5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment))


@message(key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The member's own assignment, opaque to the server."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)
    protocol_type: str | None = field(NullableString, "5+", default=None)
    protocol_name: str | None = field(NullableString, "5+", default=None)
    assignment: bytes = field(Bytes)
