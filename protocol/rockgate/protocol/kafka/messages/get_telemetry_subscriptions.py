"""GetTelemetrySubscriptions: which metrics a client should push (KIP-714)."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    String,
    Uuid,
    field,
    message,
)


@message(key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    """The client; a zero id asks for one."""

    client_instance_id: bytes = field(Uuid)


@message(key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """Which metrics to push, how often and with what compression."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    client_instance_id: bytes = field(Uuid)
    subscription_id: int = field(Int32)
    accepted_compression_types: list[int] = field(Array(Int8))
    push_interval_ms: int = field(Int32)
    telemetry_max_bytes: int = field(Int32)
    delta_temporality: bool = field(Bool)
    requested_metrics: list[str] = field(Array(String))
