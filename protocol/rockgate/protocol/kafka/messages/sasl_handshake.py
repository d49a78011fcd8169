"""SaslHandshake: choose the mechanism of a login.

After v0 the login's bytes follow without Kafka framing; after v1 they are sent in SaslAuthenticate
requests. Never flexible.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    String,
    field,
    message,
)


@message(key=ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    """The mechanism the client wants."""

    mechanism: str = field(String)


@message(key=ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    """The mechanisms that the server supports."""

    error_code: int = field(Int16)
    mechanisms: list[str] = field(Array(String))
