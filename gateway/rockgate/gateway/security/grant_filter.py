"""Which grants a request is about: Kafka's filters of ACL bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rockgate.gateway.security.grants import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.stored_grants import StoredGrants

_TYPES: Final = tuple(each for each in AclResourceType if each > AclResourceType.ANY)


class GrantFilter(NamedTuple):
    """Conditions that a grant has to satisfy; ANY and None are satisfied by all."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    """MATCH: all patterns that match a resource of the name."""
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: Permission = Permission.ANY

    def candidates(self, grants: StoredGrants) -> Sequence[Grant]:
        """The grants among which to look: few, if the filter names a resource."""
        name, index = self.resource_name, grants.index
        if name is None:
            return list(grants)
        types = (self.resource_type,) if self.resource_type != AclResourceType.ANY else _TYPES
        found: list[Grant] = []
        for type_ in types:
            if self.pattern_type == PatternType.MATCH:
                patterns = index.patterns(type_, name)
            else:
                patterns = [(name, PatternType.LITERAL), (name, PatternType.PREFIXED)]
            for pattern in patterns:
                found += index.of_resource(type_, *pattern)
        return found

    def matches(self, grant: Grant) -> bool:
        """Whether a grant satisfies all conditions."""
        return (
            self.resource_type in (AclResourceType.ANY, grant.resource_type)
            and self.operation in (AclOperation.ANY, grant.operation)
            and self.permission in (Permission.ANY, grant.permission)
            and (self.principal is None or self.principal == grant.principal)
            and (self.host is None or self.host == grant.host)
            and self._has_pattern(grant)
        )

    def _has_pattern(self, grant: Grant) -> bool:
        name, pattern_type = self.resource_name, self.pattern_type
        if pattern_type not in (PatternType.ANY, PatternType.MATCH, grant.pattern_type):
            return False
        if name is None or name == grant.resource_name:
            return True
        if pattern_type != PatternType.MATCH:
            return False
        if grant.pattern_type == PatternType.PREFIXED:
            return name.startswith(grant.resource_name)
        return grant.resource_name == WILDCARD
