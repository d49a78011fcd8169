"""RenewDelegationToken: move the expiry of a token, known by its HMAC, into the future."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Bytes,
    Int16,
    Int32,
    Int64,
    field,
    message,
)


@message(key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+")
class RenewDelegationTokenRequest:
    """The token that is to be valid for longer."""

    hmac: bytes = field(Bytes)
    renew_period_ms: int = field(Int64)


@message(key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    """When the token expires now."""

    error_code: int = field(Int16)
    expiry_timestamp_ms: int = field(Int64)
    throttle_time_ms: int = field(Int32)
