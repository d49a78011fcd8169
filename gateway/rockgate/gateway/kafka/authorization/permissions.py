"""Decisions about the client of a connection, in the names that Kafka's clients use.

Retry and dead-letter topics belong to their group: to read, write and describe `rmq.retry.g` and
`rmq.dlq.g` takes READ on group g. To alter or delete them takes that operation on the topic.

Produce and Fetch ask once per request, so their decisions are cached by connection: those that were
allowed, each with the generation of grants that it was made under. A change of grants makes all of
them stale at once, and a client cannot make more of them than CACHED_MAX. Both look into the cache
themselves before they ask: a call would cost a request of one message half a per cent.
"""

from __future__ import annotations

from typing import Final, Protocol

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.request.permitted import SUPPORTED
from rockgate.gateway.security.access import Access
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.keys import ApiKey

CACHED_MAX: Final = 1_000
_OF_GROUP: Final = frozenset(
    {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
    }
)
"""What a retry or dead-letter topic inherits from its group."""


class RefusalAudit(Protocol):
    """Where refusals are written down."""

    def refused(
        self, principal: Principal, host: str, *, api: str, operation: str, resource: str
    ) -> None:
        """A request was refused; `resource` is its type and name."""


class Permissions:
    """Asks for a connection. One for all connections of the server."""

    def __init__(self, access: Access, audit: RefusalAudit) -> None:
        self.grants = self._access = access
        self._audit = audit

    def may(
        self, peer: Peer, operation: AclOperation, resource_type: AclResourceType, name: str, /
    ) -> bool:
        """Whether the client may do this; nothing is written down of a refusal."""
        if resource_type is AclResourceType.TOPIC and name.startswith(names.RESERVED):
            group = names.group_of(name)
            if group is not None and operation in _OF_GROUP:
                operation, resource_type, name = AclOperation.READ, AclResourceType.GROUP, group
        return self._access.may(peer.principal, peer.remote.host, operation, resource_type, name)

    def permit(
        self,
        peer: Peer,
        api: ApiKey,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        /,
    ) -> bool:
        """Whether the client may do what it is about to do; a refusal is written down."""
        if self.may(peer, operation, resource_type, name):
            return True
        self._audit.refused(
            peer.principal,
            peer.remote.host,
            api=api.name,
            operation=operation.name,
            resource=f"{resource_type.name}:{name}",
        )
        return False

    def may_on_any(
        self, peer: Peer, operation: AclOperation, resource_type: AclResourceType, /
    ) -> bool:
        """Whether the client may do this to any resource of a type."""
        host = peer.remote.host
        return self._access.may_on_any(peer.principal, host, operation, resource_type)

    def operations(self, peer: Peer, resource_type: AclResourceType, name: str, /) -> int:
        """All that the client may do with a resource, as bits."""
        return sum(
            1 << operation
            for operation in SUPPORTED[resource_type]
            if self.may(peer, operation, resource_type, name)
        )

    # By every Produce and Fetch

    def may_write(self, peer: Peer, key: str | bytes, store_name: str, /) -> bool:
        """Whether the client may produce to a topic; a refusal is left to its guard."""
        generation = self._access.generation
        if peer.writable.get(key) == generation:
            return True
        name = names.to_kafka(store_name)
        if not self.may(peer, AclOperation.WRITE, AclResourceType.TOPIC, name):
            return False
        _keep(peer.writable, key, generation)
        return True

    def may_read(self, peer: Peer, key: str | bytes, store_name: str, /) -> bool:
        """Whether the client may fetch from a topic; a refusal is written down."""
        generation = self._access.generation
        if peer.readable.get(key) == generation:
            return True
        name = names.to_kafka(store_name)
        if not self.permit(peer, ApiKey.FETCH, AclOperation.READ, AclResourceType.TOPIC, name):
            return False
        _keep(peer.readable, key, generation)
        return True


def _keep(cache: dict[str | bytes, int], key: str | bytes, generation: int) -> None:
    if len(cache) >= CACHED_MAX:
        cache.clear()
    cache[key] = generation
