"""FindCoordinator: which broker coordinates a group or a transactional id.

`key_type` is 0 for groups, 1 for transactions and, from v6, 2 for share groups, whose keys are
"group:topic id:partition". From v4 a request can have many keys, each with its own error.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    NullableString,
    SlicedArray,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """The key to look up; `coordinator_keys` from v4."""

    key: str = field(String, "0-3")
    key_type: int = field(Int8, "1+")
    coordinator_keys: list[str] = field(Array(String), "4+")


@struct
class Coordinator:
    """The coordinator of one key."""

    key: str = field(String)
    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)


@message(key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """The coordinator; `coordinators` from v4."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16, "0-3")
    error_message: str | None = field(NullableString, "1-3")
    node_id: int = field(Int32, "0-3")
    host: str = field(String, "0-3")
    port: int = field(Int32, "0-3")
    coordinators: list[Coordinator] = field(SlicedArray(Coordinator), "4+")
