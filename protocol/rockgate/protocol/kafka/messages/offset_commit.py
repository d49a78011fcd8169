"""OffsetCommit: store how far a group has read.

A generation of -1 with an empty member is a simple commit, from outside the group. v5 drops the
retention time, v6 adds leader epochs, v7 static members, v9 supports KIP-848 groups (the generation
is then the member's epoch), v10 uses topic ids.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
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
class OffsetCommitRequestPartition:
    """One offset to commit, with the client's own metadata."""

    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, "6+", default=-1)
    committed_metadata: str | None = field(NullableString)


@struct
class OffsetCommitRequestTopic:
    """The offsets to commit for one topic."""

    name: str = field(String, "2-9")
    topic_id: bytes = field(Uuid, "10+")
    partitions: list[OffsetCommitRequestPartition] = field(Array(OffsetCommitRequestPartition))


@message(key=ApiKey.OFFSET_COMMIT, versions="2-10", flexible="8+")
class OffsetCommitRequest:
    """Offsets to commit, and the member that commits them."""

    group_id: str = field(String)
    generation_id_or_member_epoch: int = field(Int32, default=-1)
    member_id: str = field(String)
    group_instance_id: str | None = field(NullableString, "7+", default=None)
    retention_time_ms: int = field(Int64, "2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic))


@struct
class OffsetCommitResponsePartition:
    """Whether one offset was committed."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@struct
class OffsetCommitResponseTopic:
    """The outcome for one topic."""

    name: str = field(String, "2-9")
    topic_id: bytes = field(Uuid, "10+")
    partitions: list[OffsetCommitResponsePartition] = field(Array(OffsetCommitResponsePartition))


@message(key=ApiKey.OFFSET_COMMIT, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    """The outcome for every partition."""

    throttle_time_ms: int = field(Int32, "3+")
    topics: list[OffsetCommitResponseTopic] = field(Array(OffsetCommitResponseTopic))
