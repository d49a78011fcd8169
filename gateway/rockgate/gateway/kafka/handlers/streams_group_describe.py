"""StreamsGroupDescribe: v0.

Behaviour
- The state, epochs, topology and members of streams groups. The topology has the numbers of
  partitions of internal topics once they are known. The tasks of a member are those that it may
  compute; the target is what it should have.
- A group without members is described with its last topology; one that is no streams group is
  GROUP_ID_NOT_FOUND.
- A client that may not describe a topic of the topology gets TOPIC_AUTHORIZATION_FAILED.
- A group that is named twice is described once; many members, in slices.

Versions
- v0.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.streams.configured import ConfiguredTopology
from rockgate.gateway.kafka.groups.streams.coordinator import StreamsGroups
from rockgate.gateway.kafka.groups.streams.group import StreamsGroup
from rockgate.gateway.kafka.groups.streams.member import StreamsMember, StreamsTasks, TaskIds
from rockgate.gateway.kafka.groups.streams.topology import InternalTopic, StreamsTopology
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import NOT_ASKED, UNCHECKED, Permitted
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages import streams_group_describe as wire
from rockgate.protocol.kafka.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

_FORBIDDEN: Final = "The described group uses topics that the client is not authorized to describe."


class StreamsGroupDescribe:
    """Describes streams groups."""

    def __init__(
        self, groups: Groups, streams: StreamsGroups, permitted: Permitted = UNCHECKED
    ) -> None:
        self._groups = groups
        self._streams = streams
        self._permitted = permitted

    async def handle(
        self, request: StreamsGroupDescribeRequest, call: Call
    ) -> StreamsGroupDescribeResponse:
        """Describe each, with other requests in between."""
        turn, room = Turn(), Room()
        groups = Growing(StreamsGroupDescribeResponse, DescribedGroup, call.version, room)
        for name in dict.fromkeys(request.group_ids):
            group, members = self._group(name, call.peer)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = self._permitted.operations(
                    call.peer, AclResourceType.GROUP, name
                )
            described = Growing(StreamsGroupDescribeResponse, wire.Member, call.version, Room())
            # A copy, because members come and go between two turns.
            for member, target in members:
                described.add(_member(member, target))
                if turn.is_over:
                    await turn.next()
            group.members = described.take()
            groups.add(group)
            if turn.is_over:
                await turn.next()
        return StreamsGroupDescribeResponse(groups=groups.take())

    def refuse(
        self, request: StreamsGroupDescribeRequest, code: ErrorCode
    ) -> StreamsGroupDescribeResponse:
        """The same error for every group."""
        code = coordinator_code(code)
        return StreamsGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=name, error_code=code)
                for name in dict.fromkeys(request.group_ids)
            ]
        )

    def _group(
        self, name: str, peer: Peer
    ) -> tuple[DescribedGroup, list[tuple[StreamsMember, StreamsTasks]]]:
        """A group without its members, and these with their targets."""
        view = self._groups.describe(name)
        if view is None or view.kind is not GroupType.STREAMS:
            reason = "not found" if view is None else "is not a streams group"
            code = ErrorCode.GROUP_ID_NOT_FOUND
            return _failed(name, code, f"Group {name} {reason}."), []
        machine = self._streams.machine(name)
        group = self._streams.without_members(name) if machine is None else machine.group
        configured = None if machine is None else machine.configured
        if not self._may_see(group, peer):
            return _failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _FORBIDDEN), []
        described = DescribedGroup(
            group_id=name,
            group_state=group.state.value,
            group_epoch=group.head.epoch,
            assignment_epoch=group.head.assignment_epoch,
            topology=None if group.topology is None else _topology(group.topology, configured),
            authorized_operations=NOT_ASKED,
        )
        return described, [(each, group.target(each.id)) for each in group.members.values()]

    def _may_see(self, group: StreamsGroup, peer: Peer) -> bool:
        describe, topic = AclOperation.DESCRIBE, AclResourceType.TOPIC
        named = () if group.topology is None else group.topology.named()
        return all(self._permitted.may(peer, describe, topic, name) for name in named)


def _failed(name: str, code: ErrorCode, reason: str) -> DescribedGroup:
    return DescribedGroup(
        group_id=name, error_code=code, error_message=reason, authorized_operations=NOT_ASKED
    )


def _topology(topology: StreamsTopology, configured: ConfiguredTopology | None) -> wire.Topology:
    is_ready = configured is not None and configured.is_ready

    def infos(topics: Iterable[InternalTopic]) -> list[wire.TopicInfo]:
        found = sorted(topics, key=lambda topic: topic.name)
        if configured is not None and is_ready:
            found = [configured.with_count(topic) for topic in found]
        return [
            wire.TopicInfo(
                name=topic.name,
                partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                topic_configs=[wire.KeyValue(key=key, value=value) for key, value in topic.configs],
            )
            for topic in found
        ]

    return wire.Topology(
        epoch=topology.epoch,
        subtopologies=[
            wire.Subtopology(
                subtopology_id=each.id,
                source_topics=sorted(each.sources),
                repartition_sink_topics=sorted(each.repartition_sinks),
                state_changelog_topics=infos(each.changelogs),
                repartition_source_topics=infos(each.repartition_sources),
            )
            for each in topology.subtopologies
        ],
    )


def _member(member: StreamsMember, target: StreamsTasks) -> wire.Member:
    process = member.process
    endpoint = process.endpoint
    return wire.Member(
        member_id=member.id,
        member_epoch=member.epoch,
        rack_id=process.rack_id,
        client_id=process.client_id,
        client_host=process.client_host,
        topology_epoch=process.topology_epoch,
        process_id=process.id,
        user_endpoint=None
        if endpoint is None
        else wire.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[wire.KeyValue(key=key, value=value) for key, value in process.tags],
        assignment=_assignment(member.assigned.without_epochs()),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: StreamsTasks) -> wire.Assignment:
    return wire.Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(ids: TaskIds) -> list[wire.TaskIds]:
    return [
        wire.TaskIds(subtopology_id=subtopology, partitions=sorted(parts))
        for subtopology, parts in sorted(ids.items())
    ]
