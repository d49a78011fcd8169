"""GetTelemetrySubscriptions: v0.

Behaviour
- A client without an instance id is given one. It is asked to push the metrics of all client
  metrics resources that match it, at the shortest of their intervals; if none does, it is asked for
  none.
- Asking again before the interval is over is THROTTLING_QUOTA_EXCEEDED, unless the client
  has just pushed for a subscription that is outdated.
- Served and advertised only with `client_metrics.enabled`, as Kafka has it only with a receiver of
  metrics configured.

Departs from Kafka
- Sums are asked for as they are since the client's start, not as differences: the last value is
  what `/metrics` exports.
- Patterns are RE2, not Java's.
"""

from __future__ import annotations

from rockgate.gateway.kafka.client_metrics.clients import PushingClients
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from rockgate.protocol.kafka.records.batch import Compression

PREFERRED = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The codecs that are asked for; a push that is not compressed is accepted too."""


class GetTelemetrySubscriptions:
    """Tells clients what to push."""

    def __init__(self, clients: PushingClients, *, push_bytes_max: int) -> None:
        self._clients = clients
        self._push_bytes_max = push_bytes_max

    def handle(
        self, request: GetTelemetrySubscriptionsRequest, call: Call
    ) -> GetTelemetrySubscriptionsResponse:
        """The client's subscription."""
        try:
            instance_id, asked = self._clients.subscribe(request.client_instance_id, call)
        except RequestError as error:
            return self.refuse(request, error.code)
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=asked.id,
            accepted_compression_types=[*map(int, PREFERRED)],
            push_interval_ms=asked.interval_ms,
            telemetry_max_bytes=self._push_bytes_max,
            delta_temporality=False,
            requested_metrics=list(asked.metrics),
        )

    def refuse(
        self, request: GetTelemetrySubscriptionsRequest, code: ErrorCode
    ) -> GetTelemetrySubscriptionsResponse:
        """An error."""
        return GetTelemetrySubscriptionsResponse(error_code=code)
