"""Sequences of a classic group: three members that join, commit, leave and make mistakes.

join SLOTS            JoinGroup of these and of all current members, at once
sync SLOTS            SyncGroup of these at once; the leader, if included, assigns
beat SLOT LATE        Heartbeat, with a generation this much older than the member's
commit SLOT LATE OFFSET   OffsetCommit of a member; SLOT "" is no member
leave SLOT            LeaveGroup
committed             OffsetFetch
forget                OffsetDelete
describe              DescribeGroups: state and how many members
delete                DeleteGroups
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

from tests.differential import committing
from tests.differential.player import Answer, KafkaPlayer, Step, Wire, code
from tests.waiting import wait_until

from rockgate.protocol.kafka.consumer_protocol import ConsumerProtocolSubscription
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from rockgate.protocol.kafka.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rockgate.protocol.kafka.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from rockgate.protocol.kafka.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from rockgate.protocol.kafka.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from rockgate.protocol.kafka.schema import encode

TOPIC = "t"
GROUP = "g"
SLOTS = ("x", "y", "z")
SESSION_MS = 300_000
"""No session expires within a sequence, however slow the machine."""


class _Member:
    """A member as its client sees it."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.id = ""
        self.generation = -1
        self.leader = ""
        self.ids: list[str] = []
        self.is_in = False


