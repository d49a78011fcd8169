"""The question of some handlers: which of many things may this client see or do?

Most handlers never ask: a guard (`kafka.authorization`) answers for them before they are called.
Those ask that list things, describe what may be done with them, or cannot afford a guard. Where
nothing is authorized they ask `UNCHECKED`, which allows everything.
"""

from __future__ import annotations

from typing import Final, Protocol

from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.protocol.kafka.keys import ApiKey

_CONFIGS: Final = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
SUPPORTED: Final = {
    AclResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    ),
    AclResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    ),
    AclResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        *_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}
"""What can be done at all, by type of resource: the operations of `authorized_operations`."""
ALL_BITS: Final = {
    type_: sum(1 << operation for operation in operations)
    for type_, operations in SUPPORTED.items()
}
TOPIC_OPERATIONS: Final = ALL_BITS[AclResourceType.TOPIC]
CLUSTER_OPERATIONS: Final = ALL_BITS[AclResourceType.CLUSTER]
NOT_ASKED: Final = -(1 << 31)
"""The authorized operations of a response to a request that did not ask for them."""


class GrantGeneration(Protocol):
    """All grants, as far as a cached decision has to know of them."""

    @property
    def generation(self) -> int:
        """Differs after every change."""


class Permitted(Protocol):
    """What the client of a connection may do, by the grants of now."""

    @property
    def grants(self) -> GrantGeneration:
        """What decides: the same for as long as the server runs, so that hot paths keep it."""

    def may(
        self,
        peer: Peer,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        /,
    ) -> bool:
        """Whether it may do this; nothing is written down of a refusal."""

    def permit(
        self,
        peer: Peer,
        api: ApiKey,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        /,
    ) -> bool:
        """Whether it may do what it is about to do; a refusal is written to the audit log."""

    def operations(self, peer: Peer, resource_type: AclResourceType, name: str, /) -> int:
        """All that it may do with a resource, as bits."""

    def may_write(self, peer: Peer, key: str | bytes, store_name: str, /) -> bool:
        """Whether it may produce to a topic, known by `key` to the connection; cached."""

    def may_read(self, peer: Peer, key: str | bytes, store_name: str, /) -> bool:
        """Whether it may fetch from a topic, known by `key` to the connection; cached."""


class Unchanging:
    """Grants that never change."""

    generation: Final = 0


class Unchecked:
    """Allows everything."""

    grants: Final = Unchanging()

    def may(
        self, peer: Peer, operation: AclOperation, resource_type: AclResourceType, name: str, /
    ) -> bool:
        """Always."""
        return True

    def permit(
        self,
        peer: Peer,
        api: ApiKey,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        /,
    ) -> bool:
        """Always."""
        return True

    def operations(self, peer: Peer, resource_type: AclResourceType, name: str, /) -> int:
        """All that there are."""
        return ALL_BITS[resource_type]

    def may_write(self, peer: Peer, key: str | bytes, store_name: str, /) -> bool:
        """Always."""
        return True

    may_read = may_write


UNCHECKED: Final = Unchecked()


def cluster_operations(permitted: Permitted, peer: Peer) -> int:
    """What a client may do with the cluster, as bits; none if it may not describe it."""
    cluster = AclResourceType.CLUSTER
    if not permitted.may(peer, AclOperation.DESCRIBE, cluster, CLUSTER_NAME):
        return 0
    return permitted.operations(peer, cluster, CLUSTER_NAME)
