"""DescribeAcls: v1-3.

Behaviour
- All ACLs that match the filter, by resource. A name with pattern MATCH finds every pattern that
  matches such a resource.
- Without authorization it is SECURITY_DISABLED.

Versions
- v2: flexible. v3: resources of type user.

Departs from Kafka
- A filter with a number that means nothing is INVALID_REQUEST; Kafka closes the connection.
- A resource with more than 500 ACLs is in the answer several times, 500 of them each.
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.acls.bindings import NO_AUTHORIZER, read_filter
from rockgate.gateway.kafka.request.chunked import Growing, Room, Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.security.grant_filter import GrantFilter
from rockgate.gateway.security.grants import AclResourceType, Grant, PatternType
from rockgate.gateway.security.stored_grants import StoredGrants
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

PIECE_COUNT = 500


class DescribeAcls:
    """Lists ACLs."""

    def __init__(self, grants: StoredGrants | None) -> None:
        """Without authorization there are no `grants`."""
        self._grants = grants

    def handle(
        self, request: DescribeAclsRequest, call: Call
    ) -> DescribeAclsResponse | Awaitable[DescribeAclsResponse]:
        """List the ACLs that match, some at a time."""
        if self._grants is None:
            return _failed(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        try:
            wanted = read_filter(request)
        except RequestError as error:
            return _failed(error.code, error.reason)
        return in_slices(_steps(self._grants, wanted, call.version))

    def refuse(self, request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
        """An error for the whole request."""
        return _failed(code, code.meaning)


def _steps(grants: StoredGrants, wanted: GrantFilter, version: int) -> Steps[DescribeAclsResponse]:
    candidates = wanted.candidates(grants)
    by_resource: dict[tuple[AclResourceType, str, PatternType], list[Grant]] = {}
    for at in range(0, len(candidates), PIECE_COUNT):
        for grant in candidates[at : at + PIECE_COUNT]:
            if wanted.matches(grant):
                by_resource.setdefault(grant[:3], []).append(grant)
        yield None
    found = Growing(DescribeAclsResponse, DescribeAclsResource, version, Room())
    while by_resource:
        (type_, name, pattern_type), some = by_resource.popitem()
        for at in range(0, len(some), PIECE_COUNT):
            found.add(
                DescribeAclsResource(
                    resource_type=type_,
                    resource_name=name,
                    pattern_type=pattern_type,
                    acls=[_described(grant) for grant in some[at : at + PIECE_COUNT]],
                )
            )
            yield None
    return DescribeAclsResponse(error_message=None, resources=found.take())


def _described(grant: Grant) -> AclDescription:
    return AclDescription(
        principal=grant.principal,
        host=grant.host,
        operation=grant.operation,
        permission_type=grant.permission,
    )


def _failed(code: ErrorCode, reason: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=reason, resources=[])
