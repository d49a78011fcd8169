"""TxnOffsetCommit: commit a group's offsets as part of a transaction.

v3 fences by group member, v5 adds the offsets to the transaction by itself (KIP-890).
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class TxnOffsetCommitRequestPartition:
    """One offset to commit."""

    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, "2+", default=-1)
    committed_metadata: str | None = field(NullableString)


@struct
class TxnOffsetCommitRequestTopic:
    """The offsets to commit for one topic."""

    name: str = field(String)
    partitions: list[TxnOffsetCommitRequestPartition] = field(
        Array(TxnOffsetCommitRequestPartition)
    )


@message(key=ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    """Offsets that take effect when the transaction commits."""

    transactional_id: str = field(String)
    group_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    generation_id: int = field(Int32, "3+", default=-1)
    member_id: str = field(String, "3+")
    group_instance_id: str | None = field(NullableString, "3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field(Array(TxnOffsetCommitRequestTopic))


@struct
class TxnOffsetCommitResponsePartition:
    """Whether one offset is pending now."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@struct
class TxnOffsetCommitResponseTopic:
    """The outcome for one topic."""

    name: str = field(String)
    partitions: list[TxnOffsetCommitResponsePartition] = field(
        Array(TxnOffsetCommitResponsePartition)
    )


@message(key=ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """The outcome for every partition."""

    throttle_time_ms: int = field(Int32)
    topics: list[TxnOffsetCommitResponseTopic] = field(Array(TxnOffsetCommitResponseTopic))
