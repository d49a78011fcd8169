import asyncio
from collections.abc import Callable

import pytest
from tests.cli.client.brokers import Brokers
from tests.waiting import until

from rockgate.cli.client.consume.member import Member
from rockgate.cli.client.kafka.errors import Refused
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_versioned,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rockgate.protocol.kafka.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from rockgate.protocol.kafka.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rockgate.protocol.kafka.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Coordinator:
    """Answers as a coordinator of one group does; a test changes `codes` and `others`."""

    def __init__(self, brokers: Brokers) -> None:
        self.others: dict[str, list[str]] = {}
        self.leader = "me"
        self.protocol = "range"
        self.generation = 0
        self.codes: dict[type, list[int]] = {}
        self.assigned: dict[str, list[tuple[str, int]]] = {}
        brokers.coordinator = 2
        brokers.answers[ApiKey.JOIN_GROUP] = self.join
        brokers.answers[ApiKey.SYNC_GROUP] = self.sync
        brokers.answers[ApiKey.HEARTBEAT] = self.code_of(HeartbeatRequest, HeartbeatResponse)
        brokers.answers[ApiKey.LEAVE_GROUP] = self.code_of(LeaveGroupRequest, LeaveGroupResponse)

    def code_of(self, kind: type, answer: Callable[..., object]) -> Callable[..., object]:
        return lambda node, request: answer(error_code=self.next_code(kind))

    def next_code(self, kind: type) -> int:
        left = self.codes.get(kind, [])
        return left.pop(0) if left else 0

    def join(self, node: int, request: JoinGroupRequest) -> JoinGroupResponse:
        if not request.member_id:
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me")
        code = self.next_code(JoinGroupRequest)
        if code:
            return JoinGroupResponse(error_code=code)
        self.generation += 1
        (mine,) = {each.metadata for each in request.protocols}
        members = [JoinGroupResponseMember(member_id="me", metadata=mine)]
        for name, topics in self.others.items():
            told = encode_versioned(ConsumerProtocolSubscription(topics=topics), 1)
            members.append(JoinGroupResponseMember(member_id=name, metadata=told))
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=self.protocol,
            leader=self.leader,
            member_id="me",
            members=members if self.leader == "me" else [],
        )

    def sync(self, node: int, request: SyncGroupRequest) -> SyncGroupResponse:
        code = self.next_code(SyncGroupRequest)
        if code:
            return SyncGroupResponse(error_code=code)
        for each in request.assignments:
            told = decode_assignment(each.assignment)
            self.assigned[each.member_id] = [
                (part.topic, index)
                for part in told.assigned_partitions
                for index in part.partitions
            ]
        parts = [TopicPartition(topic=t, partitions=[i]) for t, i in self.assigned.get("me", [])]
        given = ConsumerProtocolAssignment(assigned_partitions=parts)
        return SyncGroupResponse(assignment=encode_versioned(given, 1))


@pytest.fixture
def brokers() -> Brokers:
    return Brokers({("t", index): 1 for index in range(4)}, nodes=(1, 2))


@pytest.fixture
def coordinator(brokers: Brokers) -> Coordinator:
    return Coordinator(brokers)


async def test_a_leader_divides_what_everyone_wants(
    brokers: Brokers, coordinator: Coordinator
) -> None:
    coordinator.others = {"other": ["t"]}
    async with brokers.cluster() as cluster:
        member = Member(cluster, "g", ["t"])
        places = await member.join()
        await member.leave()
    assert places == [("t", 0), ("t", 1)]
    assert coordinator.assigned["other"] == [("t", 2), ("t", 3)]
    assert {node for node, _ in brokers.requests(JoinGroupRequest)} == {2}
    ((_, left),) = brokers.requests(LeaveGroupRequest)
    assert left.members[0].member_id == "me"


async def test_it_takes_part_in_groups_of_every_assignor_it_offers(
    brokers: Brokers, coordinator: Coordinator
) -> None:
    async with brokers.cluster() as cluster:
        for name in ("range", "roundrobin", "cooperative-sticky"):
            coordinator.protocol = name
            member = Member(cluster, "g", ["t"])
            assert await member.join() == [("t", index) for index in range(4)]
            await member.leave()
    _, request = brokers.requests(JoinGroupRequest)[0]
    assert [each.name for each in request.protocols] == [
        "range",
        "roundrobin",
        "cooperative-sticky",
    ]


