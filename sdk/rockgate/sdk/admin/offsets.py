"""Offsets of groups and queues: bounds, by time, committed; reset, cloned, as members have them."""

from __future__ import annotations

from datetime import datetime

from rockgate.protocol.remoting.bodies.queues import ConsumerStatus, OffsetTable
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.headers.offsets import (
    CloneOffsetsHeader,
    ConsumerStatusHeader,
    ResetOffsetHeader,
)
from rockgate.sdk.admin.calls import AdminCalls
from rockgate.sdk.admin.groups import GroupAdmin
from rockgate.sdk.admin.values import queue_of
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.pull.pull_consumer import ms_of
from rockgate.sdk.errors import Refused
from rockgate.sdk.message import check_group
from rockgate.sdk.results import Queue

END_MS = -1
NO_MEMBERS = (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.SYSTEM_ERROR)
"""Codes by which brokers before 5.0 refuse to reset a group without members online."""


class OffsetAdmin:
    """Administers offsets."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls
        self._queues = BrokerCalls(calls.client, "")

    # Queues

    async def begin(self, queue: Queue) -> int:
        """The offset of the first message that a queue still has."""
        return await self._queues.begin(queue)

    async def end(self, queue: Queue) -> int:
        """The offset that the next message of a queue gets."""
        return await self._queues.end(queue)

    async def search(self, queue: Queue, at: datetime) -> int:
        """The offset of the first message that was stored at this time or later."""
        return await self._queues.search(queue, ms_of(at))

    # Groups

    async def committed(self, group: str, queue: Queue) -> int | None:
        """How far a group is in a queue; None if its broker does not know."""
        return await BrokerCalls(self._calls.client, group).committed(queue)

    async def commit(self, group: str, queue: Queue, offset: int) -> None:
        """Set how far a group without members is in a queue; members would commit over it."""
        check_group(group)
        if offset < 0:
            raise ValueError(f"Offset must be at least 0, not {offset:,}.")
        await BrokerCalls(self._calls.client, group).commit(queue, offset, is_awaited=True)

    async def reset(
        self, group: str, topic: str, at: datetime | None = None, *, force: bool = True
    ) -> dict[Queue, int]:
        """Set a group to a time, or to the end of every queue; where it is then.

        Without `force` a queue that is behind that time stays where it is. Members are notified.
        """
        check_group(group)
        header = ResetOffsetHeader(
            topic=topic, group=group, timestamp=END_MS if at is None else ms_of(at), is_force=force
        )
        found: dict[Queue, int] = {}
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        for name, address in (await self._calls.masters_of(topic)).items():
            try:
                table = await self._calls.read(address, code, OffsetTable, header)
            except Refused as refused:
                if refused.code not in NO_MEMBERS or await GroupAdmin(self._calls).consumers(group):
                    raise
                found |= await self._reset_quietly(group, topic, name, at, force=force)
            else:
                items = table.offset_table.items.items()
                found |= {queue_of(queue): offset for queue, offset in items}
        return found

    async def _reset_quietly(
        self, group: str, topic: str, broker: str, at: datetime | None, *, force: bool
    ) -> dict[Queue, int]:
        """Do what brokers before 5.0 leave to the administrator when a group has no members."""
        found: dict[Queue, int] = {}
        for queue in (await self._calls.client.routes.readable(topic)).readable:
            if queue.broker != broker:
                continue
            wanted = await (self.end(queue) if at is None else self.search(queue, at))
            known = await self.committed(group, queue)
            if not force and known is not None and known < wanted:
                wanted = known
            await self.commit(group, queue, wanted)
            found[queue] = wanted
        return found

    async def clone(self, group: str, to: str, topic: str) -> None:
        """Copy a group's offsets in a topic to another group, which has no members."""
        check_group(to)
        header = CloneOffsetsHeader(src_group=group, dest_group=to, topic=topic, offline=True)
        for address in (await self._calls.masters_of(topic)).values():
            await self._calls.ask(address, RequestCode.CLONE_GROUP_OFFSET, header)

    async def status(
        self, group: str, topic: str, client_id: str | None = None
    ) -> dict[str, dict[Queue, int]]:
        """The offsets of a topic as each member of a group reports them, by client id."""
        header = ConsumerStatusHeader(topic=topic, group=group, client_addr=client_id)
        code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
        found: dict[str, dict[Queue, int]] = {}
        for address in (await self._calls.masters_of(topic)).values():
            answer = await self._calls.read(address, code, ConsumerStatus, header)
            for member, table in answer.consumer_table.items():
                queues = {queue_of(queue): offset for queue, offset in table.items.items()}
                found.setdefault(member, {}).update(queues)
        return found
