"""DeleteTopics: delete topics by name, from v6 also by id.

v5 adds an error message.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
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
class DeleteTopicState:
    """A topic by name, or by id with a null name."""

    name: str | None = field(NullableString, default=None)
    topic_id: bytes = field(Uuid)


@message(key=ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    """Topics to delete: `topic_names` up to v5, `topics` from v6."""

    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), "6+")
    topic_names: list[str] = field(Array(String), "1-5")
    timeout_ms: int = field(Int32)


@struct
class DeletableTopicResult:
    """Whether one topic was deleted."""

    name: str | None = field(Nullable(String, "6+"))
    topic_id: bytes = field(Uuid, "6+")
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, "5+", default=None)


@message(key=ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32)
    responses: list[DeletableTopicResult | Encoded] = field(
        Array(DeletableTopicResult, encoded=True)
    )
