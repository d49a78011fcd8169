"""The server's end of a connection that authenticates, sans-IO: one request at a time, and small.

Until `open` is called, a request is read only when the one before it was answered, because its
answer decides how the next bytes are read: after SaslHandshake v0 the steps of a mechanism come as
frames without a header, and leave so. Such a frame, with its length, is the body of
SaslAuthenticate v0, so it is read as one, and of the response only the message is sent.
"""

from __future__ import annotations

from typing import Final

from rockgate.protocol.frames import LENGTH, Spares
from rockgate.protocol.kafka.connection import Buffer, Exchange, RequestHeader, ServerConnection
from rockgate.protocol.kafka.keys import ApiKey

FRAME_BYTES_MAX: Final = 512 * 1024
"""The largest request of a client that has not authenticated: sasl.server.max.receive.size."""
_ERROR_SIZE: Final = 4
"""The error code and the absent message before the bytes of a SaslAuthenticate v0 response."""


class SaslServerConnection(ServerConnection):
    """As ServerConnection once it is open."""

    def __init__(self, *, frame_bytes_max: int, in_flight_max: int, spares: Spares | None) -> None:
        super().__init__(
            frame_bytes_max=min(FRAME_BYTES_MAX, frame_bytes_max), in_flight_max=1, spares=spares
        )
        self._open_limits = frame_bytes_max, in_flight_max
        self.is_headerless = False
        """Whether frames are messages of a mechanism."""

    def open(self) -> None:
        """Accept what the client may send now that it has authenticated."""
        self.is_headerless = False
        self._reader.frame_bytes_max, self.in_flight_max = self._open_limits

    def next_exchanges(self) -> list[Exchange]:
        """Requests received and not returned yet, as far as `in_flight_max` allows."""
        if not self.is_headerless or not self._waiting or self.is_full:
            return super().next_exchanges()
        frame = self._waiting.popleft()
        header = RequestHeader(
            api_key=ApiKey.SASL_AUTHENTICATE, api_version=0, correlation_id=0, client_id=None
        )
        body = memoryview(LENGTH.pack(len(frame)) + frame)
        exchange = HeaderlessExchange(header, body, len(frame))
        self._in_flight.append(exchange)
        return [exchange]

    def respond(self, exchange: Exchange, buffers: list[Buffer]) -> None:
        """Set the response of an exchange; that of a frame without a header has none either."""
        if isinstance(exchange, HeaderlessExchange):
            exchange.answer_with([b"".join(buffers)[_ERROR_SIZE:]])
        else:
            super().respond(exchange, buffers)


class HeaderlessExchange(Exchange):
    """One message of a mechanism after SaslHandshake v0, and the server's."""

    __slots__ = ()

    def answer_with(self, buffers: list[Buffer]) -> None:
        """Set the response as it is sent."""
        self._answer = buffers
