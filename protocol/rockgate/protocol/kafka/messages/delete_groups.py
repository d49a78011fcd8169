"""DeleteGroups: delete empty groups and their offsets."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """The groups to delete."""

    groups_names: list[str] = field(Array(String))


@struct
class DeletableGroupResult:
    """Whether one group was deleted."""

    group_id: str = field(String)
    error_code: int = field(Int16)


@message(key=ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """The outcome for each group."""

    throttle_time_ms: int = field(Int32)
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult))
