"""ConsumerGroupDescribe: v0-1.

Behaviour
- The state, epochs and members of consumer groups: what each member has, with what it is giving
  up, and what it should have.
- A group without members is described if it had some of the consumer protocol last; any other
  group is GROUP_ID_NOT_FOUND.
- A client that may not describe a topic of a group gets TOPIC_AUTHORIZATION_FAILED for the group.
- A group that is named twice is described once; many members, in slices.

Versions
- v1: the protocol of each member.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup
from rockgate.gateway.kafka.groups.consumer.machine import DEFAULT_ASSIGNOR
from rockgate.gateway.kafka.groups.consumer.member import Member as GroupMember
from rockgate.gateway.kafka.groups.consumer.member import Partitions
from rockgate.gateway.kafka.groups.consumer.surroundings import NameLookup
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import NOT_ASKED, UNCHECKED, Permitted
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


class ConsumerGroupDescribe:
    """Describes consumer groups."""

    def __init__(
        self, groups: Groups, topics: NameLookup, permitted: Permitted = UNCHECKED
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._permitted = permitted

    async def handle(
        self, request: ConsumerGroupDescribeRequest, call: Call
    ) -> ConsumerGroupDescribeResponse:
        """Describe each, with other requests in between."""
        turn, room = Turn(), Room()
        groups = Growing(ConsumerGroupDescribeResponse, DescribedGroup, call.version, room)
        for name in dict.fromkeys(request.group_ids):
            group = self._group(name)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = self._permitted.operations(
                    call.peer, AclResourceType.GROUP, name
                )
            found = self._groups.consumers and self._groups.consumers.find(name)
            if found:
                members = Growing(ConsumerGroupDescribeResponse, Member, call.version, Room())
                # A copy, because members come and go between two turns.
                for each in list(found.members.values()):
                    if not self._may_see(call.peer, each, found):
                        members.take()
                        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                        group = DescribedGroup(
                            group_id=name, error_code=code, error_message=code.meaning
                        )
                        break
                    members.add(self._member(each, found))
                    if turn.is_over:
                        await turn.next()
                group.members = members.take()
            groups.add(group)
            if turn.is_over:
                await turn.next()
        return ConsumerGroupDescribeResponse(groups=groups.take())

    def refuse(
        self, request: ConsumerGroupDescribeRequest, code: ErrorCode
    ) -> ConsumerGroupDescribeResponse:
        """The same error for every group."""
        code = coordinator_code(code)
        return ConsumerGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=name, error_code=code)
                for name in dict.fromkeys(request.group_ids)
            ]
        )

    def _group(self, name: str) -> DescribedGroup:
        """A group without its members."""
        view = self._groups.describe(name)
        if view is None or view.kind is not GroupType.CONSUMER:
            is_there = view is not None
            return DescribedGroup(
                group_id=name,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {name} is not a consumer group."
                if is_there
                else f"Group {name} not found.",
                authorized_operations=NOT_ASKED,
            )
        found = self._groups.consumers and self._groups.consumers.find(name)
        epoch = self._groups.last_generation(name)
        return DescribedGroup(
            group_id=name,
            group_state=view.state.value,
            group_epoch=found.head.epoch if found else epoch,
            assignment_epoch=found.head.assignment_epoch if found else epoch,
            assignor_name=found.assignor(DEFAULT_ASSIGNOR) if found else DEFAULT_ASSIGNOR,
        )

    def _may_see(self, peer: Peer, member: GroupMember, group: ConsumerGroup) -> bool:
        describe, topic = AclOperation.DESCRIBE, AclResourceType.TOPIC
        may = self._permitted.may
        read = set(member.subscription.names)
        for partitions in (member.owned(), group.target(member.id)):
            read.update(name for name, _, _ in self._named(partitions))
        return all(may(peer, describe, topic, name) for name in read)

    def _member(self, member: GroupMember, group: ConsumerGroup) -> Member:
        said = member.subscription
        return Member(
            member_id=member.id,
            instance_id=said.instance_id,
            rack_id=said.rack_id,
            member_epoch=member.epoch,
            client_id=said.client_id,
            client_host=said.client_host,
            subscribed_topic_names=sorted(said.names),
            subscribed_topic_regex=said.regex,
            assignment=self._assignment(member.owned()),
            target_assignment=self._assignment(group.target(member.id)),
            member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
        )

    def _assignment(self, partitions: Partitions) -> Assignment:
        return Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(held))
                for name, topic_id, held in self._named(partitions)
            ]
        )

    def _named(self, partitions: Partitions) -> Iterator[tuple[str, bytes, frozenset[int]]]:
        """Those of topics that still exist."""
        for topic_id, held in partitions.items():
            name = self._topics.name_of(topic_id)
            if name is not None:
                yield name, topic_id, held
