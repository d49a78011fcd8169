"""RocketMQ 5's policies and grants, both ways.

    RocketMQ                    grant
    Topic:orders                TOPIC, literal
    Topic:ord*                  TOPIC, prefixed
    Topic:*, Group:*            literal `*`
    Cluster:*, Cluster:name     CLUSTER; our own cluster's name only
    *                           all three
    Pub, Sub                    WRITE, READ
    Create, Update, Delete      CREATE, ALTER, DELETE
    Get, List                   DESCRIBE, which is listed as both
    All                         ALL
    Allow, Deny                 ALLOW, DENY; a Deny of any pattern wins here
    source addresses            a grant for each; none is every host

What a grant cannot say is refused by name: networks, policies of type Default, other resources.
Grants of operations that RocketMQ does not have are neither listed nor removed.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.security.grants import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.transcode.names import to_rocketmq, to_store
from rockgate.protocol.remoting.bodies.access import AclInfo, PolicyEntryInfo, PolicyInfo
from rockgate.protocol.remoting.codes import ResponseCode

CUSTOM: Final = "Custom"
ENTRIES_MAX: Final = 1_000
"""Grants that one request may make."""
NAME_CHARS_MAX: Final = 262
_ACTIONS: Final = {
    "All": AclOperation.ALL,
    "Pub": AclOperation.WRITE,
    "Sub": AclOperation.READ,
    "Create": AclOperation.CREATE,
    "Update": AclOperation.ALTER,
    "Delete": AclOperation.DELETE,
    "Get": AclOperation.DESCRIBE,
    "List": AclOperation.DESCRIBE,
}
_BY_NAME: Final = {name.lower(): operation for name, operation in _ACTIONS.items()}
EXPRESSIBLE: Final = frozenset(_ACTIONS.values())
"""Operations that RocketMQ has names for."""
_TYPES: Final = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "cluster": AclResourceType.CLUSTER,
}
_DECISIONS: Final = {"allow": Permission.ALLOW, "deny": Permission.DENY}

Pattern = tuple[AclResourceType, str, PatternType]
EVERYTHING: Final[tuple[Pattern, ...]] = (
    (AclResourceType.TOPIC, WILDCARD, PatternType.LITERAL),
    (AclResourceType.GROUP, WILDCARD, PatternType.LITERAL),
    (AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL),
)


def invalid(why: str) -> Refused:
    """The refusal of something that cannot be granted."""
    return Refused(ResponseCode.INVALID_PARAMETER, why)


def subject_of(text: str) -> str:
    """The principal of a subject: `User:name`."""
    kind, _, name = text.partition(":")
    if kind.lower() != "user" or not name:
        raise invalid(f"Subject {text[:100]!r} is not supported; it must be User:NAME.")
    return f"User:{name}"


def patterns_of(text: str | None, cluster_name: str) -> tuple[Pattern, ...]:
    """The patterns of a resource."""
    if not text:
        raise invalid("The resource is null.")
    if text == WILDCARD:
        return EVERYTHING
    kind, _, name = text.partition(":")
    type_ = _TYPES.get(kind.lower())
    if type_ is None or not name:
        raise invalid(
            f"Resource {text[:100]!r} is not supported; it must be Topic:, Group: or Cluster: and "
            "a name."
        )
    if len(name) > NAME_CHARS_MAX:
        raise invalid(f"Resource name exceeds {NAME_CHARS_MAX} characters.")
    if type_ is AclResourceType.CLUSTER:
        if name not in (WILDCARD, cluster_name):
            raise invalid(f"Cluster {name[:100]!r} is not this one, which is {cluster_name!r}.")
        return (EVERYTHING[2],)
    if name == WILDCARD:
        return ((type_, WILDCARD, PatternType.LITERAL),)
    if name.endswith(WILDCARD):
        return ((type_, to_store(name[:-1]), PatternType.PREFIXED),)
    return ((type_, to_store(name), PatternType.LITERAL),)


def resource_of(pattern: Pattern) -> str:
    """What RocketMQ calls a pattern."""
    type_, name, kind = pattern
    if type_ is AclResourceType.CLUSTER:
        return "Cluster:*"
    suffix = WILDCARD if kind is PatternType.PREFIXED else ""
    return f"{type_.name.capitalize()}:{to_rocketmq(name)}{suffix}"


def _host(text: str) -> str:
    if text == WILDCARD:
        return text
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise invalid(f"Source address {text[:100]!r} is not an IP address.") from None
    if network.prefixlen == 0:
        return WILDCARD
    if network.num_addresses != 1:
        raise invalid(
            f"Source address {text[:100]!r} is a network; a grant is for one address or for all."
        )
    return str(network.network_address)


def _operation(name: str) -> AclOperation:
    found = _BY_NAME.get(name.lower())
    if found is None:
        raise invalid(
            f"Action {name[:50]!r} is not supported; supported are {', '.join(_ACTIONS)}."
        )
    return found


def entries_of(acl: AclInfo) -> Iterator[PolicyEntryInfo]:
    """The entries of all policies; those of type Default are refused."""
    for policy in acl.policies or ():
        if (policy.policy_type or CUSTOM).lower() != CUSTOM.lower():
            raise invalid(
                f"Policy type {policy.policy_type[:50]!r} is not supported, only Custom: grants "
                "have no defaults."
                if policy.policy_type
                else "Policy type is missing."
            )
        if not policy.entries:
            raise invalid("The policy entries is empty.")
        yield from policy.entries


def grants_of(principal: str, entry: PolicyEntryInfo, cluster_name: str) -> list[Grant]:
    """The grants of an entry."""
    permission = _DECISIONS.get((entry.decision or "").lower())
    if permission is None:
        raise invalid("The decision is null or illegal.")
    if not entry.actions:
        raise invalid("The actions is empty.")
    hosts = [_host(text) for text in entry.source_ips or (WILDCARD,)]
    operations = dict.fromkeys(_operation(name) for name in entry.actions)
    made = [
        Grant(*pattern, principal, host, operation, permission)
        for pattern in patterns_of(entry.resource, cluster_name)
        for host in hosts
        for operation in operations
    ]
    if len(made) > ENTRIES_MAX:
        raise invalid(f"One entry makes {len(made):,} grants; the maximum is {ENTRIES_MAX:,}.")
    return made


def is_expressible(grant: Grant) -> bool:
    """Whether RocketMQ has words for a grant."""
    return grant.operation in EXPRESSIBLE and grant.resource_type in _TYPES.values()


def acl_of(principal: str, grants: Iterable[Grant]) -> AclInfo | None:
    """The policies of a principal; None without any that RocketMQ could express."""
    by_place: dict[tuple[Pattern, Permission], dict[str, set[AclOperation]]] = defaultdict(dict)
    for grant in grants:
        if is_expressible(grant):
            pattern = grant.resource_type, grant.resource_name, grant.pattern_type
            hosts = by_place[pattern, grant.permission]
            hosts.setdefault(grant.host, set()).add(grant.operation)
    if not by_place:
        return None
    entries = [
        entry
        for (pattern, permission), hosts in sorted(by_place.items())
        for entry in _entries(resource_of(pattern), permission, hosts)
    ]
    return AclInfo(subject=principal, policies=[PolicyInfo(policy_type=CUSTOM, entries=entries)])


def _entries(
    resource: str, permission: Permission, hosts: dict[str, set[AclOperation]]
) -> Iterator[PolicyEntryInfo]:
    """Entries of a resource: one for hosts with the same operations."""
    alike: dict[frozenset[AclOperation], list[str]] = defaultdict(list)
    for host, operations in hosts.items():
        alike[frozenset(operations)].append(host)
    for allowed, addresses in alike.items():
        yield PolicyEntryInfo(
            resource=resource,
            actions=[name for name, operation in _ACTIONS.items() if operation in allowed],
            source_ips=None if WILDCARD in addresses else sorted(addresses),
            decision=permission.name.capitalize(),
        )


def replaced(existing: Sequence[Grant], patterns: Iterable[Pattern]) -> list[Grant]:
    """The grants on patterns that an update of their policies replaces."""
    wanted = set(patterns)
    return [
        grant
        for grant in existing
        if is_expressible(grant)
        and (grant.resource_type, grant.resource_name, grant.pattern_type) in wanted
    ]
