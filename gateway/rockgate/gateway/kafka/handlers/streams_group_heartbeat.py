"""StreamsGroupHeartbeat: v0.

Behaviour
- Joins, stays in and leaves a streams group. The answer has the member's epoch, its tasks when they
  have changed, what is wrong with the group, and where the partitions of each end point are.
- The topology of a group is that of its first member. A member with a lower topology epoch stays
  and is STALE_TOPOLOGY; another topology is INVALID_REQUEST, as in Kafka 4.3.
- Repartition and changelog topics that are missing are created with the number of partitions and
  the configs that they need, if the client may create topics. Why one could not be is in the
  status.
- Static members, task offsets and patterns are INVALID_REQUEST, as in Kafka 4.3.
- What a response contains is in the log before, and flushed where the server flushes.

Versions
- v0.

Departs from Kafka
- Ids of more than 1,000 characters, more than 20 tags, and a request of more than 1 MiB are
  INVALID_REQUEST.
- A topology of more than 500 subtopologies, 2,000 topics or 512 KiB is STREAMS_INVALID_TOPOLOGY,
  and so is one that names a subtopology twice or an unknown topic in a co-partition group.
- More than `streams_groups.tasks_max` tasks are INCORRECTLY_PARTITIONED_TOPICS.
- The partitions of end points are left out when there are more than 20,000.
- A group with RocketMQ consumers is GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from rockgate.gateway.kafka.groups.streams.configured import GroupStatus, StatusCode, invalid
from rockgate.gateway.kafka.groups.streams.coordinator import StreamsGroups
from rockgate.gateway.kafka.groups.streams.endpoints import PartitionsAt
from rockgate.gateway.kafka.groups.streams.heartbeats import StreamsBeat, StreamsOutcome
from rockgate.gateway.kafka.groups.streams.member import StreamsTasks, TaskIds
from rockgate.gateway.kafka.groups.streams.topology import (
    SUBTOPOLOGIES_MAX,
    TOPICS_MAX,
    TOPOLOGY_BYTES_MAX,
    Copartition,
    InternalTopic,
    StreamsTopology,
    Subtopology,
    pack_topology,
)
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import streams_group_heartbeat as wire
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from rockgate.protocol.kafka.schema import Encoded

REQUEST_BYTES_MAX: Final = 1 << 20
ID_CHARS_MAX: Final = 1_000
CLIENT_ID_CHARS_MAX: Final = 255
TAGS_MAX: Final = 20
INTERNAL_TOPICS: Final = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
"""What Kafka's brokers have for themselves."""
CREATE_VERSION: Final = 7
_NAMED_MAX: Final = 3
Create: TypeAlias = Callable[
    [CreateTopicsRequest, Call], CreateTopicsResponse | Awaitable[CreateTopicsResponse]
]
"""Creates topics, as CreateTopics does."""


