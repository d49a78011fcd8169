"""PushTelemetry: a client's metrics, in OpenTelemetry's encoding (KIP-714)."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Uuid,
    field,
    message,
)


@message(key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryRequest:
    """Metrics for a subscription; the last ones if `terminating`."""

    client_instance_id: bytes = field(Uuid)
    subscription_id: int = field(Int32)
    terminating: bool = field(Bool)
    compression_type: int = field(Int8)
    metrics: bytes = field(Bytes)


@message(key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryResponse:
    """Whether they were accepted."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
