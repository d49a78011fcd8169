"""StreamsGroupHeartbeat: join, stay in and leave a KIP-1071 group, by one request.

A member sends what has changed and null for the rest; epoch 0 joins and brings the topology, -1
leaves. The answer has the tasks of the member, what is wrong with the group, and on which host the
partitions of each member are.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    NullableString,
    String,
    Uint16,
    field,
    message,
    struct,
)


@struct
class KeyValue:
    """A config, or a tag of a client."""

    key: str = field(String)
    value: str = field(String)


@struct
class TopicInfo:
    """An internal topic of a topology."""

    name: str = field(String)
    partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    topic_configs: list[KeyValue] = field(Array(KeyValue))


@struct
class CopartitionGroup:
    """Source topics that need the same number of partitions, by their places in the lists."""

    source_topics: list[int] = field(Array(Int16))
    source_topic_regex: list[int] = field(Array(Int16))
    repartition_source_topics: list[int] = field(Array(Int16))


@struct
class Subtopology:
    """A connected part of a topology."""

    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    source_topic_regex: list[str] = field(Array(String))
    state_changelog_topics: list[TopicInfo] = field(Array(TopicInfo))
    repartition_sink_topics: list[str] = field(Array(String))
    repartition_source_topics: list[TopicInfo] = field(Array(TopicInfo))
    copartition_groups: list[CopartitionGroup] = field(Array(CopartitionGroup))


@struct
class Topology:
    """What the application computes."""

    epoch: int = field(Int32)
    subtopologies: list[Subtopology] = field(Array(Subtopology))


@struct
class TaskIds:
    """Tasks of one subtopology."""

    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class Endpoint:
    """Where a client can be asked for its state."""

    host: str = field(String)
    port: int = field(Uint16)


@struct
class TaskOffset:
    """How far the changelog of a task is read, or how long it is."""

    subtopology_id: str = field(String)
    partition: int = field(Int32)
    offset: int = field(Int64)


@message(key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    """The member, and what changed since its last heartbeat."""

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    endpoint_information_epoch: int = field(Int32)
    instance_id: str | None = field(NullableString, default=None)
    rack_id: str | None = field(NullableString, default=None)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    topology: Topology | None = field(Nullable(Topology), default=None)
    active_tasks: list[TaskIds] | None = field(Nullable(Array(TaskIds)), default=None)
    standby_tasks: list[TaskIds] | None = field(Nullable(Array(TaskIds)), default=None)
    warmup_tasks: list[TaskIds] | None = field(Nullable(Array(TaskIds)), default=None)
    process_id: str | None = field(NullableString, default=None)
    user_endpoint: Endpoint | None = field(Nullable(Endpoint), default=None)
    client_tags: list[KeyValue] | None = field(Nullable(Array(KeyValue)), default=None)
    task_offsets: list[TaskOffset] | None = field(Nullable(Array(TaskOffset)), default=None)
    task_end_offsets: list[TaskOffset] | None = field(Nullable(Array(TaskOffset)), default=None)
    shutdown_application: bool = field(Bool)


@struct
class Status:
    """Something that the members should know of their group."""

    status_code: int = field(Int8)
    status_detail: str = field(String)


@struct
class TopicPartition:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class EndpointToPartitions:
    """The partitions whose state is at one endpoint."""

    user_endpoint: Endpoint = field(Endpoint)
    active_partitions: list[TopicPartition] = field(Array(TopicPartition))
    standby_partitions: list[TopicPartition] = field(Array(TopicPartition))


@message(key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """The member's epoch, and its tasks if they have changed."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    acceptable_recovery_lag: int = field(Int32)
    task_offset_interval_ms: int = field(Int32)
    status: list[Status] | None = field(Nullable(Array(Status)), default=None)
    active_tasks: list[TaskIds] | None = field(Nullable(Array(TaskIds)), default=None)
    standby_tasks: list[TaskIds] | None = field(Nullable(Array(TaskIds)), default=None)
    warmup_tasks: list[TaskIds] | None = field(Nullable(Array(TaskIds)), default=None)
    endpoint_information_epoch: int = field(Int32)
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(
        Nullable(Array(EndpointToPartitions)), default=None
    )
