"""One request and its client, as the checks of a guard see them."""

from __future__ import annotations

from typing import Any, Final

from rockgate.gateway.kafka.authorization.permissions import Permissions
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, TopicView
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.schema import declaration_of

DENIED: Final = {
    AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    AclResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    AclResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error of a refusal, by type of resource."""


class Asking:
    """Answers what the client of one request may do. Created for it."""

    __slots__ = ("_permissions", "call", "catalog", "request")

    def __init__(
        self, permissions: Permissions, catalog: TopicCatalog, request: Any, call: Call
    ) -> None:
        self._permissions = permissions
        self.catalog = catalog
        self.request = request
        self.call = call

    def may(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
        """Whether the client may do this; nothing is written down of a refusal."""
        return self._permissions.may(self.call.peer, operation, resource_type, name)

    def may_cluster(self, operation: AclOperation) -> bool:
        """Whether the client may do this to the cluster."""
        return self.may(operation, AclResourceType.CLUSTER, CLUSTER_NAME)

    def may_on_any(self, operation: AclOperation, resource_type: AclResourceType) -> bool:
        """Whether the client may do this to any resource of a type."""
        return self._permissions.may_on_any(self.call.peer, operation, resource_type)

    def refusal(
        self, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> ErrorCode | None:
        """The error of what the client may not do, which is written down; None if it may."""
        api = declaration_of(type(self.request)).key
        assert api is not None, "a request has a key"
        if self._permissions.permit(self.call.peer, api, operation, resource_type, name):
            return None
        return DENIED[resource_type]

    def refusal_by_id(self, operation: AclOperation, topic: TopicView | None) -> ErrorCode | None:
        """The same for a topic that was found by its id; an unknown id is the handler's."""
        if topic is None:
            return None
        return self.refusal(operation, AclResourceType.TOPIC, names.to_kafka(topic.name))
