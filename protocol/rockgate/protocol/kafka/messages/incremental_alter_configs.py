"""IncrementalAlterConfigs: change single configs of a resource and leave the others.

`config_operation` is 0 set, 1 delete, 2 append to a list, 3 subtract from a list.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Encoded,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class AlterableConfig:
    """A config and what to do with it."""

    name: str = field(String)
    config_operation: int = field(Int8)
    value: str | None = field(NullableString)


@struct
class AlterConfigsResource:
    """A resource and the changes to it."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configs: list[AlterableConfig] = field(Array(AlterableConfig))


@message(key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """Resources to change; `validate_only` changes nothing."""

    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource))
    validate_only: bool = field(Bool)


@struct
class AlterConfigsResourceResponse:
    """Whether one resource was changed."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    resource_type: int = field(Int8)
    resource_name: str = field(String)


@message(key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """The outcome for each resource."""

    throttle_time_ms: int = field(Int32)
    responses: list[AlterConfigsResourceResponse | Encoded] = field(
        Array(AlterConfigsResourceResponse, encoded=True)
    )
