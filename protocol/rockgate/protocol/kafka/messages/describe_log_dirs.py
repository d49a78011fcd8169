"""DescribeLogDirs: the size of each partition on disk.

Null topics ask for all. v3 has an error for the whole response, v4 the size of the disk, v5 whether
a directory takes no new replicas.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    Nullable,
    String,
    field,
    message,
    struct,
)


@struct
class DescribableLogDirTopic:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(key=ApiKey.DESCRIBE_LOG_DIRS, versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    """What to measure."""

    topics: list[DescribableLogDirTopic] | None = field(Nullable(Array(DescribableLogDirTopic)))


@struct
class DescribeLogDirsPartition:
    """The size of one replica."""

    partition_index: int = field(Int32)
    partition_size: int = field(Int64)
    offset_lag: int = field(Int64)
    is_future_key: bool = field(Bool)


@struct
class DescribeLogDirsTopic:
    """The sizes of one topic."""

    name: str = field(String)
    partitions: list[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition))


@struct
class DescribeLogDirsResult:
    """One log directory and its partitions."""

    error_code: int = field(Int16)
    log_dir: str = field(String)
    topics: list[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic))
    total_bytes: int = field(Int64, "4+", default=-1)
    usable_bytes: int = field(Int64, "4+", default=-1)
    is_cordoned: bool = field(Bool, "5+")


@message(key=ApiKey.DESCRIBE_LOG_DIRS, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """The directories of this broker."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, "3+")
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult))
