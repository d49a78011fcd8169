"""SaslHandshake: v0-1.

Behaviour
- Begins an exchange of the mechanism that is asked for; one that is not enabled is
  UNSUPPORTED_SASL_MECHANISM with a list of those that are, and may be followed by another request.
- On a connection that has authenticated it begins the exchange again (KIP-368): with the same
  mechanism, at most once a second, and not in v0; otherwise ILLEGAL_SASL_STATE.
- On a listener without SASL it is ILLEGAL_SASL_STATE, as in Kafka.

Versions
- v0: the steps follow as frames without a header.  v1: they follow as SaslAuthenticate requests.

Departs from Kafka
- A mechanism that is not enabled does not close the connection.
- A connection may be authenticated again even if its session has no end.
"""

from __future__ import annotations

from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


class SaslHandshake:
    """Lets clients choose a mechanism."""

    def handle(self, request: SaslHandshakeRequest, call: Call) -> SaslHandshakeResponse:
        """Begin an exchange."""
        authentication = call.peer.authentication
        if authentication is None:
            return self.refuse(request, ErrorCode.ILLEGAL_SASL_STATE)
        code = authentication.choose(request.mechanism, call.version)
        return SaslHandshakeResponse(error_code=code, mechanisms=authentication.login.mechanisms)

    def refuse(self, request: SaslHandshakeRequest, code: ErrorCode) -> SaslHandshakeResponse:
        """An error and no mechanisms."""
        return SaslHandshakeResponse(error_code=code, mechanisms=[])
