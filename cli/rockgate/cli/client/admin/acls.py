"""ACLs on Kafka's wire: describe, create and delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import decoded
from rockgate.gateway.security.grants import (
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.protocol.kafka.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from rockgate.protocol.kafka.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from rockgate.protocol.kafka.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
)


class AclFilter(NamedTuple):
    """Which ACLs; ANY and None match all."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: Permission = Permission.ANY


async def describe(cluster: Cluster, filters: Iterable[AclFilter]) -> list[Grant]:
    """The ACLs that match at least one filter, in order."""
    found: set[Grant] = set()
    for each in dict.fromkeys(filters):
        request = DescribeAclsRequest(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=each.principal,
            host_filter=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        answer = await (await cluster.anyone()).ask(request, DescribeAclsResponse)
        if answer.error_code:
            raise Refused(answer.error_code, answer.error_message, what="ACLs")
        found.update(
            _grant(
                (resource.resource_type, resource.resource_name, resource.pattern_type),
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in decoded(answer.resources)
            for acl in resource.acls
        )
    return sorted(found)


async def create(cluster: Cluster, grants: Sequence[Grant]) -> dict[Grant, Refused | None]:
    """Add ACLs; the outcome of each."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                resource_pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in grants
        ]
    )
    answer = await (await cluster.controller()).ask(request, CreateAclsResponse)
    return {
        grant: Refused(each.error_code, each.error_message, what=str(grant))
        if each.error_code
        else None
        for grant, each in zip(grants, decoded(answer.results), strict=True)
    }


async def delete(cluster: Cluster, grants: Sequence[Grant]) -> dict[Grant, Refused | None]:
    """Remove exactly these ACLs; the outcome of each."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=each.resource_type,
                resource_name_filter=each.resource_name,
                pattern_type_filter=each.pattern_type,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in grants
        ]
    )
    answer = await (await cluster.controller()).ask(request, DeleteAclsResponse)
    done: dict[Grant, Refused | None] = {}
    for grant, each in zip(grants, decoded(answer.filter_results), strict=True):
        failures = [(each.error_code, each.error_message)]
        failures += [(one.error_code, one.error_message) for one in decoded(each.matching_acls)]
        failed = next((one for one in failures if one[0]), None)
        done[grant] = Refused(*failed, what=str(grant)) if failed else None
    return done


def _grant(
    resource: tuple[int, str, int], principal: str, host: str, operation: int, permission: int
) -> Grant:
    """What an answer says; numbers that this client does not know are UNKNOWN."""
    type_, name, pattern = resource
    return Grant(
        AclResourceType(type_ if type_ in set(AclResourceType) else 0),
        name,
        PatternType(pattern if pattern in set(PatternType) else 0),
        principal,
        host,
        AclOperation(operation if operation in set(AclOperation) else 0),
        Permission(permission if permission in set(Permission) else 0),
    )
