"""ExpireDelegationToken: set the expiry of a token, known by its HMAC, or remove it."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Bytes,
    Int16,
    Int32,
    Int64,
    field,
    message,
)


@message(key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """The token that is to expire; at once if the period is negative."""

    hmac: bytes = field(Bytes)
    expiry_time_period_ms: int = field(Int64)


@message(key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """When the token expires now."""

    error_code: int = field(Int16)
    expiry_timestamp_ms: int = field(Int64)
    throttle_time_ms: int = field(Int32)
