"""Settings of topics: defaults of new topics, and limits."""

from dataclasses import dataclass, field
from typing import Literal

TimestampType = Literal["CreateTime", "LogAppendTime"]
CompressionType = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """Defaults of new topics, and limits."""

    partitions: int = field(default=4, metadata={"minimum": 1, "maximum": 100_000})
    """Default number of partitions of a topic."""
    partitions_max: int = field(default=200_000, metadata={"minimum": 1, "maximum": 100_000_000})
    """Maximum number of partitions over all topics; creating more fails."""
    auto_create: bool = True
    """Create a topic when a client requests the metadata of an unknown one."""
    message_bytes_max: int = field(default=1_048_588, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """Maximum size of a record batch; the default of `max.message.bytes`."""
    timestamp_type: TimestampType = "CreateTime"
    """Timestamp of records; the default of `message.timestamp.type`."""
    timestamp_after_ms_max: int = field(
        default=3_600_000, metadata={"minimum": 0, "maximum": LONG_MAX}
    )
    """How far a record's timestamp may be ahead of the clock; the default of
    `message.timestamp.after.max.ms`."""
    timestamp_before_ms_max: int = field(
        default=LONG_MAX, metadata={"minimum": 0, "maximum": LONG_MAX}
    )
    """How far a record's timestamp may be behind the clock; the default of
    `message.timestamp.before.max.ms`."""
    compression_type: CompressionType = "producer"
    """Compression of stored batches; the default of `compression.type`."""
    system_topics_listed: bool = False
    """List RocketMQ's system topics to Kafka clients; by name they can always be found."""
    replication_strict: bool = False
    """Reject topics with a replication factor above 1; otherwise they are created with 1."""
