"""Headers of pop: messages become invisible for a while, and queues have no owner."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64


class PopHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """200050: messages of any queue, invisible to others for a time."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    init_mode: Int32
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None
    bname: str | None = None


class PoppedHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """When and for how long the messages of the body became invisible."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """200051: acknowledge one message."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    bname: str | None = None


class ChangeInvisibleHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """200053: change the invisible time of one message."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    suspend: bool = False
    bname: str | None = None


class ChangedInvisibleHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """When it became invisible, and for how long."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class PeekHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """200052: peek at messages without popping them."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    bname: str | None = None


class NotificationHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """200054: wait until there is something to pop."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool = False
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None
    bname: str | None = None


class NotifiedHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether there is, and whether too many requests are waiting."""

    has_msg: bool
    polling_full: bool = False


class PollingInfoHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """200055: how many pops are waiting."""

    consumer_group: str
    topic: str
    queue_id: Int32
    bname: str | None = None


class PollingInfoAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many pops are waiting."""

    polling_num: Int32
