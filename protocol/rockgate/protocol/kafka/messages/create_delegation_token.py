"""CreateDelegationToken: a credential that acts for its owner and expires.

v3 can create one for another principal, and says who asked for it.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bytes,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class CreatableRenewers:
    """A principal who may renew the token."""

    principal_type: str = field(String)
    principal_name: str = field(String)


@message(key=ApiKey.CREATE_DELEGATION_TOKEN, versions="1-3", flexible="2+")
class CreateDelegationTokenRequest:
    """The token to be; without an owner it is the client's."""

    owner_principal_type: str | None = field(NullableString, "3+")
    owner_principal_name: str | None = field(NullableString, "3+")
    renewers: list[CreatableRenewers] = field(Array(CreatableRenewers))
    max_lifetime_ms: int = field(Int64)


@message(key=ApiKey.CREATE_DELEGATION_TOKEN, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The token; its HMAC is the password to log in with."""

    error_code: int = field(Int16)
    principal_type: str = field(String)
    principal_name: str = field(String)
    token_requester_principal_type: str = field(String, "3+")
    token_requester_principal_name: str = field(String, "3+")
    issue_timestamp_ms: int = field(Int64)
    expiry_timestamp_ms: int = field(Int64)
    max_timestamp_ms: int = field(Int64)
    token_id: str = field(String)
    hmac: bytes = field(Bytes)
    throttle_time_ms: int = field(Int32)
