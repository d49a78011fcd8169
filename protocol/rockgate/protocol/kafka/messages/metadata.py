"""Metadata: brokers, topics, partitions and their leaders.

In v0 an empty list of topics asks for all of them; from v1 null does, and an empty list for none.
v4 lets the client forbid automatic creation, v10 adds topic ids, v12 lets a client ask by id alone,
and v13 adds an error for the whole response. Topics and partitions may be given encoded, see
`encode_part`.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Encoded,
    Int16,
    Int32,
    Nullable,
    NullableString,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class MetadataRequestTopic:
    """A topic by name, or from v12 by id with a null name."""

    topic_id: bytes = field(Uuid, "10+")
    name: str | None = field(Nullable(String, "10+"))


@message(key=ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataRequest:
    """Which topics to describe."""

    topics: list[MetadataRequestTopic] | None = field(Nullable(Array(MetadataRequestTopic), "1+"))
    allow_auto_topic_creation: bool = field(Bool, "4+", default=True)
    include_cluster_authorized_operations: bool = field(Bool, "8-10")
    include_topic_authorized_operations: bool = field(Bool, "8+")


@struct
class MetadataResponseBroker:
    """The address of a broker."""

    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(NullableString, "1+", default=None)


@struct
class MetadataResponsePartition:
    """The leader and the replicas of a partition."""

    error_code: int = field(Int16)
    partition_index: int = field(Int32)
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32, "7+", default=-1)
    replica_nodes: list[int] = field(Array(Int32))
    isr_nodes: list[int] = field(Array(Int32))
    offline_replicas: list[int] = field(Array(Int32), "5+")


@struct
class MetadataResponseTopic:
    """A topic and its partitions; the name is null for an unknown id."""

    error_code: int = field(Int16)
    name: str | None = field(Nullable(String, "12+"))
    topic_id: bytes = field(Uuid, "10+")
    is_internal: bool = field(Bool, "1+")
    partitions: list[MetadataResponsePartition | Encoded] = field(
        Array(MetadataResponsePartition, encoded=True)
    )
    topic_authorized_operations: int = field(Int32, "8+", default=-(1 << 31))


@message(key=ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataResponse:
    """The cluster as this broker sees it."""

    throttle_time_ms: int = field(Int32, "3+")
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker))
    cluster_id: str | None = field(NullableString, "2+", default=None)
    controller_id: int = field(Int32, "1+", default=-1)
    topics: list[MetadataResponseTopic | Encoded] = field(
        Array(MetadataResponseTopic, encoded=True)
    )
    cluster_authorized_operations: int = field(Int32, "8-10", default=-(1 << 31))
    error_code: int = field(Int16, "13+")
