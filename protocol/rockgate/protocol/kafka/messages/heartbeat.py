"""Heartbeat: a member of a classic group is alive.

REBALANCE_IN_PROGRESS tells it to join again. v3 adds static members.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
)


@message(key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """The member and its generation."""

    group_id: str = field(String)
    generation_id: int = field(Int32)
    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString, "3+", default=None)


@message(key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """Whether it is still a member of that generation."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)
