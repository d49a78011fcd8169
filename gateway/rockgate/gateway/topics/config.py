"""Settings of topics: what one gets when its creator does not say."""

from dataclasses import dataclass, field
from typing import Literal

TimestampType = Literal["CreateTime", "LogAppendTime"]
CompressionType = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """What a topic gets when its creator does not say."""

    partitions: int = field(default=4, metadata={"minimum": 1, "maximum": 100_000})
    """Partitions of a topic that is created without a count, by itself or by a client."""
    partitions_max: int = field(default=200_000, metadata={"minimum": 1, "maximum": 100_000_000})
    """Partitions of all topics together; what would be one more is refused."""
    auto_create: bool = True
    """Whether asking for the metadata of an unknown topic creates it."""
    message_bytes_max: int = field(default=1_048_588, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """Largest record batch that is taken, unless the topic's `max.message.bytes` says otherwise."""
    timestamp_type: TimestampType = "CreateTime"
    """Whose time records carry, unless the topic's `message.timestamp.type` says otherwise."""
    timestamp_after_ms_max: int = field(
        default=3_600_000, metadata={"minimum": 0, "maximum": LONG_MAX}
    )
    """How far ahead a record's time may be, unless `message.timestamp.after.max.ms` says it."""
    timestamp_before_ms_max: int = field(
        default=LONG_MAX, metadata={"minimum": 0, "maximum": LONG_MAX}
    )
    """How far behind a record's time may be, unless `message.timestamp.before.max.ms` says it."""
    compression_type: CompressionType = "producer"
    """How batches are kept, unless the topic's `compression.type` says otherwise."""
    replication_strict: bool = False
    """Whether a topic that asks for more than one replica is refused; else it gets one."""
