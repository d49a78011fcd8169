"""Metadata: v0-13.

Behaviour
- In v0 an empty list asks for every topic; from v1 null does, and an empty list asks for none.
- An unknown topic is created when the server and the client both allow it, a bounded number of
  them per request; else UNKNOWN_TOPIC_OR_PARTITION. A name that no topic can have is
  INVALID_TOPIC_EXCEPTION.
- By id (v12+) an unknown topic is UNKNOWN_TOPIC_ID, with a null name.
- Long lists are made in slices, with other requests in between.

Versions
- v1: controller, rack, internal.  v2: cluster id.  v4: the client may forbid creation.  v5: offline
  replicas.  v7: leader epoch.  v8: authorized operations.  v9: flexible.  v10: topic ids.  v12: by
  id alone.  v13: an error for all.

Departs from Kafka
- A topic that was created a moment ago has its leader at once; there is no LEADER_NOT_AVAILABLE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from rockgate.gateway.config.sections import TopicsConfig
from rockgate.gateway.identity import Identity
from rockgate.gateway.kafka import names
from rockgate.gateway.kafka.advertised import Advertised
from rockgate.gateway.kafka.cataloguing import NOT_ASKED, Catalogue
from rockgate.gateway.kafka.errors import RequestError, code_of
from rockgate.gateway.kafka.peer import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import ZERO_UUID, Encoded
from rockgate.store.errors import StoreError
from rockgate.store.topic import Topic
from rockgate.store.topicchanges import NewTopic
from rockgate.store.topics import Topics

AUTO_CREATE_MAX = 1_000
"""Topics created by one request at the most: what is left over is created when asked for again."""
SLICE_COST = 500
"""Partitions encoded, or topics looked up, before others get their turn."""
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))


class Metadata:
    """Describes the cluster, which is this node, and its topics."""

    def __init__(
        self,
        *,
        topics: Topics,
        catalogue: Catalogue,
        identity: Identity,
        advertised: Advertised,
        config: TopicsConfig,
    ) -> None:
        self._topics = topics
        self._catalogue = catalogue
        self._identity = identity
        self._advertised = advertised
        self._config = config
        topics.on_deleted.append(catalogue.forget)

    def handle(
        self, request: MetadataRequest, call: Call
    ) -> MetadataResponse | Awaitable[MetadataResponse]:
        """Describe what was asked for, in slices if it is much."""
        asked = request.topics
        if asked is None or (not asked and call.version == 0):
            if len(self._topics) <= SLICE_COST:
                return self._respond(
                    request, call, [self._show(t, request, call) for t in self._all()]
                )
            return self._describe_all(request, call)
        if len(asked) <= SLICE_COST:
            return self._respond(request, call, self._describe(asked, request, call))
        return self._describe_many(asked, request, call)

    def refuse(self, request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
        """An error for each topic that was named, and from v13 for the whole."""
        topics: list[MetadataResponseTopic | Encoded] = [
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
        return MetadataResponse(topics=topics, error_code=code)

    def _all(self) -> Iterable[Topic]:
        return (topic for topic in self._topics if names.is_visible(topic.name))

    async def _describe_all(self, request: MetadataRequest, call: Call) -> MetadataResponse:
        shown: list[MetadataResponseTopic | Encoded] = []
        cost = 0
        for topic in self._all():
            cost += self._cost(topic, request, call)
            shown.append(self._show(topic, request, call))
            if cost >= SLICE_COST:
                cost = 0
                await asyncio.sleep(0)
        return self._respond(request, call, shown)

    async def _describe_many(
        self, asked: list[MetadataRequestTopic], request: MetadataRequest, call: Call
    ) -> MetadataResponse:
        shown: list[MetadataResponseTopic | Encoded] = []
        for at in range(0, len(asked), SLICE_COST):
            shown += self._describe(asked[at : at + SLICE_COST], request, call)
            await asyncio.sleep(0)
        return self._respond(request, call, shown)

    def _cost(self, topic: Topic, request: MetadataRequest, call: Call) -> int:
        with_operations = request.include_topic_authorized_operations
        is_kept = self._catalogue.has(topic, call.version, with_operations=with_operations)
        return 1 if is_kept else 1 + topic.queue_count

    def _describe(
        self, asked: list[MetadataRequestTopic], request: MetadataRequest, call: Call
    ) -> list[MetadataResponseTopic | Encoded]:
        if request.allow_auto_topic_creation and self._config.auto_create:
            self._create_missing(asked)
        return [self._describe_one(each, request, call) for each in asked]

    def _describe_one(
        self, asked: MetadataRequestTopic, request: MetadataRequest, call: Call
    ) -> MetadataResponseTopic | Encoded:
        if asked.topic_id != ZERO_UUID:
            topic = self._topics.find_id(asked.topic_id)
            code, name = ErrorCode.UNKNOWN_TOPIC_ID, None
        else:
            name = asked.name or ""
            topic = self._topics.find(names.to_store(name))
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is None and not names.is_legal(name):
                code = ErrorCode.INVALID_TOPIC_EXCEPTION
        if topic is not None:
            return self._show(topic, request, call)
        return MetadataResponseTopic(
            error_code=code,
            name=name if call.version >= 12 else name or "",
            topic_id=asked.topic_id,
        )

    def _show(self, topic: Topic, request: MetadataRequest, call: Call) -> Encoded:
        with_operations = request.include_topic_authorized_operations
        return self._catalogue.topic(topic, call.version, with_operations=with_operations)

    def _create_missing(self, asked: list[MetadataRequestTopic]) -> None:
        """Create what is not there yet; a name that cannot be is answered by the caller."""
        missing: dict[str, NewTopic] = {}
        for each in asked:
            name = each.name
            if not name or each.topic_id != ZERO_UUID or len(missing) >= AUTO_CREATE_MAX:
                continue
            if self._topics.find(names.to_store(name)) is not None:
                continue
            try:
                names.check_new(name)
            except RequestError:
                continue
            missing[name] = NewTopic(name=name, queue_count=self._config.partitions)
        if not missing:
            return
        try:
            self._topics.create_many(list(missing.values()))
        except StoreError as error:
            code = code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR
            raise RequestError(code, str(error)) from error

    def _respond(
        self, request: MetadataRequest, call: Call, topics: list[MetadataResponseTopic | Encoded]
    ) -> MetadataResponse:
        address = self._advertised.address_for(call.peer)
        node_id = self._identity.node_id
        with_operations = request.include_cluster_authorized_operations
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node_id, host=address.host, port=address.port)],
            cluster_id=self._identity.cluster_id,
            controller_id=node_id,
            topics=topics,
            cluster_authorized_operations=CLUSTER_OPERATIONS if with_operations else NOT_ASKED,
        )
