"""RocketMQ 4.9's permissions of a user and grants, both ways.

A user has a permission for every topic, `topicPerms`, and one for the others, `defaultTopicPerm`;
the same for groups. PUB is WRITE, SUB is READ. The default is a grant on `*`, and what a topic of
its own has less than it is a DENY there: the result is exactly what 4.9 decides.

Addresses that need no signature (`whiteRemoteAddress`, global ones) do not exist here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rockgate.gateway.remoting.access.policies import invalid
from rockgate.gateway.security.grants import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.transcode.names import to_rocketmq, to_store

PERMS_MAX: Final = 1_000
"""Topics or groups that one request may name."""
DENY: Final = "DENY"
_OPERATIONS: Final = {"PUB": AclOperation.WRITE, "SUB": AclOperation.READ}
Operations = frozenset[AclOperation]
NOTHING: Operations = frozenset()


def operations_of(text: str) -> Operations:
    """The operations of `PUB`, `SUB`, `PUB|SUB`, `ANY` or `DENY`."""
    words = {word.strip().upper() for word in text.split("|")}
    if words <= {DENY}:
        return NOTHING
    if words == {"ANY"}:
        return frozenset(_OPERATIONS.values())
    if not words <= _OPERATIONS.keys():
        raise invalid(f"Permission {text[:50]!r} is not one of PUB, SUB, PUB|SUB and DENY.")
    return frozenset(_OPERATIONS[word] for word in words)


def text_of(operations: Operations) -> str:
    """How 4.9 writes operations."""
    return "|".join(name for name, each in _OPERATIONS.items() if each in operations) or DENY


def perms_of(text: str) -> dict[str, Operations]:
    """The permissions in `topic=PUB|SUB,other=SUB`, by the store's names."""
    found: dict[str, Operations] = {}
    for each in filter(None, map(str.strip, text.split(","))):
        name, equals, perm = each.partition("=")
        if not equals or not name:
            raise invalid(f"Permission {each[:100]!r} is not NAME=PERMISSION.")
        found[to_store(name)] = operations_of(perm)
    if len(found) > PERMS_MAX:
        raise invalid(f"Request names {len(found):,} resources; the maximum is {PERMS_MAX:,}.")
    return found


class PlainPermissions:
    """What a user may do with resources of one type."""

    def __init__(self, type_: AclResourceType, principal: str, grants: Iterable[Grant]) -> None:
        """Read them from grants, of which those that 4.9 cannot express are left out."""
        self._type = type_
        self._principal = principal
        self.grants = [
            grant
            for grant in grants
            if grant.resource_type is type_
            and grant.pattern_type is PatternType.LITERAL
            and grant.host == WILDCARD
            and grant.operation in _OPERATIONS.values()
        ]
        self.default: Operations = frozenset(
            grant.operation
            for grant in self.grants
            if grant.resource_name == WILDCARD and grant.permission is Permission.ALLOW
        )
        self.by_name: dict[str, Operations] = {}
        for grant in self.grants:
            name = grant.resource_name
            if name == WILDCARD:
                continue
            known = self.by_name.setdefault(name, self.default)
            one = {grant.operation}
            is_allowed = grant.permission is Permission.ALLOW
            self.by_name[name] = known | one if is_allowed else known - one

    def wanted(self) -> list[Grant]:
        """The grants that say this."""
        made = [self._grant(WILDCARD, each, Permission.ALLOW) for each in sorted(self.default)]
        for name, operations in self.by_name.items():
            made += [self._grant(name, each, Permission.ALLOW) for each in sorted(operations)]
            denied = self.default - operations
            made += [self._grant(name, each, Permission.DENY) for each in sorted(denied)]
        return made

    def texts(self) -> list[str]:
        """As 4.9 lists them."""
        return [
            f"{to_rocketmq(name)}={text_of(operations)}"
            for name, operations in sorted(self.by_name.items())
        ]

    def _grant(self, name: str, operation: AclOperation, permission: Permission) -> Grant:
        return Grant(
            self._type,
            name,
            PatternType.LITERAL,
            self._principal,
            WILDCARD,
            operation,
            permission,
        )
