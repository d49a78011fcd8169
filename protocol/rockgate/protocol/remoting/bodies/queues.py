"""Message queues in bodies, and the values reported for each."""

from typing import Final

import msgspec

from rockgate.protocol.remoting.bodies.clients import SubscriptionData
from rockgate.protocol.remoting.javajson import Keyed


class MessageQueue(msgspec.Struct, frozen=True, kw_only=True, rename="camel", order=True, eq=True):
    """One queue of one topic at one broker."""

    broker_name: str
    queue_id: int
    topic: str


class LockBody(msgspec.Struct, kw_only=True, rename="camel"):
    """41 and 42: queues that one member of a group locks, or unlocks."""

    client_id: str
    consumer_group: str
    mq_set: list[MessageQueue] = []
    only_this_broker: bool = False


class LockedBody(msgspec.Struct, kw_only=True):
    """41's response: the queues that the client has locked."""

    lock_ok_mq_set: list[MessageQueue] = msgspec.field(default=[], name="lockOKMQSet")


class QueueBounds(msgspec.Struct, kw_only=True, rename="camel"):
    """What one queue holds, and when it was last written to."""

    last_update_timestamp: int = 0
    max_offset: int = 0
    min_offset: int = 0


class TopicStats(msgspec.Struct, kw_only=True, rename="camel"):
    """202's response."""

    offset_table: Keyed[MessageQueue, QueueBounds]
    topic_put_tps: float = 0.0


class QueueProgress(msgspec.Struct, kw_only=True, rename="camel"):
    """The offsets of a group in one queue."""

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    pull_offset: int = 0


class ConsumeStats(msgspec.Struct, kw_only=True, rename="camel"):
    """208's response."""

    consume_tps: float = 0.0
    offset_table: Keyed[MessageQueue, QueueProgress]


class ConsumeStatsList(msgspec.Struct, kw_only=True, rename="camel"):
    """317's response: for each group its statistics by topic."""

    broker_addr: str
    consume_stats_list: list[dict[str, list[ConsumeStats]]] = []
    total_diff: int = 0
    total_inflight_diff: int = 0


class QueueUnit(msgspec.Struct, kw_only=True, rename="camel"):
    """One offset of a queue, as its index has it."""

    physic_offset: int
    physic_size: int
    tags_code: int
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = True
    msg: str | None = None


class QueueUnits(msgspec.Struct, kw_only=True, rename="camel"):
    """321's response."""

    subscription_data: SubscriptionData | None = None
    filter_data: str = ""
    queue_data: list[QueueUnit] = []
    max_queue_index: int = 0
    min_queue_index: int = 0


class OffsetTable(msgspec.Struct, kw_only=True, rename="camel"):
    """222's response and 220's body: the offset that each queue was set to."""

    offset_table: Keyed[MessageQueue, int]


class ConsumerStatus(msgspec.Struct, kw_only=True, rename="camel"):
    """221's and 223's response: the offsets of one member, or of several by client id."""

    message_queue_table: Keyed[MessageQueue, int] = msgspec.field(default_factory=Keyed)
    consumer_table: dict[str, Keyed[MessageQueue, int]] = {}


class QueueTimeSpan(msgspec.Struct, kw_only=True, rename="camel"):
    """The consume time span of one queue."""

    message_queue: MessageQueue
    min_time_stamp: int = -1
    max_time_stamp: int = -1
    consume_time_stamp: int = -1
    delay_time: int = 0


class QueueTimeSpans(msgspec.Struct, kw_only=True, rename="camel"):
    """303's response."""

    consume_time_span_set: list[QueueTimeSpan] = []


PULL: Final = "PULL"
POP: Final = "POP"


class QueueAssignment(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """One queue assigned to a client, with the mode, pull or pop."""

    message_queue: MessageQueue
    mode: str = ""
    attachments: dict[str, str] | None = None


class AssignmentBody(msgspec.Struct, kw_only=True, rename="camel"):
    """400: request the queues assigned to this client."""

    client_id: str
    consumer_group: str
    topic: str
    message_model: str = "CLUSTERING"
    strategy_name: str | None = None


class AssignmentAnswer(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """400's response; without a list the assignment does not change."""

    message_queue_assignments: list[QueueAssignment] | None = None


class RequestModeBody(msgspec.Struct, kw_only=True, rename="camel"):
    """401: set whether a group reads a topic by pull or by pop."""

    consumer_group: str
    topic: str
    mode: str
    pop_share_queue_num: int = 0


class CorrectionOffsets(msgspec.Struct, kw_only=True, rename="camel"):
    """308's response: an offset for each queue that a group has read."""

    correction_offsets: Keyed[int, int]


class GroupForbidden(msgspec.Struct, kw_only=True, rename="camel"):
    """353's response."""

    group: str
    topic: str
    readable: bool


class HaStatus(msgspec.Struct, kw_only=True, rename="camel"):
    """907's response: a master, and the slaves that are connected to it."""

    master: bool
    master_commit_log_max_offset: int
    in_sync_slave_nums: int = 0
    ha_connection_info: list[dict[str, object]] = []


class CommittedTable(msgspec.Struct, kw_only=True, rename="camel"):
    """43's response: committed offsets by `topic@group` and queue."""

    offset_table: dict[str, dict[int, int]] = {}
