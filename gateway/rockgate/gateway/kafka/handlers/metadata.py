"""Metadata: v0-13.

Behaviour
- In v0 an empty list asks for every topic; from v1 null does, and an empty list asks for none.
- An unknown topic is created when the server and the client both allow it, a bounded number of them
  per request; else UNKNOWN_TOPIC_OR_PARTITION. A name that no topic can have is
  INVALID_TOPIC_EXCEPTION. A topic that cannot be created has an error, and the others are
  described.
- By id (v12+) an unknown topic is UNKNOWN_TOPIC_ID, with a null name. An id or a null name before
  v12 is INVALID_REQUEST for the whole request.
- A repeated topic is described once.
- A topic that the client may not describe is not listed; by name it is TOPIC_AUTHORIZATION_FAILED,
  by id UNKNOWN_TOPIC_ID, whether or not it exists. So is one that the client may not create.
- Long lists are made in slices, with other requests in between.

Versions
- v1: controller, rack, internal.  v2: cluster id.  v4: the client may forbid creation.  v5: offline
  replicas.  v7: leader epoch.  v8: authorized operations.  v9: flexible.  v10: topic ids.  v12: by
  id alone.  v13: a top-level error.

Departs from Kafka
- A new topic has its leader at once, also in the response that created it; there is no
  LEADER_NOT_AVAILABLE.
- A request may name some topics by name and others by id.
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import TypeAlias

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Each, Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.kafka.request.permitted import (
    NOT_ASKED,
    TOPIC_OPERATIONS,
    UNCHECKED,
    Permitted,
    cluster_operations,
)
from rockgate.gateway.kafka.topics.catalog import (
    NO_REFUSALS,
    NewTopic,
    Refusals,
    TopicCatalog,
    TopicView,
)
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.kafka.topics.placement import Node, Placement
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import ZERO_UUID, Encoded, join

AUTO_CREATE_MAX = 1_000
"""Maximum number of topics created by one request; a retry creates the rest."""
CREATION_COST = 5
BY_ID_SINCE = 12
KEY: Callable[[MetadataRequestTopic], tuple[bytes, str | None]] = attrgetter("topic_id", "name")
NAME: Callable[[MetadataRequestTopic], str | None] = attrgetter("name")

DescribedTopic: TypeAlias = MetadataResponseTopic | Encoded
Describe: TypeAlias = Callable[[TopicView], Encoded]


class Metadata:
    """Describes the cluster and its topics."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        placement: Placement,
        metadata_cache: MetadataCache,
        cluster_id: str,
        config: TopicsConfig,
        durability: Durable,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._permitted = permitted
        self._catalog = catalog
        self._placement = placement
        self._cache = metadata_cache
        self._cluster_id = cluster_id
        self._config = config
        self._durability = durability
        self._slicing = Slicing(MetadataResponse, MetadataResponseTopic)
        # The last one returned; nearly always the next client gets the same.
        self._nodes: Sequence[Node] = ()
        self._brokers: list[MetadataResponseBroker] = []

    def handle(
        self, request: MetadataRequest, call: Call
    ) -> MetadataResponse | Awaitable[MetadataResponse]:
        """Describe the requested topics, in slices if there are many."""
        asked, version = request.topics, call.version
        if self._cache.placed != self._placement.version:
            self._cache.renew()
        if asked is None or (not asked and version == 0):
            if (learning := self._catalog.learn(None)) is not None:
                return self._describe_all_after(learning, request, call)
            return self._describe_all(request, call)
        if version < BY_ID_SINCE and any(
            each.name is None or each.topic_id != ZERO_UUID for each in asked
        ):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "Topic ids require Metadata v12 or later."
            )
        return in_slices(self._steps(request, asked, call))

    def _steps(
        self, request: MetadataRequest, asked: Sequence[MetadataRequestTopic], call: Call
    ) -> Steps[MetadataResponse]:
        distinct, _ = yield from once_in_steps(asked, KEY)
        if (learning := self._catalog.learn(map(NAME, distinct))) is not None:
            yield learning
        allowance = Allowance(
            AUTO_CREATE_MAX if request.allow_auto_topic_creation and self._config.auto_create else 0
        )
        describe = self._describing(request, call)

        def begin() -> Named:
            visible = TopicsOf(self._permitted, call.peer)
            return Named(self._catalog, describe, self._config.partitions, allowance, visible)

        def respond(topics: list[DescribedTopic]) -> Now[MetadataResponse]:
            response = self._respond(request, call, topics)
            return self._durability.after_changes(response) if allowance.used else response

        return self._slicing.work(distinct, begin, respond, call.version)

    def refuse(self, request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
        """An error for each topic that was named, and from v13 for the whole."""
        topics: list[DescribedTopic] = [
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
        return MetadataResponse(topics=topics, error_code=code)

    async def _describe_all_after(
        self, learning: Awaitable[None], request: MetadataRequest, call: Call
    ) -> MetadataResponse:
        await learning
        response = self._describe_all(request, call)
        return await response if isinstance(response, Awaitable) else response

    def _describe_all(self, request: MetadataRequest, call: Call) -> Now[MetadataResponse]:
        version, cache = call.version, self._cache
        listed, placed = self._catalog.version, self._placement.version
        describe = self._describing(request, call)
        if self._permitted is not UNCHECKED:
            return self._describe_visible(request, call, describe)
        operations = NOT_ASKED
        if request.include_topic_authorized_operations:
            operations = TOPIC_OPERATIONS
        cached = cache.all_topics(listed, version, operations=operations)
        if cached is not None:
            return self._respond(request, call, [cached])

        def respond(topics: list[DescribedTopic]) -> MetadataResponse:
            encoded = [topic for topic in topics if isinstance(topic, Encoded)]
            whole = join(MetadataResponseTopic, version, encoded)
            if self._catalog.version == listed and self._placement.version == placed:
                cache.keep_all(listed, whole, operations=operations)
            return self._respond(request, call, [whole])

        return self._slicing.work(
            self._catalog,
            lambda: Each[TopicView, MetadataResponseTopic](describe),
            respond,
            version,
        )

    def _describe_visible(
        self, request: MetadataRequest, call: Call, describe: Describe
    ) -> Now[MetadataResponse]:
        """Describe all topics that the client may see."""
        may_describe = TopicsOf(self._permitted, call.peer).may_describe
        return self._slicing.work(
            self._catalog,
            lambda: Visible(describe, may_describe),
            lambda topics: self._respond(request, call, topics),
            call.version,
        )

    def _describing(self, request: MetadataRequest, call: Call) -> Describe:
        version, topic, peer = call.version, self._cache.topic, call.peer
        if not request.include_topic_authorized_operations:
            return lambda each: topic(each, version, operations=NOT_ASKED)
        operations, type_ = self._permitted.operations, AclResourceType.TOPIC
        return lambda each: topic(
            each, version, operations=operations(peer, type_, names.to_kafka(each.name))
        )

    def _respond(
        self, request: MetadataRequest, call: Call, topics: list[DescribedTopic]
    ) -> MetadataResponse:
        operations = NOT_ASKED
        if request.include_cluster_authorized_operations:
            operations = cluster_operations(self._permitted, call.peer)
        nodes = self._placement.nodes(call.peer)
        if nodes is not self._nodes:
            self._nodes, self._brokers = nodes, [*map(_broker, nodes)]
        return MetadataResponse(
            brokers=self._brokers,
            cluster_id=self._cluster_id,
            controller_id=self._placement.controller_id,
            topics=topics,
            cluster_authorized_operations=operations,
        )


def _broker(node: Node) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)


class TopicsOf:
    """The topics that the client of a connection may see and create, by their names in Kafka."""

    __slots__ = ("_peer", "_permitted")

    def __init__(self, permitted: Permitted, peer: Peer) -> None:
        self._permitted = permitted
        self._peer = peer

    def may_describe(self, topic: TopicView) -> bool:
        """Whether a topic exists for it."""
        name = names.to_kafka(topic.name)
        return self._permitted.may(self._peer, AclOperation.DESCRIBE, AclResourceType.TOPIC, name)

    def permit(self, name: str) -> bool:
        """Whether it may describe a topic that it named, which may not exist."""
        type_ = AclResourceType.TOPIC
        return self._permitted.permit(
            self._peer, ApiKey.METADATA, AclOperation.DESCRIBE, type_, name
        )

    def permit_new(self, name: str) -> bool:
        """Whether it may create a topic, or any."""
        peer, create = self._peer, AclOperation.CREATE
        return self._permitted.may(
            peer, create, AclResourceType.CLUSTER, CLUSTER_NAME
        ) or self._permitted.permit(peer, ApiKey.METADATA, create, AclResourceType.TOPIC, name)


class Visible:
    """A slice of all topics, of which those are described that the client may see."""

    def __init__(self, describe: Describe, may_describe: Callable[[TopicView], bool]) -> None:
        self._describe = describe
        self._may_describe = may_describe
        self._topics: list[DescribedTopic] = []

    def take(self, topic: TopicView, /) -> int:
        """Describe a topic, or pass it over."""
        if self._may_describe(topic):
            self._topics.append(self._describe(topic))
        return 0

    def finish(self) -> Sequence[DescribedTopic]:
        """Return what was described."""
        return self._topics


class Allowance:
    """How many topics one request may still create."""

    __slots__ = ("left", "used")

    def __init__(self, left: int) -> None:
        self.left = left
        self.used = 0

    def take(self) -> bool:
        """Use one, if any is left."""
        if self.left <= self.used:
            return False
        self.used += 1
        return True


class Named:
    """A slice of topics that were named or given by id."""

    def __init__(
        self,
        catalog: TopicCatalog,
        describe: Describe,
        partitions: int,
        allowance: Allowance,
        visible: TopicsOf,
    ) -> None:
        self._visible = visible
        self._catalog = catalog
        self._describe = describe
        self._partitions = partitions
        self._allowance = allowance
        self._topics: list[DescribedTopic | str] = []
        """The topics found so far, and the names of those to be created."""

    def take(self, asked: MetadataRequestTopic, /) -> int:
        """Find a topic."""
        if asked.topic_id != ZERO_UUID:
            topic = self._catalog.find_id(asked.topic_id)
            code, name = ErrorCode.UNKNOWN_TOPIC_ID, None
            if topic is not None and not self._visible.may_describe(topic):
                topic = None
        else:
            name = asked.name or ""
            if not self._visible.permit(name):
                return self._refuse(name)
            topic = self._catalog.find(name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is None and not names.is_legal(name):
                code = ErrorCode.INVALID_TOPIC_EXCEPTION
        if topic is not None:
            self._topics.append(self._describe(topic))
            return 0
        if name and self._allowance.left and not self._visible.permit_new(name):
            return self._refuse(name)
        if name and code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._allowance.take():
            self._topics.append(name)
            return CREATION_COST + self._partitions
        self._topics.append(
            MetadataResponseTopic(error_code=code, name=name, topic_id=asked.topic_id)
        )
        return 0

    def _refuse(self, name: str) -> int:
        """Say that the client may not, whether or not there is such a topic."""
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self._topics.append(MetadataResponseTopic(error_code=code, name=name))
        return 0

    def finish(self) -> Now[Sequence[DescribedTopic]]:
        """Create what is missing, and describe it."""
        missing = [each for each in self._topics if isinstance(each, str)]
        if not missing:
            return self._topics  # type: ignore[return-value]  # no name is among them
        errors, news = self._planned(missing)
        refusals = self._catalog.create(news) if news else NO_REFUSALS
        if isinstance(refusals, Awaitable):
            return self._finish_after(refusals, errors)
        return self._described(refusals, errors)

    async def _finish_after(
        self, refusals: Awaitable[Refusals], errors: dict[str, ErrorCode]
    ) -> Sequence[DescribedTopic]:
        return self._described(await refusals, errors)

    def _described(
        self, refusals: Refusals, errors: dict[str, ErrorCode]
    ) -> Sequence[DescribedTopic]:
        errors.update((name, refusal.code) for name, refusal in refusals.items())
        return [
            self._describe_new(each, errors) if isinstance(each, str) else each
            for each in self._topics
        ]

    def _planned(self, missing: list[str]) -> tuple[dict[str, ErrorCode], list[NewTopic]]:
        """Return the errors of topics that cannot be created, and those to be created."""
        errors: dict[str, ErrorCode] = {}
        news: list[NewTopic] = []
        for name in missing:
            try:
                names.check_new(name)
                self._catalog.check_room((len(news) + 1) * self._partitions)
                news.append(NewTopic(name=name, partition_count=self._partitions))
            except RequestError as error:
                errors[name] = error.code
        return errors, news

    def _describe_new(self, name: str, errors: dict[str, ErrorCode]) -> DescribedTopic:
        topic = self._catalog.find(name)
        if topic is None:
            # Without an error it was deleted again before it could be described.
            code = errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return MetadataResponseTopic(error_code=code, name=name)
        return self._describe(topic)
