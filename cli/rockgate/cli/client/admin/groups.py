"""Groups as an administrator sees them: list, describe, offsets, delete."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Place
from rockgate.protocol.kafka.consumer_protocol import decode_assignment
from rockgate.protocol.kafka.errors import ErrorCode, MalformedMessage
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from rockgate.protocol.kafka.messages.consumer_group_describe import (
    Member as ConsumerMember,
)
from rockgate.protocol.kafka.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from rockgate.protocol.kafka.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rockgate.protocol.kafka.messages.list_groups import ListGroupsRequest, ListGroupsResponse

CONSUMER_PROTOCOL: Final = "consumer"
DEAD: Final = "Dead"
EMPTY_STATES: Final = frozenset({"Empty", DEAD})
"""States in which offsets may be changed."""
_NOT_OF_THIS_KIND: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


class Listed(NamedTuple):
    """One group of a list; an older server leaves state and kind empty."""

    group_id: str
    kind: str
    state: str
    protocol_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member and its assigned partitions."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group as its coordinator describes it."""

    group_id: str
    kind: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    coordinator: str
    members: tuple[GroupMember, ...]

    @property
    def is_active(self) -> bool:
        """Whether it has members, in which case its offsets cannot be reset."""
        return self.state not in EMPTY_STATES

    def owners(self) -> dict[Place, GroupMember]:
        """The current reader of each partition."""
        return {place: member for member in self.members for place in member.assignment}


async def list_groups(
    cluster: Cluster, *, states: Sequence[str] = (), kinds: Sequence[str] = ()
) -> list[Listed]:
    """The groups of every broker that pass the filters, sorted."""
    await cluster.metadata(())
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))

    async def ask(broker: Broker) -> ListGroupsResponse:
        return await broker.ask(request, ListGroupsResponse)

    answers = await asyncio.gather(*(ask(cluster.node(each)) for each in cluster.node_ids))
    found = []
    for answer in answers:
        if answer.error_code:
            raise Refused(answer.error_code, what="listing groups")
        found += [
            Listed(each.group_id, each.group_type, each.group_state, each.protocol_type)
            for each in answer.groups
            if _passes(each.group_state, states) and _passes(each.group_type, kinds)
        ]
    return sorted(found)


async def describe(cluster: Cluster, group_id: str) -> Group:
    """One group, of whichever protocol; Refused if there is none."""

    async def ask(broker: Broker) -> Group:
        if await broker.serves(ApiKey.CONSUMER_GROUP_DESCRIBE):
            try:
                return await _describe_consumer(broker, group_id)
            except Refused as error:
                if error.code not in _NOT_OF_THIS_KIND:
                    raise
        return await _describe_classic(broker, group_id)

    return await cluster.ask_coordinator(group_id, ask)


async def delete(cluster: Cluster, group_id: str) -> None:
    """Delete a group and its offsets; Refused while it has members."""

    async def ask(broker: Broker) -> None:
        request = DeleteGroupsRequest(groups_names=[group_id])
        answer = await broker.ask(request, DeleteGroupsResponse)
        for each in answer.results:
            if each.error_code:
                raise Refused(each.error_code)

    await cluster.ask_coordinator(group_id, ask)


async def _describe_consumer(broker: Broker, group_id: str) -> Group:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    (found,) = (await broker.ask(request, ConsumerGroupDescribeResponse)).groups
    if found.error_code:
        raise Refused(found.error_code, found.error_message)
    return Group(
        group_id=found.group_id,
        kind="consumer",
        state=found.group_state,
        protocol_type=CONSUMER_PROTOCOL,
        assignor=found.assignor_name,
        epoch=found.group_epoch,
        coordinator=str(broker.address),
        members=tuple(
            _member(each, each.instance_id, _places(each.assignment)) for each in found.members
        ),
    )


async def _describe_classic(broker: Broker, group_id: str) -> Group:
    request = DescribeGroupsRequest(groups=[group_id])
    (found,) = (await broker.ask(request, DescribeGroupsResponse)).groups
    if found.error_code:
        raise Refused(found.error_code, found.error_message)
    if found.group_state == DEAD:
        # How servers before version 6 of the response report an unknown group.
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
    return Group(
        group_id=found.group_id,
        kind="classic",
        state=found.group_state,
        protocol_type=found.protocol_type,
        assignor=found.protocol_data,
        epoch=None,
        coordinator=str(broker.address),
        members=tuple(
            _member(each, each.group_instance_id, _decoded(each, found.protocol_type))
            for each in found.members
        ),
    )


def _member(
    member: ConsumerMember | DescribedGroupMember,
    instance_id: str | None,
    assignment: tuple[Place, ...],
) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        instance_id=instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=assignment,
    )


def _decoded(member: DescribedGroupMember, protocol_type: str) -> tuple[Place, ...]:
    """The partitions in an assignment; none where it is another protocol's own bytes."""
    if protocol_type != CONSUMER_PROTOCOL or not member.member_assignment:
        return ()
    try:
        assignment = decode_assignment(member.member_assignment)
    except MalformedMessage:
        return ()
    return tuple(
        sorted(
            (each.topic, index)
            for each in assignment.assigned_partitions
            for index in each.partitions
        )
    )


def _places(assignment: Assignment) -> tuple[Place, ...]:
    return tuple(
        sorted(
            (each.topic_name, index)
            for each in assignment.topic_partitions
            for index in each.partitions
        )
    )


def _passes(value: str, wanted: Sequence[str]) -> bool:
    """Older servers ignore a filter, so it is applied here again."""
    return not wanted or value.lower() in {each.lower() for each in wanted}
