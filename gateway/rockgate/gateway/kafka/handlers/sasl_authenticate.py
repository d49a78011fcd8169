"""SaslAuthenticate: v0-2.

Behaviour
- One step of the exchange that SaslHandshake began. Later requests of the connection are not
  started before its response.
- A failure is SASL_AUTHENTICATION_FAILED with a text that does not depend on why; the response is
  delayed, by the same time whatever failed, and the connection is closed after it.
- Without an exchange under way, or on a listener without SASL, it is ILLEGAL_SASL_STATE.
- The steps after SaslHandshake v0, which have no header, come here too, as requests of v0. Their
  failure closes the connection without a response.

Versions
- v1: the lifetime of the session, 0 if it does not end.  v2: flexible.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.kafka.authentication.authenticator import (
    Authentication,
    AuthenticationFailed,
)
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.net.stream import Disconnect
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

REQUEST_BYTES_MAX: Final = 512 << 10
"""Kafka's sasl.server.max.receive.size; before a client has authenticated, no frame is larger."""
FAILED: Final = "Authentication failed. Check the user name and its credentials."


class SaslAuthenticate:
    """Authenticates clients, step by step."""

    def handle(
        self, request: SaslAuthenticateRequest, call: Call
    ) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
        """Respond to a message of the client."""
        authentication = call.peer.authentication
        if authentication is None or authentication.login.exchange is None:
            return self.refuse(request, ErrorCode.ILLEGAL_SASL_STATE)
        return self._step(authentication, bytes(request.auth_bytes), call.peer)

    def refuse(self, request: SaslAuthenticateRequest, code: ErrorCode) -> SaslAuthenticateResponse:
        """An error."""
        return SaslAuthenticateResponse(error_code=code, error_message=code.meaning, auth_bytes=b"")

    async def _step(
        self, authentication: Authentication, message: bytes, peer: Peer
    ) -> SaslAuthenticateResponse:
        is_headerless = authentication.login.is_headerless
        peer.reading_count += 1
        try:
            reply = await authentication.step(message)
        except AuthenticationFailed:
            if is_headerless:
                raise Disconnect("authentication failed") from None
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=FAILED,
                auth_bytes=b"",
            )
        finally:
            # The session continues with the next requests when it has the response.
            peer.reading_count -= 1
        return SaslAuthenticateResponse(
            error_code=ErrorCode.NONE,
            error_message=None,
            auth_bytes=reply.message,
            session_lifetime_ms=reply.lifetime_ms,
        )
