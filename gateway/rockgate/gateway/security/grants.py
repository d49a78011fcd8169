"""What can be granted: operations on resources, to principals from hosts, in Kafka's numbers.

A grant is one binding of Kafka's ACLs. Those of RocketMQ are translated to the same values, so that
one set of grants decides on both wires.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

WILDCARD: Final = "*"
"""Every resource, as the name of a literal pattern; all principals; any address."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""


class AclResourceType(IntEnum):
    """What a grant is about. UNKNOWN and ANY occur in requests only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of a grant is compared. UNKNOWN, ANY and MATCH occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What is done to a resource. UNKNOWN and ANY occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether a grant allows or denies. UNKNOWN and ANY occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


IMPLYING_DESCRIBE: Final = frozenset(
    {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
)
"""Operations whose grant also allows DESCRIBE."""
IMPLYING_DESCRIBE_CONFIGS: Final = frozenset({AclOperation.ALTER_CONFIGS})


class Grant(NamedTuple):
    """One binding: a principal, from a host, may or may not do an operation on a resource."""

    resource_type: AclResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    """`User:name`, or `User:*`."""
    host: str
    """An address, or `*`."""
    operation: AclOperation
    permission: Permission

    def __str__(self) -> str:
        pattern = "prefixed " if self.pattern_type == PatternType.PREFIXED else ""
        return (
            f"{self.permission.name} {self.principal} from {self.host} {self.operation.name}"
            f" {pattern}{self.resource_type.name}:{self.resource_name}"
        )
