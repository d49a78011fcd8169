"""ShareGroupDescribe: v1.

Behaviour
- The state, epochs and members of share groups, and which partitions each member reads.
- Any other group is GROUP_ID_NOT_FOUND.
- A client that may not describe a topic of a group gets TOPIC_AUTHORIZATION_FAILED for the group.
- A group that is named twice is described once; many members, in slices.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Iterator

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.consumer.surroundings import NameLookup
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.share.assignor import SIMPLE
from rockgate.gateway.kafka.groups.share.coordinator import ShareGroups
from rockgate.gateway.kafka.groups.share.machine import ShareMachine
from rockgate.gateway.kafka.groups.share.member import ShareMember
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import NOT_ASKED, UNCHECKED, Permitted
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


class ShareGroupDescribe:
    """Describes share groups."""

    def __init__(
        self,
        groups: Groups,
        shares: ShareGroups,
        topics: NameLookup,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._groups = groups
        self._shares = shares
        self._topics = topics
        self._permitted = permitted

    async def handle(
        self, request: ShareGroupDescribeRequest, call: Call
    ) -> ShareGroupDescribeResponse:
        """Describe each, with other requests in between."""
        turn, room = Turn(), Room()
        groups = Growing(ShareGroupDescribeResponse, DescribedGroup, call.version, room)
        for name in dict.fromkeys(request.group_ids):
            group = self._group(name)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = self._permitted.operations(
                    call.peer, AclResourceType.GROUP, name
                )
            found = self._shares.find(name)
            if found is not None:
                members = Growing(ShareGroupDescribeResponse, Member, call.version, Room())
                # A copy, because members come and go between two turns.
                for each in list(found.members.values()):
                    if not self._may_see(call.peer, each):
                        members.take()
                        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                        reason = (
                            "The group has described topic(s) that the client is not authorized "
                            "to describe."
                        )
                        group = DescribedGroup(group_id=name, error_code=code, error_message=reason)
                        break
                    members.add(self._member(each))
                    if turn.is_over:
                        await turn.next()
                group.members = members.take()
            groups.add(group)
            if turn.is_over:
                await turn.next()
        return ShareGroupDescribeResponse(groups=groups.take())

    def refuse(
        self, request: ShareGroupDescribeRequest, code: ErrorCode
    ) -> ShareGroupDescribeResponse:
        """The same error for every group."""
        code = coordinator_code(code)
        return ShareGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=name, error_code=code)
                for name in dict.fromkeys(request.group_ids)
            ]
        )

    def _group(self, name: str) -> DescribedGroup:
        """A group without its members."""
        view = self._groups.describe(name)
        if view is None or view.kind is not GroupType.SHARE:
            return DescribedGroup(
                group_id=name,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {name} not found."
                if view is None
                else f"Group {name} is not a share group.",
                authorized_operations=NOT_ASKED,
            )
        found: ShareMachine | None = self._shares.find(name)
        epoch = self._groups.last_generation(name)
        return DescribedGroup(
            group_id=name,
            group_state=view.state.value,
            group_epoch=epoch if found is None else found.epoch,
            assignment_epoch=epoch if found is None else found.assignment_epoch,
            assignor_name=SIMPLE,
        )

    def _may_see(self, peer: Peer, member: ShareMember) -> bool:
        read = set(member.names)
        read.update(name for name, _, _ in self._named(member))
        may = self._permitted.may
        return all(may(peer, AclOperation.DESCRIBE, AclResourceType.TOPIC, name) for name in read)

    def _member(self, member: ShareMember) -> Member:
        return Member(
            member_id=member.id,
            rack_id=member.rack_id,
            member_epoch=member.epoch or 0,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.names),
            assignment=Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(held))
                    for name, topic_id, held in self._named(member)
                ]
            ),
        )

    def _named(self, member: ShareMember) -> Iterator[tuple[str, bytes, frozenset[int]]]:
        """What a member reads of topics that still exist."""
        for topic_id, held in member.assigned.items():
            name = self._topics.name_of(topic_id)
            if name is not None:
                yield name, topic_id, held
