"""SaslAuthenticate: one step of a login; repeated until the mechanism is satisfied.

v1 adds how long the session lasts before the client must log in again.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Bytes,
    Int16,
    Int64,
    NullableString,
    field,
    message,
)


@message(key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """The client's message of the mechanism."""

    auth_bytes: bytes = field(Bytes)


@message(key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """The server's message of the mechanism."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    auth_bytes: bytes = field(Bytes)
    session_lifetime_ms: int = field(Int64, "1+")
