"""AlterReplicaLogDirs: move replicas between the log directories of a broker."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Encoded,
    Int16,
    Int32,
    String,
    field,
    message,
    struct,
)


@struct
class AlterReplicaLogDirTopic:
    """Partitions of one topic."""

    name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class AlterReplicaLogDir:
    """A directory and what to put there."""

    path: str = field(String)
    topics: list[AlterReplicaLogDirTopic] = field(Array(AlterReplicaLogDirTopic))


@message(key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """Replicas to move."""

    dirs: list[AlterReplicaLogDir] = field(Array(AlterReplicaLogDir))


@struct
class AlterReplicaLogDirPartitionResult:
    """Whether one partition moves."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@struct
class AlterReplicaLogDirTopicResult:
    """The outcome for one topic."""

    topic_name: str = field(String)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(
        Array(AlterReplicaLogDirPartitionResult)
    )


@message(key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """The outcome for each partition."""

    throttle_time_ms: int = field(Int32)
    results: list[AlterReplicaLogDirTopicResult | Encoded] = field(
        Array(AlterReplicaLogDirTopicResult, encoded=True)
    )
