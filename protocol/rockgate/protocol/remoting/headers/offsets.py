"""Headers of bounds and progress: minimum, maximum, by time; committed, reset, compared."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64


class QueueHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31 and 32: one queue."""

    topic: str
    queue_id: Int32


class MaxOffsetHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """30: the end of one queue."""

    topic: str
    queue_id: Int32
    committed: bool = True


class SearchOffsetHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """29: the offset of a time in one queue; the last message of that time for UPPER."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str = "LOWER"


class OffsetAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An offset."""

    offset: Int64


class TimestampAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A time in milliseconds."""

    timestamp: Int64


class QueryConsumerOffsetHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """14: the committed offset of a group in one queue."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


class UpdateConsumerOffsetHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """15: commit the offset of a group in one queue."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64


class ConsumeStatsHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """208: the lag of a group, in one topic or in all."""

    consumer_group: str
    topic: str | None = None


class BrokerConsumeStatsHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """317: the lag of all groups, optionally in ordered topics only."""

    is_order: bool = False


class ConsumeTimeSpanHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """303: the consume time span of a group."""

    topic: str
    group: str


class ResetOffsetHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """222 and 220: reset a group to a time or an offset."""

    topic: str
    group: str
    queue_id: Int32 = -1
    offset: Int64 | None = None
    timestamp: Int64 = -1
    is_force: bool = False


class CloneOffsetsHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """314: clone the offsets of a group to another, in one topic or in all that it reads."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class ConsumerStatusHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """223 and 221: the offsets that members of a group report; of all members, or of one."""

    topic: str
    group: str
    client_addr: str | None = None


class AllGroupsHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """201: all groups, or one page of them."""

    group_seq: Int32 = 0
    max_group_num: Int32 = 0


class GroupHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """343 and 352: one group."""

    group: str


class SubscriptionByConsumerHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """345: the subscription of a group to a topic."""

    group: str
    topic: str


class CorrectionOffsetHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """308: the lowest offsets of a topic's groups, without some of them, beside one group's."""

    topic: str
    compare_group: str
    filter_groups: str | None = None


class GroupForbiddenHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """353: whether a group may read a topic; with `readable` it is set first."""

    group: str
    topic: str
    readable: bool | None = None
