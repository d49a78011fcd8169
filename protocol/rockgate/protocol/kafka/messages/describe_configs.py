"""DescribeConfigs: the configs of topics and brokers, with where each value comes from.

`resource_type` 2 is a topic, 4 a broker, 8 a broker's loggers, 16 client metrics, 32 a group. Null
keys ask for all. `config_source` 1 is the topic's own, 4 the broker's file, 5 the default. v3 has
types and documentation.
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
    field,
    message,
    struct,
)


@struct
class DescribeConfigsResource:
    """A resource, and which of its configs."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configuration_keys: list[str] | None = field(Nullable(Array(String)))


@message(key=ApiKey.DESCRIBE_CONFIGS, versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    """What to describe."""

    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource))
    include_synonyms: bool = field(Bool)
    include_documentation: bool = field(Bool, "3+")


@struct
class DescribeConfigsSynonym:
    """Another source of this config, the most specific first."""

    name: str = field(String)
    value: str | None = field(NullableString)
    source: int = field(Int8)


@struct
class DescribeConfigsResourceResult:
    """One config; a sensitive value is null."""

    name: str = field(String)
    value: str | None = field(NullableString)
    read_only: bool = field(Bool)
    config_source: int = field(Int8, default=-1)
    is_sensitive: bool = field(Bool)
    synonyms: list[DescribeConfigsSynonym] = field(Array(DescribeConfigsSynonym))
    config_type: int = field(Int8, "3+")
    documentation: str | None = field(NullableString, "3+")


@struct
class DescribeConfigsResult:
    """The configs of one resource."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configs: list[DescribeConfigsResourceResult | Encoded] = field(
        Array(DescribeConfigsResourceResult, encoded=True)
    )


@message(key=ApiKey.DESCRIBE_CONFIGS, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """The resources asked for."""

    throttle_time_ms: int = field(Int32)
    results: list[DescribeConfigsResult | Encoded] = field(
        Array(DescribeConfigsResult, encoded=True)
    )
