"""Grants by resource and by principal, so that a decision does not search them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from rockgate.gateway.security.grants import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)

Entry: TypeAlias = tuple[str, str, AclOperation, Permission]
"""Principal, host, operation, permission: what a grant says of its resource."""
_Resource: TypeAlias = tuple[AclResourceType, str, PatternType]
_NO_LENGTHS: Final[dict[int, int]] = {}


class GrantIndex:
    """Follows the fold of grants."""

    def __init__(self) -> None:
        self._entries: dict[_Resource, dict[Entry, None]] = {}
        self._of_principal: dict[tuple[str, AclResourceType], dict[Grant, None]] = {}
        # How many prefixed patterns of a type have a name of that length: only those lengths of a
        # resource's name are looked up.
        self._prefix_lengths: dict[AclResourceType, dict[int, int]] = {}

    # Questions

    def matching(self, type_: AclResourceType, name: str) -> Iterator[dict[Entry, None]]:
        """The entries of each pattern that matches a resource."""
        entries = self._entries
        for pattern in (name, WILDCARD) if name != WILDCARD else (name,):
            found = entries.get((type_, pattern, PatternType.LITERAL))
            if found is not None:
                yield found
        for length in self._prefix_lengths.get(type_, _NO_LENGTHS):
            if length <= len(name):
                found = entries.get((type_, name[:length], PatternType.PREFIXED))
                if found is not None:
                    yield found

    def of_principal(self, principal: str, type_: AclResourceType) -> Iterable[Grant]:
        """The grants to a principal on resources of a type; valid until the next change."""
        return self._of_principal.get((principal, type_), ())

    def of_resource(
        self, type_: AclResourceType, name: str, pattern_type: PatternType
    ) -> list[Grant]:
        """The grants with exactly this pattern."""
        entries = self._entries.get((type_, name, pattern_type), ())
        return [Grant(type_, name, pattern_type, *entry) for entry in entries]

    def patterns(self, type_: AclResourceType, name: str) -> list[tuple[str, PatternType]]:
        """The patterns that match a resource, as Kafka's filter MATCH finds them."""
        found = [(each, PatternType.LITERAL) for each in dict.fromkeys((name, WILDCARD))]
        found += [
            (name[:length], PatternType.PREFIXED)
            for length in self._prefix_lengths.get(type_, _NO_LENGTHS)
            if length <= len(name)
        ]
        return [each for each in found if (type_, *each) in self._entries]

    # Notices of the fold

    def was_set(self, grant: Grant, value: bool, /) -> None:
        """Add a grant."""
        type_, name, pattern_type, principal, host, operation, permission = grant
        resource = type_, name, pattern_type
        entries = self._entries.get(resource)
        if entries is None:
            entries = self._entries[resource] = {}
            if pattern_type == PatternType.PREFIXED:
                lengths = self._prefix_lengths.setdefault(type_, {})
                lengths[len(name)] = lengths.get(len(name), 0) + 1
        entries[principal, host, operation, permission] = None
        self._of_principal.setdefault((principal, type_), {})[grant] = None

    def was_removed(self, grant: Grant, /) -> None:
        """Remove a grant."""
        type_, name, pattern_type, principal, host, operation, permission = grant
        resource = type_, name, pattern_type
        entries = self._entries[resource]
        del entries[principal, host, operation, permission]
        if not entries:
            del self._entries[resource]
            if pattern_type == PatternType.PREFIXED:
                self._forget_length(type_, len(name))
        of_principal = self._of_principal[principal, type_]
        del of_principal[grant]
        if not of_principal:
            del self._of_principal[principal, type_]

    def _forget_length(self, type_: AclResourceType, length: int) -> None:
        lengths = self._prefix_lengths[type_]
        lengths[length] -= 1
        if not lengths[length]:
            del lengths[length]

    def was_cleared(self) -> None:
        """Remove all grants."""
        self._entries.clear()
        self._of_principal.clear()
        self._prefix_lengths.clear()
