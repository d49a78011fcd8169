"""AlterUserScramCredentials: set or delete SCRAM credentials; the client salts the password."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bytes,
    Encoded,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    message,
    struct,
)


@struct
class ScramCredentialDeletion:
    """A credential to delete."""

    name: str = field(String)
    mechanism: int = field(Int8)


@struct
class ScramCredentialUpsertion:
    """A credential to set."""

    name: str = field(String)
    mechanism: int = field(Int8)
    iterations: int = field(Int32)
    salt: bytes = field(Bytes)
    salted_password: bytes = field(Bytes)


@message(key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    """Credentials to change."""

    deletions: list[ScramCredentialDeletion] = field(Array(ScramCredentialDeletion))
    upsertions: list[ScramCredentialUpsertion] = field(Array(ScramCredentialUpsertion))


@struct
class AlterUserScramCredentialsResult:
    """Whether one user was changed."""

    user: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)


@message(key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """The outcome for each user."""

    throttle_time_ms: int = field(Int32)
    results: list[AlterUserScramCredentialsResult | Encoded] = field(
        Array(AlterUserScramCredentialsResult, encoded=True)
    )
