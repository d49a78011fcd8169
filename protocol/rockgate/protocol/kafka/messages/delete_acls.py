"""DeleteAcls: remove the ACLs that match any of some filters; enums are those of DescribeAcls."""

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
class DeleteAclsFilter:
    """What to match."""

    resource_type_filter: int = field(Int8)
    resource_name_filter: str | None = field(NullableString)
    pattern_type_filter: int = field(Int8, default=3)
    principal_filter: str | None = field(NullableString)
    host_filter: str | None = field(NullableString)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message(key=ApiKey.DELETE_ACLS, versions="1-3", flexible="2+")
class DeleteAclsRequest:
    """Filters, each with its own result."""

    filters: list[DeleteAclsFilter] = field(Array(DeleteAclsFilter))


@struct
class DeleteAclsMatchingAcl:
    """An ACL that matched, and whether it was deleted."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    pattern_type: int = field(Int8, default=3)
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@struct
class DeleteAclsFilterResult:
    """What one filter removed."""

    error_code: int = field(Int16)
    error_message: str | None = field(NullableString)
    matching_acls: list[DeleteAclsMatchingAcl | Encoded] = field(
        Array(DeleteAclsMatchingAcl, encoded=True)
    )


@message(key=ApiKey.DELETE_ACLS, versions="1-3", flexible="2+")
class DeleteAclsResponse:
    """The outcome for each filter."""

    throttle_time_ms: int = field(Int32)
    filter_results: list[DeleteAclsFilterResult | Encoded] = field(
        Array(DeleteAclsFilterResult, encoded=True)
    )
