"""The decision, as Kafka's StandardAuthorizer makes it (docs/internals/security.md).

A super user may do everything. Otherwise a matching DENY refuses, and else a matching ALLOW allows;
a resource that no grant is about may be open to all. A pattern matches by its whole name, by
its beginning, or as `*`.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from rockgate.gateway.security.grant_index import Entry, GrantIndex
from rockgate.gateway.security.grants import (
    IMPLYING_DESCRIBE,
    IMPLYING_DESCRIBE_CONFIGS,
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    Permission,
)
from rockgate.gateway.security.principal import USER, Principal

DECISIONS_MAX: Final = 65_536
"""How many decisions are cached; one more empties the cache."""
CACHED_CHARS_MAX: Final = 512
"""Longer names are decided anew, so that the cache cannot take much memory."""
ANY_USER: Final = str(Principal.user(WILDCARD))
_ANY_NAME: Final = "hardcode"
"""Kafka's name for a resource that no grant should be about, where it asks whether any may be."""

_ALLOWING: Final = {
    operation: (operation, AclOperation.ALL)
    for operation in AclOperation
    if operation not in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
} | {
    AclOperation.DESCRIBE: (AclOperation.DESCRIBE, AclOperation.ALL, *IMPLYING_DESCRIBE),
    AclOperation.DESCRIBE_CONFIGS: (
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALL,
        *IMPLYING_DESCRIBE_CONFIGS,
    ),
}
"""The operations whose ALLOW allows an operation."""


class SuperUsers(Protocol):
    """Whether a user is a super user now."""

    def is_super(self, name: str, /) -> bool:
        """Whether the user exists, is enabled and is of type super."""


class Authorizer:
    """Decides by the grants of now, and caches decisions until the next change of anything."""

    def __init__(
        self,
        *,
        index: GrantIndex,
        users: SuperUsers,
        super_users: AbstractSet[str] = frozenset(),
        allows_unmentioned: bool = False,
    ) -> None:
        """`allows_unmentioned`: all may use a resource that no grant is about."""
        self._index = index
        self._users = users
        self._super_users = super_users
        self._allows_unmentioned = allows_unmentioned
        self._decisions: dict[
            tuple[Principal, str, AclOperation, AclResourceType, str | None], bool
        ] = {}
        self.generation = 0
        """Raised by every change."""

    @property
    def cached_count(self) -> int:
        """How many decisions are cached."""
        return len(self._decisions)

    def changed(self) -> None:
        """Grants or users have changed."""
        self.generation += 1
        self._decisions.clear()

    def may(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        /,
    ) -> bool:
        """Whether the operation on the resource is allowed."""
        key = principal, host, operation, resource_type, name
        known = self._decisions.get(key)
        if known is not None:
            return known
        decision = self.is_super(principal) or self._allows(
            principal, host, operation, resource_type, name
        )
        if len(name) + len(principal.name) <= CACHED_CHARS_MAX:
            self._remember(key, decision)
        return decision

    def may_on_any(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: AclResourceType,
        /,
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type.

        As in Kafka, a grant must name the operation or ALL: none is implied.
        """
        key = principal, host, operation, resource_type, None
        known = self._decisions.get(key)
        if known is not None:
            return known
        decision = self.may(
            principal, host, operation, resource_type, _ANY_NAME
        ) or self._allows_any(principal, host, operation, resource_type)
        self._remember(key, decision)
        return decision

    def is_super(self, principal: Principal) -> bool:
        """Whether the principal may do everything."""
        if self._super_users and str(principal) in self._super_users:
            return True
        return principal.type == USER and self._users.is_super(principal.name)

    def _remember(
        self,
        key: tuple[Principal, str, AclOperation, AclResourceType, str | None],
        decision: bool,
    ) -> None:
        if len(self._decisions) >= DECISIONS_MAX:
            self._decisions.clear()
        self._decisions[key] = decision

    def _allows(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        type_: AclResourceType,
        name: str,
    ) -> bool:
        patterns = list(self._index.matching(type_, name))
        if not patterns:
            return self._allows_unmentioned
        callers = [(who, where) for who in (str(principal), ANY_USER) for where in (host, WILDCARD)]
        denying: list[Entry] = [
            (*caller, each, Permission.DENY)
            for caller in callers
            for each in (operation, AclOperation.ALL)
        ]
        if any(entry in entries for entries in patterns for entry in denying):
            return False
        allowing: list[Entry] = [
            (*caller, each, Permission.ALLOW) for caller in callers for each in _ALLOWING[operation]
        ]
        return any(entry in entries for entries in patterns for entry in allowing)

    def _allows_any(
        self, principal: Principal, host: str, operation: AclOperation, type_: AclResourceType
    ) -> bool:
        """Whether an ALLOW is left that no DENY of the same or a shorter pattern covers."""
        allowed: list[tuple[str, PatternType]] = []
        denied: set[tuple[str, PatternType]] = set()
        wanted, hosts = (operation, AclOperation.ALL), (host, WILDCARD)
        for who in (str(principal), ANY_USER):
            for grant in self._index.of_principal(who, type_):
                if grant.operation not in wanted or grant.host not in hosts:
                    continue
                pattern = grant.resource_name, grant.pattern_type
                if grant.permission == Permission.ALLOW:
                    allowed.append(pattern)
                else:
                    denied.add(pattern)
        everything = WILDCARD, PatternType.LITERAL
        if everything in denied:
            return False
        if everything in allowed:
            return True
        lengths = {len(name) for name, kind in denied if kind == PatternType.PREFIXED}
        return any(
            pattern not in denied
            and not any((pattern[0][:n], PatternType.PREFIXED) in denied for n in lengths)
            for pattern in allowed
        )
