"""DescribeAcls: the ACLs that match a filter.

Numbers follow Kafka's enums: resource 2 is a topic, 3 a group, 4 the cluster, 5 a transactional id,
7 (v3) a user; pattern 3 is literal, 4 a prefix; in filters 1 means any, and so does a null string.
"""

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


@message(key=ApiKey.DESCRIBE_ACLS, versions="1-3", flexible="2+")
class DescribeAclsRequest:
    """The filter."""

    resource_type_filter: int = field(Int8)
    resource_name_filter: str | None = field(NullableString)
    pattern_type_filter: int = field(Int8, default=3)
    principal_filter: str | None = field(NullableString)
    host_filter: str | None = field(NullableString)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@struct
class AclDescription:
    """Who may or may not do what, from where."""

    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@struct
class DescribeAclsResource:
    """The ACLs on one resource."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    pattern_type: int = field(Int8, default=3)
    acls: list[AclDescription] = field(Array(AclDescription))


@message(key=ApiKey.DESCRIBE_ACLS, versions="1-3", flexible="2+")
class DescribeAclsResponse:
    """The ACLs found, by resource."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    resources: list[DescribeAclsResource | Encoded] = field(
        Array(DescribeAclsResource, encoded=True)
    )
