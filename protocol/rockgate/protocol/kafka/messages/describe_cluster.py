"""DescribeCluster: the cluster's id, its brokers and what the client may do.

v1 distinguishes brokers (1) from controllers (2), v2 includes fenced brokers.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """What to describe of the cluster."""

    include_cluster_authorized_operations: bool = field(Bool)
    endpoint_type: int = field(Int8, "1+", default=1)
    include_fenced_brokers: bool = field(Bool, "2+")


@struct
class DescribeClusterBroker:
    """A broker and where to reach it."""

    broker_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(NullableString, default=None)
    is_fenced: bool = field(Bool, "2+")


@message(key=ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """The cluster."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString, default=None)
    endpoint_type: int = field(Int8, "1+", default=1)
    cluster_id: str = field(String)
    controller_id: int = field(Int32, default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(Int32, default=-(1 << 31))
