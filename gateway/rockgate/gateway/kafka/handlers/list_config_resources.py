"""ListConfigResources: v0-1.

Behaviour
- Everything that has configs, by type: topics, this node as a broker and for its loggers, and
  groups and client metrics subscriptions with configs set.
- No types ask for all. A type that does not exist is UNSUPPORTED_VERSION, and then nothing is
  listed.

Versions
- v0: client metrics alone.  v1: types.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from collections.abc import Set as AbstractSet

from rockgate.gateway.kafka.configs.resources import ResourceType, SavedConfigs
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Each, Slicing
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_TYPES: AbstractSet[int] = frozenset(ResourceType)


class ListConfigResources:
    """Lists the resources with configs."""

    def __init__(self, *, catalog: TopicCatalog, node_id: int, configs: SavedConfigs) -> None:
        self._catalog = catalog
        self._node_id = node_id
        self._configs = configs
        self._slicing = Slicing(ListConfigResourcesResponse, ConfigResource)

    def handle(
        self, request: ListConfigResourcesRequest, call: Call
    ) -> ListConfigResourcesResponse | Awaitable[ListConfigResourcesResponse]:
        """List all of some types, in slices if there are many."""
        types: AbstractSet[int] = set(request.resource_types)
        if call.version == 0:
            types = {ResourceType.CLIENT_METRICS}
        if not types <= _TYPES:
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return self._slicing.work(
            self._found(types or _TYPES),
            lambda: Each(_resource),
            lambda resources: ListConfigResourcesResponse(config_resources=resources),
            call.version,
        )

    def refuse(
        self, request: ListConfigResourcesRequest, code: ErrorCode
    ) -> ListConfigResourcesResponse:
        """An error for the whole request."""
        return ListConfigResourcesResponse(error_code=code)

    def _found(self, types: AbstractSet[int]) -> Iterator[tuple[int, str]]:
        for saved in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
            if saved in types:
                for name in list(self._configs.names(saved)):
                    yield saved, name
        for ours in (ResourceType.BROKER_LOGGER, ResourceType.BROKER):
            if ours in types:
                yield ours, str(self._node_id)
        if ResourceType.TOPIC in types:
            for topic in self._catalog:
                yield ResourceType.TOPIC, names.to_kafka(topic.name)


def _resource(found: tuple[int, str]) -> ConfigResource:
    type_, name = found
    return ConfigResource(resource_name=name, resource_type=type_)
