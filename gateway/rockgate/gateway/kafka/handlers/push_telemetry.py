"""PushTelemetry: v0.

Behaviour
- The points of a push replace those of the client's last one. Metrics that were not asked for are
  passed over.
- A push of another subscription than the client's is UNKNOWN_SUBSCRIPTION_ID: the client asks
  again. One before the interval is over is THROTTLING_QUOTA_EXCEEDED, unless it is the last one,
  after which any other is INVALID_REQUEST.
- A push that is larger than agreed is TELEMETRY_TOO_LARGE, with a codec that Kafka does not have
  UNSUPPORTED_COMPRESSION_TYPE; what cannot be read, or inflates to more than
  `client_metrics.inflated_bytes_max`, is INVALID_RECORD. So is a point with more than 32
  attributes, or 2,048 characters of them.
- Pushes are read by threads that are few; while too many wait, others are
  THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.kafka.client_metrics.clients import PushingClient, PushingClients
from rockgate.gateway.kafka.client_metrics.config import ClientMetricsConfig
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.compression import decompress
from rockgate.protocol.otlp.metrics import Point, read_metrics

REQUEST_BYTES_MAX: Final = (16 << 20) + 1_024
"""No setting allows more."""
TOO_LARGE: Final = ErrorCode.TELEMETRY_TOO_LARGE
WAITING_MAX: Final = 64
"""Pushes that are read or wait to be."""


class PushTelemetry:
    """Takes what clients push."""

    def __init__(
        self, clients: PushingClients, threads: BatchThreads, config: ClientMetricsConfig
    ) -> None:
        self._clients = clients
        self._threads = threads
        self._config = config
        self._waiting_count = 0

    def handle(
        self, request: PushTelemetryRequest, call: Call
    ) -> PushTelemetryResponse | Awaitable[PushTelemetryResponse]:
        """Read a push, if the client may push now."""
        try:
            client, codec = self._admit(request, call)
        except RequestError as error:
            return self.refuse(request, error.code)
        if not request.metrics:
            # What is known of it stays.
            return self._answer(ErrorCode.NONE)
        return self._take(client, bytes(request.metrics), codec)

    def refuse(self, request: PushTelemetryRequest, code: ErrorCode) -> PushTelemetryResponse:
        """An error."""
        return self._answer(code)

    def _admit(
        self, request: PushTelemetryRequest, call: Call
    ) -> tuple[PushingClient, Compression]:
        if self._waiting_count >= WAITING_MAX:
            raise RequestError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many pushes wait.")
        client = self._clients.admit(
            request.client_instance_id, request.subscription_id, call, ends=request.terminating
        )
        try:
            codec = Compression(request.compression_type)
        except ValueError:
            code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            raise RequestError(code, code.meaning) from None
        if len(request.metrics) > self._config.push_bytes_max:
            raise RequestError(TOO_LARGE, TOO_LARGE.meaning)
        return client, codec

    async def _take(
        self, client: PushingClient, data: bytes, codec: Compression
    ) -> PushTelemetryResponse:
        self._waiting_count += 1
        try:
            points = await self._threads.run(lambda: self._read(data, codec))
        except ProtocolError:
            return self._answer(ErrorCode.INVALID_RECORD)
        finally:
            self._waiting_count -= 1
        self._clients.keep(client, points)
        return self._answer(ErrorCode.NONE)

    def _read(self, data: bytes, codec: Compression) -> list[Point]:
        plain = decompress(data, codec, size_max=self._config.inflated_bytes_max)
        return read_metrics(plain)

    def _answer(self, code: ErrorCode) -> PushTelemetryResponse:
        self._clients.pushes[code.name] += 1
        return PushTelemetryResponse(error_code=code)
