"""DescribeUserScramCredentials: which SCRAM mechanisms users can log in with.

`mechanism` 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512. The secrets themselves are never returned.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Encoded,
    Int8,
    Int16,
    Int32,
    Nullable,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class UserName:
    """A user."""

    name: str = field(String)


@message(key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """The users to describe; null for all."""

    users: list[UserName] | None = field(Nullable(Array(UserName)))


@struct
class CredentialInfo:
    """A mechanism and its iterations."""

    mechanism: int = field(Int8)
    iterations: int = field(Int32)


@struct
class DescribeUserScramCredentialsResult:
    """The credentials of one user."""

    user: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    credential_infos: list[CredentialInfo] = field(Array(CredentialInfo))


@message(key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """The users asked for."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    results: list[DescribeUserScramCredentialsResult | Encoded] = field(
        Array(DescribeUserScramCredentialsResult, encoded=True)
    )