async def test_a_follower_takes_what_it_is_given(
    brokers: Brokers, coordinator: Coordinator
) -> None:
    coordinator.leader = "somebody else"
    coordinator.assigned["me"] = [("t", 3)]
    async with brokers.cluster() as cluster:
        member = Member(cluster, "g", ["t"])
        assert await member.join() == [("t", 3)]
        await member.leave()
    _, request = brokers.requests(SyncGroupRequest)[0]
    assert request.assignments == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (JoinGroupRequest, ErrorCode.UNKNOWN_MEMBER_ID),
        (JoinGroupRequest, ErrorCode.NOT_COORDINATOR),
        (JoinGroupRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (SyncGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS),
        (SyncGroupRequest, ErrorCode.ILLEGAL_GENERATION),
    ],
)
async def test_what_passes_is_tried_again(
    brokers: Brokers, coordinator: Coordinator, kind: type, code: int
) -> None:
    coordinator.codes[kind] = [code]
    async with brokers.cluster() as cluster:
        member = Member(cluster, "g", ["t"])
        assert len(await member.join()) == 4
        await member.leave()


async def test_what_does_not_pass_is_raised(brokers: Brokers, coordinator: Coordinator) -> None:
    coordinator.codes[JoinGroupRequest] = [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    async with brokers.cluster() as cluster:
        with pytest.raises(Refused, match=r"Group g: .*INCONSISTENT_GROUP_PROTOCOL"):
            await Member(cluster, "g", ["t"]).join()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ],
)
async def test_a_heartbeat_says_when_to_join_again(
    brokers: Brokers, coordinator: Coordinator, code: int
) -> None:
    coordinator.codes[HeartbeatRequest] = [0, ErrorCode.NOT_COORDINATOR, code]
    async with brokers.cluster() as cluster:
        member = Member(cluster, "g", ["t"], beat_s=0.001)
        await member.join()
        await until(member.is_stale.is_set, "the member knows")
        assert member.failure is None
        assert len(await member.join()) == 4
        await member.leave()
    beats = brokers.requests(HeartbeatRequest)
    assert [request.generation_id for _, request in beats[:3]] == [1, 1, 1]
    assert coordinator.generation == 2


async def test_a_commit_carries_member_and_generation(
    brokers: Brokers, coordinator: Coordinator
) -> None:
    codes = [0, ErrorCode.ILLEGAL_GENERATION]

    def commit(node: int, request: OffsetCommitRequest) -> OffsetCommitResponse:
        part = OffsetCommitResponsePartition(partition_index=0, error_code=codes.pop(0))
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[part])])

    brokers.answers[ApiKey.OFFSET_COMMIT] = commit
    async with brokers.cluster() as cluster:
        member = Member(cluster, "g", ["t"])
        await member.join()
        assert await member.commit({("t", 0): 42}) is None
        assert not member.is_stale.is_set()
        refused = await member.commit({("t", 0): 43})
        assert refused is not None and refused.code == ErrorCode.ILLEGAL_GENERATION
        assert member.is_stale.is_set()
        await member.leave()
    _, request = brokers.requests(OffsetCommitRequest)[0]
    assert (request.member_id, request.generation_id_or_member_epoch) == ("me", 1)
    assert request.topics[0].partitions[0].committed_offset == 42


async def test_a_topic_that_has_grown_makes_the_leader_join_again(
    brokers: Brokers, coordinator: Coordinator
) -> None:
    async with brokers.cluster() as cluster:
        member = Member(cluster, "g", ["t"])
        await member.join()
        await member.check_growth()
        assert not member.is_stale.is_set()
        brokers.leaders["t", 4] = 2
        await member.check_growth()
        assert member.is_stale.is_set()
        await member.leave()


async def test_who_gives_up_while_joining_leaves_on_a_new_connection(
    brokers: Brokers, coordinator: Coordinator
) -> None:
    """A coordinator answers nothing else on a connection while it holds a join back."""

    def hold(node: int, request: JoinGroupRequest) -> JoinGroupResponse | None:
        return None if request.member_id else coordinator.join(node, request)

    brokers.answers[ApiKey.JOIN_GROUP] = hold
    async with brokers.cluster() as cluster:
        member = Member(cluster, "g", ["t"])
        joining = asyncio.ensure_future(member.join())
        await until(lambda: len(brokers.requests(JoinGroupRequest)) == 2, "it joins")
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        await member.leave()
    assert len(brokers.requests(LeaveGroupRequest)) == 1
