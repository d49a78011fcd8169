"""ShareAcknowledge: acknowledge records of a share group without fetching more (KIP-932).

Types are those of ShareFetch. v2 can renew the lock and answers how long it holds (KIP-1222).
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class AcknowledgementBatch:
    """The acknowledgement of a range of offsets."""

    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    acknowledge_types: list[int] = field(Array(Int8))


@struct
class AcknowledgePartition:
    """The acknowledgements for one partition."""

    partition_index: int = field(Int32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


@struct
class AcknowledgeTopic:
    """The acknowledgements for one topic."""

    topic_id: bytes = field(Uuid)
    partitions: list[AcknowledgePartition] = field(Array(AcknowledgePartition))


@message(key=ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """What to acknowledge."""

    group_id: str | None = field(NullableString, default=None)
    member_id: str | None = field(NullableString)
    share_session_epoch: int = field(Int32)
    is_renew_ack: bool = field(Bool, "2+")
    topics: list[AcknowledgeTopic] = field(Array(AcknowledgeTopic))


@struct
class LeaderIdAndEpoch:
    """The current leader of the partition."""

    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)


@struct
class PartitionData:
    """Whether the acknowledgements for one partition were accepted."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse:
    """The outcome for one topic."""

    topic_id: bytes = field(Uuid)
    partitions: list[PartitionData] = field(Array(PartitionData))


@struct
class NodeEndpoint:
    """The address of a leader that a partition names."""

    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(NullableString, default=None)


@message(key=ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """The outcome for each partition."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    acquisition_lock_timeout_ms: int = field(Int32, "2+")
    responses: list[ShareAcknowledgeTopicResponse] = field(Array(ShareAcknowledgeTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint))
