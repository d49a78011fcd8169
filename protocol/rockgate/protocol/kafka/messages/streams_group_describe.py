"""StreamsGroupDescribe: state, topology and members of KIP-1071 groups."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    Nullable,
    NullableString,
    SlicedArray,
    String,
    Uint16,
    field,
    message,
    struct,
)


@message(key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    """The groups to describe."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Bool)


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
class Subtopology:
    """A connected part of a topology, with the numbers of partitions once they are known."""

    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    repartition_sink_topics: list[str] = field(Array(String))
    state_changelog_topics: list[TopicInfo] = field(Array(TopicInfo))
    repartition_source_topics: list[TopicInfo] = field(Array(TopicInfo))


@struct
class Topology:
    """What the application computes."""

    epoch: int = field(Int32)
    subtopologies: list[Subtopology] | None = field(Nullable(Array(Subtopology)), default=None)


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


@struct
class TaskIds:
    """Tasks of one subtopology."""

    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class Assignment:
    """The tasks of a member, current or target."""

    active_tasks: list[TaskIds] = field(Array(TaskIds))
    standby_tasks: list[TaskIds] = field(Array(TaskIds))
    warmup_tasks: list[TaskIds] = field(Array(TaskIds))


@struct
class Member:
    """A member, its current and its target tasks."""

    member_id: str = field(String)
    member_epoch: int = field(Int32)
    instance_id: str | None = field(NullableString, default=None)
    rack_id: str | None = field(NullableString, default=None)
    client_id: str = field(String)
    client_host: str = field(String)
    topology_epoch: int = field(Int32)
    process_id: str = field(String)
    user_endpoint: Endpoint | None = field(Nullable(Endpoint), default=None)
    client_tags: list[KeyValue] = field(Array(KeyValue))
    task_offsets: list[TaskOffset] = field(Array(TaskOffset))
    task_end_offsets: list[TaskOffset] = field(Array(TaskOffset))
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    is_classic: bool = field(Bool)


@struct
class DescribedGroup:
    """One group."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    topology: Topology | None = field(Nullable(Topology), default=None)
    members: list[Member] = field(SlicedArray(Member))
    authorized_operations: int = field(Int32, default=-(1 << 31))


@message(key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    """The groups asked for."""

    throttle_time_ms: int = field(Int32)
    groups: list[DescribedGroup] = field(SlicedArray(DescribedGroup))
