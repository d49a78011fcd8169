"""ListGroups: all groups this broker coordinates.

v4 filters by state, v5 by type; an empty filter matches everything.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    SlicedArray,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """Which groups to list."""

    states_filter: list[str] = field(Array(String), "4+")
    types_filter: list[str] = field(Array(String), "5+")


@struct
class ListedGroup:
    """One group."""

    group_id: str = field(String)
    protocol_type: str = field(String)
    group_state: str = field(String, "4+")
    group_type: str = field(String, "5+")


@message(key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """The groups that pass the filters."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)
    groups: list[ListedGroup] = field(SlicedArray(ListedGroup))
