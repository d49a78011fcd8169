"""ShareFetch: acquire records for a member of a share group, and acknowledge others (KIP-932).

Acknowledge types are one for each offset, or one for the whole batch: 0 a gap, 1 accept, 2 release,
3 reject and, from v2, 4 renew (KIP-1222). v2 can hold to `max_records` exactly (KIP-1206). Session
epoch 0 opens a session, -1 closes it.
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
    Records,
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
class FetchPartition:
    """A partition to read, with acknowledgements for it."""

    partition_index: int = field(Int32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


@struct
class FetchTopic:
    """What to read of one topic."""

    topic_id: bytes = field(Uuid)
    partitions: list[FetchPartition] = field(Array(FetchPartition))


@struct
class ForgottenTopic:
    """Partitions to drop from the session."""

    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(key=ApiKey.SHARE_FETCH, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """What to read and what to acknowledge."""

    group_id: str | None = field(NullableString, default=None)
    member_id: str | None = field(NullableString)
    share_session_epoch: int = field(Int32)
    max_wait_ms: int = field(Int32)
    min_bytes: int = field(Int32)
    max_bytes: int = field(Int32, default=0x7FFFFFFF)
    max_records: int = field(Int32)
    batch_size: int = field(Int32)
    share_acquire_mode: int = field(Int8, "2+")
    is_renew_ack: bool = field(Bool, "2+")
    topics: list[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic))


@struct
class LeaderIdAndEpoch:
    """The current leader of the partition."""

    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)


@struct
class AcquiredRecords:
    """A range of offsets that this member holds until the lock times out."""

    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    delivery_count: int = field(Int16)


@struct
class PartitionData:
    """The batches of one partition, and which of their records were acquired."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    acknowledge_error_code: int = field(Int16)
    acknowledge_error_message: str | None = field(NullableString, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)
    records: bytes | memoryview = field(Records)
    acquired_records: list[AcquiredRecords] = field(Array(AcquiredRecords))


@struct
class ShareFetchableTopicResponse:
    """What was read of one topic."""

    topic_id: bytes = field(Uuid)
    partitions: list[PartitionData] = field(Array(PartitionData))


@struct
class NodeEndpoint:
    """The address of a leader that a partition names."""

    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(NullableString, default=None)


@message(key=ApiKey.SHARE_FETCH, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """What was read."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    acquisition_lock_timeout_ms: int = field(Int32)
    responses: list[ShareFetchableTopicResponse] = field(Array(ShareFetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint))
