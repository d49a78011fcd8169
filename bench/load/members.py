"""Members of consumer groups by the thousand: one connection each, all on one loop.

A member joins, syncs, sends heartbeats and rejoins when asked to, as a client does. Its requests
and their latencies go to a ledger.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
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
from rockgate.protocol.kafka.schema import decode, encode

T = TypeVar("T")
TOPIC = "load"
SESSION_MS = 45_000
REBALANCE_MS = 60_000
HEARTBEAT_SECONDS = 3.0
"""The defaults of clients, for all three."""
MEMORY_MAX = 1 << 28
SUBSCRIPTION = b"\x00\x01" + encode(ConsumerProtocolSubscription(topics=[TOPIC]), 1)


class Ledger:
    """The latencies of all members."""

    def __init__(self) -> None:
        self.heartbeats: list[float] = []
        self.lags: list[float] = []
        """How late our own event loop was: the part of a heartbeat's latency that is ours."""
        self.largest_join = 0


class Wire(asyncio.Protocol):
    """One connection with one request in flight."""

    def __init__(self, client_id: str) -> None:
        self._connection = ClientConnection(client_id=client_id)
        self._waiter: asyncio.Future[memoryview] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def dial(cls, address: tuple[str, int], client_id: str) -> "Wire":
        """Connect."""
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(lambda: cls(client_id), *address)
        return wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport  # type: ignore[assignment] # uvloop has no base class for it

    def data_received(self, data: bytes) -> None:
        """Pass a response to its waiter."""
        for answer in self._connection.receive_data(data):
            assert self._waiter is not None
            if not self._waiter.done():
                self._waiter.set_result(answer.body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the waiter."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionError("the server closed the connection"))

    def close(self) -> None:
        """Close the connection without leaving the group."""
        assert self._transport is not None
        self._transport.close()

    async def call(self, key: ApiKey, version: int, request: Any, response: type[T]) -> T:
        """Send a request, and wait for the response."""
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._connection.send(key, version, [encode(request, version)])
        self._transport.writelines(self._connection.data_to_send())
        body = await self._waiter
        return decode(response, version, body, memory_max=MEMORY_MAX)


class Member:
    """One member of a group."""

    def __init__(
        self,
        wire: Wire,
        group: str,
        ledger: Ledger,
        stable: Callable[["Member"], None],
    ) -> None:
        self._wire = wire
        self.group = group
        self._ledger = ledger
        self._stable = stable
        self.id = ""
        self.generation = -1
        self.assigned = False

    async def live(self) -> None:
        """Be a member until cancelled."""
        while True:
            if not await self._join():
                continue
            self._stable(self)
            while await self._beat():
                pass
            self.assigned = False

    async def leave(self) -> None:
        """Leave the group."""
        request = LeaveGroupRequest(
            group_id=self.group, members=[MemberIdentity(member_id=self.id)]
        )
        await self._wire.call(ApiKey.LEAVE_GROUP, 4, request, LeaveGroupResponse)
        self._wire.close()

    async def _join(self) -> bool:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        joined = await self._wire.call(ApiKey.JOIN_GROUP, 7, request, JoinGroupResponse)
        self.id = joined.member_id
        if joined.error_code:
            if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.id = ""
            return False
        self.generation = joined.generation_id
        members = [member.member_id for member in joined.members]
        self._ledger.largest_join = max(self._ledger.largest_join, len(members))
        request_sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=_assignment(index))
                for index, member in enumerate(members)
            ],
        )
        synced = await self._wire.call(ApiKey.SYNC_GROUP, 5, request_sync, SyncGroupResponse)
        self.assigned = synced.error_code == 0
        return self.assigned

    async def _beat(self) -> bool:
        """Send the next heartbeat when it is due; False if there is a rebalance."""
        due = time.perf_counter() + HEARTBEAT_SECONDS
        await asyncio.sleep(HEARTBEAT_SECONDS)
        began = time.perf_counter()
        self._ledger.lags.append(began - due)
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.id
        )
        answer = await self._wire.call(ApiKey.HEARTBEAT, 4, request, HeartbeatResponse)
        self._ledger.heartbeats.append(time.perf_counter() - began)
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self.id = "" if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID else self.id
        return answer.error_code == ErrorCode.NONE


def _assignment(index: int) -> bytes:
    given = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic=TOPIC, partitions=[index])]
    )
    return b"\x00\x01" + encode(given, 1)
