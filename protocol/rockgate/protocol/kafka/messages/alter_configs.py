"""AlterConfigs: replace all configs of a resource; configs not named return to their defaults."""

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
    """A config and its value."""

    name: str = field(String)
    value: str | None = field(NullableString)


@struct
class AlterConfigsResource:
    """A resource and its new configs."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configs: list[AlterableConfig] = field(Array(AlterableConfig))


@message(key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsRequest:
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


@message(key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """The outcome for each resource."""

    throttle_time_ms: int = field(Int32)
    responses: list[AlterConfigsResourceResponse | Encoded] = field(
        Array(AlterConfigsResourceResponse, encoded=True)
    )
