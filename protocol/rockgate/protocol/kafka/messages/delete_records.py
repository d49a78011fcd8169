"""DeleteRecords: move the start of logs forward."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
    struct,
)


@struct
class DeleteRecordsPartition:
    """The offset to start at; -1 is the high watermark."""

    partition_index: int = field(Int32)
    offset: int = field(Int64)


@struct
class DeleteRecordsTopic:
    """What to delete in one topic."""

    name: str = field(String)
    partitions: list[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition))


@message(key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Partitions to shorten."""

    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic))
    timeout_ms: int = field(Int32)


@struct
class DeleteRecordsPartitionResult:
    """Where the log of one partition starts now."""

    partition_index: int = field(Int32)
    low_watermark: int = field(Int64)
    error_code: int = field(Int16)


@struct
class DeleteRecordsTopicResult:
    """The outcome for one topic."""

    name: str = field(String)
    partitions: list[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult))


@message(key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """The outcome for each partition."""

    throttle_time_ms: int = field(Int32)
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult))
