"""DescribeDelegationToken: the tokens of some owners, or all, that the client may see.

v3 says who asked for each.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bytes,
    Encoded,
    Int16,
    Int32,
    Int64,
    Nullable,
    String,
    field,
    message,
    struct,
)


@struct
class DescribeDelegationTokenOwner:
    """A principal whose tokens are wanted."""

    principal_type: str = field(String)
    principal_name: str = field(String)


@message(key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """The owners; null for all."""

    owners: list[DescribeDelegationTokenOwner] | None = field(
        Nullable(Array(DescribeDelegationTokenOwner))
    )


@struct
class DescribedDelegationTokenRenewer:
    """A principal who may renew the token."""

    principal_type: str = field(String)
    principal_name: str = field(String)


@struct
class DescribedDelegationToken:
    """A token."""

    principal_type: str = field(String)
    principal_name: str = field(String)
    token_requester_principal_type: str = field(String, "3+")
    token_requester_principal_name: str = field(String, "3+")
    issue_timestamp: int = field(Int64)
    expiry_timestamp: int = field(Int64)
    max_timestamp: int = field(Int64)
    token_id: str = field(String)
    hmac: bytes = field(Bytes)
    renewers: list[DescribedDelegationTokenRenewer] = field(Array(DescribedDelegationTokenRenewer))


@message(key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """The tokens found."""

    error_code: int = field(Int16)
    tokens: list[DescribedDelegationToken | Encoded] = field(
        Array(DescribedDelegationToken, encoded=True)
    )
    throttle_time_ms: int = field(Int32)