class GroupPlayer(KafkaPlayer):
    """Plays these steps."""

    def begin(self) -> None:
        self.topic, self.group = self.name(TOPIC), self.name(GROUP)
        self.find_coordinator(0, self.group)
        committing.create_topic(self, self.topic, 1)
        self._members = {slot: _Member(Wire(self.address)) for slot in SLOTS}
        subscription = ConsumerProtocolSubscription(topics=[self.topic])
        self._subscription = b"\x00\x01" + encode(subscription, 1)

    def close(self) -> None:
        super().close()
        for member in self._members.values():
            member.wire.close()

    # Steps

    def join(self, slots: list[str]) -> Answer:
        """One after the other, because the order of concurrent ones depends on timing."""
        new = [slot for slot in SLOTS if slot in slots and not self._members[slot].is_in]
        return [self._rebalance([slot]) for slot in new] or [self._rebalance([])]

    def sync(self, slots: list[str]) -> Answer:
        asked = [slot for slot in SLOTS if slot in slots]
        # The leader first: others wait for it, and later requests on their connections would too.
        asked.sort(key=lambda slot: self._members[slot].id != self._members[slot].leader)
        if not any(self._leads(slot) for slot in asked):
            return "nobody leads"
        for slot in asked:
            self._members[slot].wire.send(self._sync_request(self._members[slot]), 5)
        found = []
        for slot in asked:
            synced = self._members[slot].wire.receive(SyncGroupResponse, 5)
            number = synced.error_code
            found.append([slot, code(number), bool(synced.assignment)])
        return sorted(found)

    def beat(self, slot: str, late: int) -> Answer:
        member = self._members[slot]
        request = HeartbeatRequest(
            group_id=self.group, generation_id=member.generation - late, member_id=member.id
        )
        return code(member.wire.ask(request, HeartbeatResponse, 4).error_code)

    def commit(self, slot: str, late: int, offset: int) -> Answer:
        if not slot:
            return committing.commit(self, self.group, self.topic, offset)
        member = self._members[slot]
        return committing.commit(
            self,
            self.group,
            self.topic,
            offset,
            member=member.id,
            generation=member.generation - late,
        )

    def leave(self, slot: str) -> Answer:
        member = self._members[slot]
        request = LeaveGroupRequest(
            group_id=self.group, members=[MemberIdentity(member_id=member.id)]
        )
        left = member.wire.ask(request, LeaveGroupResponse, 4)
        member.is_in = False
        return [code(left.error_code), [code(each.error_code) for each in left.members]]

    def committed(self) -> Answer:
        return committing.committed(self, self.group, self.topic, is_stable=False)

    def forget(self) -> Answer:
        return committing.forget(self, self.group, self.topic)

    def describe(self) -> Answer:
        request = DescribeGroupsRequest(groups=[self.group])
        (group,) = self.wire.ask(request, DescribeGroupsResponse, 5).groups
        return [code(group.error_code), group.group_state, group.protocol_type, len(group.members)]

    def delete(self) -> Answer:
        request = DeleteGroupsRequest(groups_names=[self.group])
        (result,) = self.wire.ask(request, DeleteGroupsResponse, 2).results
        return code(result.error_code)

    steps: ClassVar = {
        "join": join,
        "sync": sync,
        "beat": beat,
        "commit": commit,
        "leave": leave,
        "committed": committed,
        "forget": forget,
        "describe": describe,
        "delete": delete,
    }

    # Shared by steps

    def _leads(self, slot: str) -> bool:
        member = self._members[slot]
        return member.is_in and member.id == member.leader

    def _rebalance(self, new: list[str]) -> Answer:
        """JoinGroup of a new member, or none, and of all current members."""
        old = [slot for slot in SLOTS if self._members[slot].is_in]
        for slot in new:
            self._introduce(self._members[slot])
        self._send_joins(new, old)
        found: list[list[Any]] = []
        for slot in sorted([*new, *old]):
            member = self._members[slot]
            joined = member.wire.receive(JoinGroupResponse, 7)
            member.is_in = not joined.error_code
            if joined.error_code:
                found.append([slot, code(joined.error_code)])
                continue
            member.generation, member.leader = joined.generation_id, joined.leader
            member.ids = [each.member_id for each in joined.members]
            is_leader = member.leader == member.id
            found.append([slot, "NONE", joined.generation_id, is_leader, len(member.ids)])
        return found

    def _send_joins(self, new: list[str], old: list[str]) -> None:
        """Send all joins; current members send theirs once there is a rebalance.

        A follower of a stable group that joins earlier would get the current assignment, and be
        missing later.
        """
        before = self.describe()[1]
        old.sort(key=lambda slot: not self._leads(slot))
        first, rest = (new, old) if new else (old[:1], old[1:])
        for slot in first:
            self._members[slot].wire.send(self._join_request(self._members[slot]), 7)
        if rest and (new or before == "Stable"):
            wait_until(lambda: self.describe()[1] == "PreparingRebalance", "a rebalance begins")
        for slot in rest:
            self._members[slot].wire.send(self._join_request(self._members[slot]), 7)

    def _introduce(self, member: _Member) -> None:
        """Get a member id from the server, as new members must, or reuse an expired one."""
        member.id = ""
        answer = member.wire.ask(self._join_request(member), JoinGroupResponse, 7)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, code(answer.error_code)
        member.id = answer.member_id

    def _join_request(self, member: _Member) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=member.id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=self._subscription)
                for name in ("range", "roundrobin")
            ],
        )

    def _sync_request(self, member: _Member) -> SyncGroupRequest:
        ids = member.ids if member.id == member.leader else []
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=member.generation,
            member_id=member.id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=each.encode()) for each in ids
            ],
        )


def sequence(random: Random, length: int) -> list[Step]:
    """A sequence that starts with a commit or a join, and continues with anything."""
    steps: list[Step] = []
    while len(steps) < length:
        slot = random.choice(SLOTS)
        steps += random.choice(_STEPS)(random, slot)
    return [*steps, ["describe"], ["committed"]]


_STEPS = (
    lambda random, slot: [["join", sorted({slot, random.choice(SLOTS)})], ["sync", [*SLOTS]]],
    lambda random, slot: [["join", [slot]], ["sync", [*SLOTS]]],
    lambda random, slot: [["join", [slot]]],
    lambda random, slot: [["sync", [*SLOTS]]],
    lambda random, slot: [["beat", slot, random.choice((0, 0, 1, -1))]],
    lambda random, slot: [["commit", slot, random.choice((0, 0, 0, 1)), random.randrange(100)]],
    lambda random, slot: [["commit", "", 0, random.randrange(100)]],
    lambda random, slot: [["leave", slot]],
    lambda random, slot: [["committed"]],
    lambda random, slot: [["forget"]],
    lambda random, slot: [["describe"]],
    lambda random, slot: [["delete"]],
)
