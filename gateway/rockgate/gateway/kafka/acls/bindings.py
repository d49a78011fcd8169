"""Reads bindings and filters of requests, and rejects what Kafka rejects."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol, TypeVar

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.security.grant_filter import GrantFilter
from rockgate.gateway.security.grants import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_acls import AclCreation

NO_AUTHORIZER: Final = "No Authorizer is configured."
"""Kafka's own words, which its tools show."""
NAME_CHARS_MAX: Final = 2_048
"""Longer names of resources are rejected: a decision would have to compare them."""
HOST_CHARS_MAX: Final = 255
_RESOURCES: Final = frozenset(AclResourceType) - {AclResourceType.UNKNOWN, AclResourceType.ANY}
_PATTERNS: Final = frozenset({PatternType.LITERAL, PatternType.PREFIXED})
_OPERATIONS: Final = frozenset(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY}
_PERMISSIONS: Final = frozenset({Permission.DENY, Permission.ALLOW})

E = TypeVar("E", bound=IntEnum)


class AnyFilter(Protocol):
    """A filter, of either request."""

    @property
    def resource_type_filter(self) -> int:
        """A type of resource, or ANY."""

    @property
    def resource_name_filter(self) -> str | None:
        """A name, or None for any."""

    @property
    def pattern_type_filter(self) -> int:
        """A type of pattern, ANY, or MATCH."""

    @property
    def principal_filter(self) -> str | None:
        """A principal, or None for any."""

    @property
    def host_filter(self) -> str | None:
        """An address, or None for any."""

    @property
    def operation(self) -> int:
        """An operation, or ANY."""

    @property
    def permission_type(self) -> int:
        """A permission, or ANY."""


def read_binding(asked: AclCreation) -> Grant:
    """The grant that is to be added; INVALID_REQUEST if there cannot be such a one."""
    type_ = _one_of(_RESOURCES, AclResourceType, asked.resource_type, "resourceType")
    pattern = _one_of(_PATTERNS, PatternType, asked.resource_pattern_type, "patternType")
    operation = _one_of(_OPERATIONS, AclOperation, asked.operation, "operation")
    permission = _one_of(_PERMISSIONS, Permission, asked.permission_type, "permissionType")
    name = asked.resource_name
    if type_ == AclResourceType.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    if len(name) > NAME_CHARS_MAX:
        raise _invalid(f"Resource name exceeds {NAME_CHARS_MAX:,} characters.")
    if not asked.host or len(asked.host) > HOST_CHARS_MAX:
        raise _invalid(f"Host must have 1 to {HOST_CHARS_MAX} characters.")
    return Grant(
        type_, name, pattern, _principal(asked.principal), asked.host, operation, permission
    )


def read_filter(asked: AnyFilter) -> GrantFilter:
    """The filter; INVALID_REQUEST if it has a number that means nothing."""
    return GrantFilter(
        resource_type=_known(AclResourceType, asked.resource_type_filter, "resourceType"),
        resource_name=asked.resource_name_filter,
        pattern_type=_known(PatternType, asked.pattern_type_filter, "patternType"),
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=_known(AclOperation, asked.operation, "operation"),
        permission=_known(Permission, asked.permission_type, "permissionType"),
    )


def _principal(text: str) -> str:
    try:
        principal = Principal.parse(text)
    except ValueError as error:
        raise _invalid(f"Principal {error}.") from None
    if len(text) > NAME_CHARS_MAX:
        raise _invalid(f"Principal exceeds {NAME_CHARS_MAX:,} characters.")
    return str(principal)


def _one_of(choices: frozenset[E], kind: type[E], number: int, what: str) -> E:
    if number not in choices:
        raise _invalid(f"Invalid {what} {_name(kind, number)}")
    return kind(number)


def _known(kind: type[E], number: int, what: str) -> E:
    if number <= 0 or number not in tuple(kind):
        raise _invalid(f"Filter contains UNKNOWN {what}: {number}")
    return kind(number)


def _name(kind: type[E], number: int) -> str:
    return kind(number).name if number in tuple(kind) else "UNKNOWN"


def _invalid(reason: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, reason)
