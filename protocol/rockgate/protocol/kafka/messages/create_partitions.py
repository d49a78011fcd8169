"""CreatePartitions: add partitions to topics."""

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
    field,
    message,
    struct,
)


@struct
class CreatePartitionsAssignment:
    """Replicas chosen by hand for one new partition."""

    broker_ids: list[int] = field(Array(Int32))


@struct
class CreatePartitionsTopic:
    """A topic and its new total number of partitions."""

    name: str = field(String)
    count: int = field(Int32)
    assignments: list[CreatePartitionsAssignment] | None = field(
        Nullable(Array(CreatePartitionsAssignment))
    )


@message(key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Topics to grow; `validate_only` grows nothing."""

    topics: list[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic))
    timeout_ms: int = field(Int32)
    validate_only: bool = field(Bool)


@struct
class CreatePartitionsTopicResult:
    """Whether one topic has grown."""

    name: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)


@message(key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32)
    results: list[CreatePartitionsTopicResult | Encoded] = field(
        Array(CreatePartitionsTopicResult, encoded=True)
    )
