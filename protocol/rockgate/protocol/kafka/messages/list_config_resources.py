"""ListConfigResources: the names of everything that has configs.

v0 lists client metrics alone and has another name in older Kafka. In v1 an empty list of types
means all of them; the types are those of DescribeConfigs.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Encoded,
    Int8,
    Int16,
    Int32,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """Which types to list."""

    resource_types: list[int] = field(Array(Int8), "1+")


@struct
class ConfigResource:
    """A resource and its type; client metrics in v0."""

    resource_name: str = field(String)
    resource_type: int = field(Int8, "1+", default=16)


@message(key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """The resources found."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    config_resources: list[ConfigResource | Encoded] = field(Array(ConfigResource, encoded=True))