class StreamsGroupHeartbeat:
    """Keeps members in their groups."""

    def __init__(
        self,
        groups: StreamsGroups,
        durability: Durable,
        create: Create,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._groups = groups
        self._durability = durability
        self._create = create
        self._permitted = permitted

    def handle(
        self, request: StreamsGroupHeartbeatRequest, call: Call
    ) -> StreamsGroupHeartbeatResponse | Awaitable[StreamsGroupHeartbeatResponse]:
        """Answer a member."""
        groups = self._groups
        written_count = groups.written_count
        try:
            self._check(request, call)
            outcome = groups.beat(request.group_id, self._beat(request, call))
        except RequestError as error:
            return _refused(error.code, error.reason)
        response = _response(outcome)
        if outcome.missing:
            return self._respond_created(response, outcome.missing, call)
        if groups.written_count == written_count:
            return response
        return self._durability.after_changes(response)

    def refuse(
        self, request: StreamsGroupHeartbeatRequest | None, code: ErrorCode
    ) -> StreamsGroupHeartbeatResponse:
        """An error; there is no request if it was too large to be decoded."""
        return _refused(code, code.meaning)

    # Requests

    def _check(self, request: StreamsGroupHeartbeatRequest, call: Call) -> None:
        endpoint = request.user_endpoint
        ids = (
            request.group_id,
            request.member_id,
            request.instance_id,
            request.rack_id,
            request.process_id,
            None if endpoint is None else endpoint.host,
            *(text for tag in request.client_tags or () for text in (tag.key, tag.value)),
        )
        if max(len(each or "") for each in ids) > ID_CHARS_MAX:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"An id has more than {ID_CHARS_MAX:,} characters."
            )
        if len(request.client_tags or ()) > TAGS_MAX:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"The client has more than {TAGS_MAX:,} tags."
            )

    def _beat(self, request: StreamsGroupHeartbeatRequest, call: Call) -> StreamsBeat:
        endpoint, tags = request.user_endpoint, request.client_tags
        topology = None if request.topology is None else self._topology(request.topology, call)
        return StreamsBeat(
            member_id=request.member_id,
            epoch=request.member_epoch,
            endpoint_epoch=request.endpoint_information_epoch,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_ms=request.rebalance_timeout_ms,
            topology=topology,
            owned=_owned(request),
            process_id=request.process_id,
            endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            tags=None if tags is None else tuple(sorted({(tag.key, tag.value) for tag in tags})),
            has_offsets=request.task_offsets is not None or request.task_end_offsets is not None,
            shuts_down=request.shutdown_application,
            client_id=(call.client_id or "")[:CLIENT_ID_CHARS_MAX],
            client_host=f"/{call.peer.remote.host}",
        )

    def _topology(self, asked: wire.Topology, call: Call) -> StreamsTopology:
        """The topology of a request, if its topics have good names and the client may see them."""
        subtopologies = asked.subtopologies
        if any(each.source_topic_regex for each in subtopologies):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "Regular expressions for source topics are not supported yet.",
            )
        if asked.epoch < 0:
            raise invalid("The topology has a negative epoch.")
        topics = sum(map(_topic_count, subtopologies))
        if len(subtopologies) > SUBTOPOLOGIES_MAX or topics > TOPICS_MAX:
            raise invalid(
                f"The topology has more than {SUBTOPOLOGIES_MAX:,} subtopologies or "
                f"{TOPICS_MAX:,} topics."
            )
        made = {each.subtopology_id: _subtopology(each) for each in subtopologies}
        if len(made) < len(subtopologies):
            raise invalid("A subtopology is in the topology twice.")
        topology = StreamsTopology(asked.epoch, tuple(made[each] for each in sorted(made)))
        if len(pack_topology(topology)) > TOPOLOGY_BYTES_MAX:
            raise invalid(f"The topology has more than {TOPOLOGY_BYTES_MAX:,} bytes.")
        self._check_topics(sorted(topology.named()), call)
        return topology

    def _check_topics(self, named: Sequence[str], call: Call) -> None:
        if internal := [name for name in named if name in INTERNAL_TOPICS]:
            raise invalid(
                f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is "
                "prohibited."
            )
        if illegal := [name for name in named if not names.is_legal(name)]:
            raise invalid(f"Topic names {','.join(illegal)} are not valid topic names.")
        api, describe = ApiKey.STREAMS_GROUP_HEARTBEAT, AclOperation.DESCRIBE
        for name in named:
            if not self._permitted.permit(call.peer, api, describe, AclResourceType.TOPIC, name):
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                raise RequestError(code, code.meaning)

    # Internal topics

    async def _respond_created(
        self,
        response: StreamsGroupHeartbeatResponse,
        missing: Sequence[InternalTopic],
        call: Call,
    ) -> StreamsGroupHeartbeatResponse:
        """The response once the missing topics are created, or with why they could not be."""
        may, peer, create = self._permitted.may, call.peer, AclOperation.CREATE
        refused: list[str] = []
        if not may(peer, create, AclResourceType.CLUSTER, CLUSTER_NAME):
            refused = [
                topic.name
                for topic in missing
                if not may(peer, create, AclResourceType.TOPIC, topic.name)
            ]
        if refused:
            _explain(response, f"; Unauthorized to CREATE on topics {', '.join(refused)}.")
        else:
            request = CreateTopicsRequest(topics=[_creatable(topic) for topic in missing])
            creating = self._create(request, Call(CREATE_VERSION, call.client_id, peer))
            created = await creating if isinstance(creating, Awaitable) else creating
            failed = [reason for each in created.topics if (reason := _failure(each)) is not None]
            if failed:
                more = len(failed) - _NAMED_MAX
                listed = ", ".join(failed[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
                _explain(response, f"; Creation failed: {listed}.")
        answer = self._durability.after_changes(response)
        return await answer if isinstance(answer, Awaitable) else answer


# Requests


def _topic_count(each: wire.Subtopology) -> int:
    joined = sum(
        len(group.source_topics) + len(group.repartition_source_topics)
        for group in each.copartition_groups
    )
    return (
        joined
        + len(each.copartition_groups)
        + len(each.source_topics)
        + len(each.repartition_sink_topics)
        + len(each.state_changelog_topics)
        + len(each.repartition_source_topics)
    )


def _subtopology(each: wire.Subtopology) -> Subtopology:
    counts = (len(each.source_topics), len(each.repartition_source_topics))
    for group in each.copartition_groups:
        places = (group.source_topics, group.repartition_source_topics)
        for indexes, count in zip(places, counts, strict=True):
            if not all(0 <= index < count for index in indexes):
                raise invalid(
                    f"A co-partition group of subtopology {each.subtopology_id} names a topic "
                    "outside of its lists."
                )
    return Subtopology(
        each.subtopology_id,
        tuple(each.source_topics),
        tuple(map(_internal_topic, each.state_changelog_topics)),
        tuple(each.repartition_sink_topics),
        tuple(map(_internal_topic, each.repartition_source_topics)),
        tuple(
            Copartition(tuple(group.source_topics), tuple(group.repartition_source_topics))
            for group in each.copartition_groups
        ),
    )


def _internal_topic(topic: wire.TopicInfo) -> InternalTopic:
    if topic.partitions < 0:
        raise invalid(f"Topic {topic.name} has a negative number of partitions.")
    configs = tuple((config.key, config.value) for config in topic.topic_configs)
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _owned(request: StreamsGroupHeartbeatRequest) -> tuple[StreamsTasks, bool] | None:
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if all(kind is None for kind in kinds):
        return None
    tasks = StreamsTasks(*(_tasks(kind or ()) for kind in kinds))
    return tasks, all(kind is not None for kind in kinds)


def _tasks(ids: Sequence[wire.TaskIds]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for each in ids:
        if each.partitions:
            known = found.get(each.subtopology_id, frozenset())
            found[each.subtopology_id] = known.union(each.partitions)
    return found


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or -1,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )


# Responses


def _refused(code: ErrorCode, reason: str) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        error_code=coordinator_code(code), error_message=reason, status=[]
    )


def _response(outcome: StreamsOutcome) -> StreamsGroupHeartbeatResponse:
    response = StreamsGroupHeartbeatResponse(
        member_id=outcome.member_id,
        member_epoch=outcome.epoch,
        heartbeat_interval_ms=outcome.interval_ms,
        status=[_status(each) for each in outcome.statuses],
        endpoint_information_epoch=outcome.endpoint_epoch,
        partitions_by_user_endpoint=None
        if outcome.endpoints is None
        else [_endpoint(each) for each in outcome.endpoints],
    )
    if outcome.assigned is not None:
        tasks = outcome.assigned.without_epochs()
        response.active_tasks = _task_ids(tasks.active)
        response.standby_tasks = _task_ids(tasks.standby)
        response.warmup_tasks = _task_ids(tasks.warmup)
    return response


def _status(status: GroupStatus) -> wire.Status:
    return wire.Status(status_code=status.code, status_detail=status.detail)


def _task_ids(ids: TaskIds) -> list[wire.TaskIds]:
    return [
        wire.TaskIds(subtopology_id=subtopology, partitions=sorted(parts))
        for subtopology, parts in sorted(ids.items())
    ]


def _endpoint(at: PartitionsAt) -> wire.EndpointToPartitions:
    host, port = at.endpoint
    return wire.EndpointToPartitions(
        user_endpoint=wire.Endpoint(host=host, port=port),
        active_partitions=[
            wire.TopicPartition(topic=name, partitions=parts) for name, parts in at.active.items()
        ],
        standby_partitions=[
            wire.TopicPartition(topic=name, partitions=parts) for name, parts in at.standby.items()
        ],
    )


def _explain(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += detail


def _failure(result: CreatableTopicResult | Encoded) -> str | None:
    """Why a topic was not created; another member may have created it meanwhile."""
    if not isinstance(result, CreatableTopicResult):
        return None
    if result.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return None
    return f"{result.name} ({result.error_message or ErrorCode(result.error_code).meaning})"
