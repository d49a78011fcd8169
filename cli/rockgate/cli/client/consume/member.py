"""A member of a classic group: joins, syncs, heartbeats, commits, leaves.

    joining ──JoinGroup──► syncing ──SyncGroup──► stable ──"rebalance"──► joining
                                                    └──leave──► gone

It revokes everything before it rejoins (as an eager member does), also in a group that rebalances
cooperatively: that is always safe, and a command line has no state that is costly to rebuild.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from rockgate.cli.client.admin import committed
from rockgate.cli.client.admin.committed import Membership
from rockgate.cli.client.admin.groups import CONSUMER_PROTOCOL
from rockgate.cli.client.consume.assignor import ASSIGNORS, MemberSubscription
from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import COORDINATOR_MOVED, Cluster
from rockgate.cli.client.kafka.errors import ClientError, Refused, Unreachable
from rockgate.cli.client.kafka.view import Place, by_topic
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_versioned,
)
from rockgate.protocol.kafka.errors import ErrorCode, MalformedMessage
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

SESSION_MS: Final = 45_000
REBALANCE_MS: Final = 300_000
BEAT_S: Final = 3.0
_PAUSE_S: Final = 0.1
_SUBSCRIPTION_VERSION: Final = 1
_FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_JOIN_AGAIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})


class Member:
    """One member. `join` gives its partitions; `is_stale` says when to join again."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: Sequence[str],
        *,
        session_ms: int = SESSION_MS,
        beat_s: float = BEAT_S,
    ) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._topics = sorted(topics)
        self._session_ms = session_ms
        self._beat_s = beat_s
        self._membership = Membership()
        self._assigned_counts: Mapping[str, int] = {}
        self._beating: asyncio.Task[None] | None = None
        self.is_stale = asyncio.Event()
        """Set when the group rebalances without this member."""
        self.failure: ClientError | None = None
        """Why heartbeats ended for good."""

    async def join(self) -> list[Place]:
        """Join, or join again, and give the partitions of this generation."""
        self._stop_beating()
        self.is_stale.clear()
        while True:
            await self._cluster.found(self._topics)
            broker = await self._cluster.coordinator(self._group_id)
            try:
                places = await self._join_once(broker)
            except Unreachable:
                # It is gone in the meantime: whether it returns is checked at the top.
                await asyncio.sleep(_PAUSE_S)
            except Refused as error:
                if error.code in _FORGOTTEN:
                    self._membership = Membership()
                elif error.code not in COORDINATOR_MOVED | _JOIN_AGAIN:
                    raise error.about(f"group {self._group_id}") from None
                await asyncio.sleep(_PAUSE_S)
            except asyncio.CancelledError:
                # The response may take minutes, and holds up all others on its connection.
                broker.close()
                raise
            else:
                break
        self._beating = asyncio.create_task(self._beat())
        return places

    async def commit(self, offsets: Mapping[Place, int]) -> Refused | None:
        """Commit as this member; a refusal means that the partitions have other owners by now."""
        if not offsets:
            return None
        done = await committed.commit(self._cluster, self._group_id, offsets, self._membership)
        refused = next((error for error in done.values() if error is not None), None)
        if refused is not None and refused.code in _FORGOTTEN | _JOIN_AGAIN:
            self.is_stale.set()
        return refused

    async def leave(self) -> None:
        """Leave at once, so that the others need not wait for the session timeout."""
        self._stop_beating()
        if not self._membership.member_id:
            return
        member_id, self._membership = self._membership.member_id, Membership()
        request = LeaveGroupRequest(
            group_id=self._group_id,
            member_id=member_id,
            members=[MemberIdentity(member_id=member_id, reason="the command ended")],
        )
        broker = await self._cluster.coordinator(self._group_id)
        await broker.ask(request, LeaveGroupResponse)

    async def partition_counts(self) -> dict[str, int]:
        """How many partitions the topics have now."""
        view = await self._cluster.found(self._topics)
        return {name: len(topic.partitions) for name, topic in view.topics.items()}

    async def check_growth(self) -> None:
        """The leader starts a new round when a topic has grown."""
        if self._assigned_counts and await self.partition_counts() != self._assigned_counts:
            self.is_stale.set()

    # Private

    async def _join_once(self, broker: Broker) -> list[Place]:
        subscription = encode_versioned(
            ConsumerProtocolSubscription(topics=self._topics), _SUBSCRIPTION_VERSION
        )
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._membership.member_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription) for name in ASSIGNORS
            ],
        )
        # The answer comes when every member has joined, which may take the whole rebalance.
        answer = await broker.ask(request, JoinGroupResponse, wait_s=REBALANCE_MS / 1000)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._membership = Membership(answer.member_id)
            request.member_id = answer.member_id
            answer = await broker.ask(request, JoinGroupResponse, wait_s=REBALANCE_MS / 1000)
        if answer.error_code:
            raise Refused(answer.error_code)
        self._membership = Membership(answer.member_id, answer.generation_id)
        assignments = []
        self._assigned_counts = {}
        if answer.leader == answer.member_id and not answer.skip_assignment:
            assignments = await self._divide(answer)
        return await self._sync(broker, answer, assignments)

    async def _divide(self, answer: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """What each member is assigned, of all topics that any member subscribes to."""
        subscriptions = {}
        for each in answer.members:
            try:
                decoded = decode_subscription(each.metadata)
            except MalformedMessage:
                continue
            owned = [(part.topic, i) for part in decoded.owned_partitions for i in part.partitions]
            subscriptions[each.member_id] = MemberSubscription(decoded.topics, owned)
        wanted = sorted(
            {topic for subscription in subscriptions.values() for topic in subscription.topics}
        )
        view = await self._cluster.metadata(wanted)
        counts = {name: len(topic.partitions) for name, topic in view.topics.items()}
        self._assigned_counts = {name: counts.get(name, 0) for name in self._topics}
        divided = ASSIGNORS[answer.protocol_name or "range"](subscriptions, counts)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=encode_versioned(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[
                            TopicPartition(topic=topic, partitions=indexes)
                            for topic, indexes in by_topic(places).items()
                        ]
                    ),
                    _SUBSCRIPTION_VERSION,
                ),
            )
            for member_id, places in divided.items()
        ]

    async def _sync(
        self,
        broker: Broker,
        joined: JoinGroupResponse,
        assignments: list[SyncGroupRequestAssignment],
    ) -> list[Place]:
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        answer = await broker.ask(request, SyncGroupResponse, wait_s=REBALANCE_MS / 1000)
        if answer.error_code:
            raise Refused(answer.error_code)
        if not answer.assignment:
            return []
        decoded = decode_assignment(answer.assignment)
        return sorted(
            (each.topic, i) for each in decoded.assigned_partitions for i in each.partitions
        )

    async def _beat(self) -> None:
        """Send heartbeats until the coordinator reports a rebalance."""
        while not self.is_stale.is_set():
            await asyncio.sleep(self._beat_s)
            request = HeartbeatRequest(
                group_id=self._group_id,
                generation_id=self._membership.generation,
                member_id=self._membership.member_id,
            )
            try:
                broker = await self._cluster.coordinator(self._group_id)
                code = (await broker.ask(request, HeartbeatResponse)).error_code
            except Unreachable:
                # The session may outlive a short absence; fetching notices a long one.
                continue
            except ClientError as error:
                self.failure = error
                self.is_stale.set()
                return
            if code in _FORGOTTEN | _JOIN_AGAIN:
                self.is_stale.set()
            elif code and code not in COORDINATOR_MOVED:
                self.failure = Refused(code, what=f"group {self._group_id}")
                self.is_stale.set()

    def _stop_beating(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None
