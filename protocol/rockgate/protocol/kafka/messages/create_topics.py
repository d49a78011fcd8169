"""CreateTopics: create topics with partitions and configs, or only check whether it would work.

From v4 a count or factor of -1 means the broker's default. v5 answers with the values used, v7 with
the topic's id.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Encoded,
    Int8,
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
class CreatableReplicaAssignment:
    """Replicas chosen by hand for one partition."""

    partition_index: int = field(Int32)
    broker_ids: list[int] = field(Array(Int32))


@struct
class CreatableTopicConfig:
    """A config to set."""

    name: str = field(String)
    value: str | None = field(NullableString)


@struct
class CreatableTopic:
    """A topic to create, by count or by assignment."""

    name: str = field(String)
    num_partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    assignments: list[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(Array(CreatableTopicConfig))


@message(key=ApiKey.CREATE_TOPICS, versions="2-7", flexible="5+")
class CreateTopicsRequest:
    """Topics to create; `validate_only` creates nothing."""

    topics: list[CreatableTopic] = field(Array(CreatableTopic))
    timeout_ms: int = field(Int32, default=60000)
    validate_only: bool = field(Bool)


@struct
class CreatableTopicConfigs:
    """A config of the new topic, with its resulting value."""

    name: str = field(String)
    value: str | None = field(NullableString)
    read_only: bool = field(Bool)
    config_source: int = field(Int8, default=-1)
    is_sensitive: bool = field(Bool)


@struct
class CreatableTopicResult:
    """One topic created, or why not."""

    name: str = field(String)
    topic_id: bytes = field(Uuid, "7+")
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    topic_config_error_code: int = field(Int16, "5+", tag=0)
    num_partitions: int = field(Int32, "5+", default=-1)
    replication_factor: int = field(Int16, "5+", default=-1)
    configs: list[CreatableTopicConfigs | Encoded] | None = field(
        Nullable(Array(CreatableTopicConfigs, encoded=True)), "5+"
    )


@message(key=ApiKey.CREATE_TOPICS, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32)
    topics: list[CreatableTopicResult | Encoded] = field(Array(CreatableTopicResult, encoded=True))
