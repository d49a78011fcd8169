"""Headers of a pull (11) and a lite pull (361), and of their response."""

from typing import Final

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64

# Bits of a pull's sysFlag.
COMMIT_OFFSET: Final = 1
SUSPEND: Final = 2
SUBSCRIPTION: Final = 4
CLASS_FILTER: Final = 8
LITE: Final = 16


class PullHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What to read of one queue, and how long to wait for it."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64 = 0
    suspend_timeout_millis: Int64 = 0
    subscription: str | None = None
    sub_version: Int64 = 0
    max_msg_bytes: Int32 | None = None
    expression_type: str | None = None
    bname: str | None = None
    proxy_forward_client_id: str | None = None


class PulledHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The offset to continue from, and the queue's bounds."""

    suggest_which_broker_id: Int32 = 0
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None
