"""CreateAcls: add ACLs; the enums are those of DescribeAcls."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
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
class AclCreation:
    """An ACL to add."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    resource_pattern_type: int = field(Int8, default=3)
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message(key=ApiKey.CREATE_ACLS, versions="1-3", flexible="2+")
class CreateAclsRequest:
    """ACLs to add."""

    creations: list[AclCreation] = field(Array(AclCreation))


@struct
class AclCreationResult:
    """Whether one ACL was added, in the order asked."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)


@message(key=ApiKey.CREATE_ACLS, versions="1-3", flexible="2+")
class CreateAclsResponse:
    """The outcome for each ACL."""

    throttle_time_ms: int = field(Int32)
    results: list[AclCreationResult | Encoded] = field(Array(AclCreationResult, encoded=True))
