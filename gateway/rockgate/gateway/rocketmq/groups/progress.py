"""Committed offsets where RocketMQ has them: at the master of each partition's queue.

So either kind of client continues where the other stopped. Brokers store an offset per group and
queue, and nothing beside it: no metadata and no epoch. A group has to exist at a broker before it
commits there, so it is created at every master first.

Of several first commits of a group in a topic that arrive side by side a broker loses some, though
it confirms them: each makes a table of the group's queues, and the last table counts. So until one
of them was confirmed they go one after another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.kafka.groups.progress import CommittedOffset, NewOffset
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.cluster.brokers import QueueName, checked, read
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.topics.catalog import Cluster, ClusterCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import SubscriptionGroupConfig
from rockgate.protocol.remoting.bodies.queues import CommittedTable
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.offsets import (
    GroupHeader,
    OffsetAnswer,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)

NAME_SIZE_MAX: Final = 120
GROUPS_MAX: Final = 100_000
"""Groups that are remembered; beyond that the oldest is forgotten, and asked for again."""
FIRST_VERSION_5: Final = 412
"""What RocketMQ 5.0.0 and later say that they are."""
TABLE_SIZE_MAX: Final = 64 << 20
_OTHERS: Final = re.compile(r"[^a-zA-Z0-9_|-]")


class _Offset(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class _Group:
    """A group that committed through this gateway."""

    __slots__ = ("beginning", "begun_at", "made_at", "partitions")

    def __init__(self) -> None:
        self.made_at: set[str] = set()
        self.begun_at: set[tuple[str, str]] = set()
        """Topics and brokers at which a commit was confirmed."""
        self.beginning = asyncio.Lock()
        self.partitions: dict[bytes, set[int]] = {}


class ClusterProgress:
    """The offsets of all groups. Which groups there are is known of this gateway's own only."""

    def __init__(self, cluster: Cluster, catalog: ClusterCatalog) -> None:
        self._cluster = cluster
        self._catalog = catalog
        self._groups: dict[str, _Group] = {}

    def has(self, group: str) -> bool:
        """Whether a group has committed anything here."""
        known = self._groups.get(group)
        return known is not None and bool(known.partitions)

    def groups(self) -> Iterable[str]:
        """The groups that have committed anything here."""
        return [name for name, group in self._groups.items() if group.partitions]

    def count(self, group: str, count_max: int) -> int:
        """How many partitions a group has committed in."""
        known = self._groups.get(group)
        return sum(map(len, known.partitions.values())) if known else 0

    async def fetch(
        self, group: str, topic_id: bytes, partitions: Sequence[int]
    ) -> list[CommittedOffset | None]:
        """What a group has committed in partitions of a topic, in their order."""
        return await asyncio.gather(*(self._fetch(group, topic_id, at) for at in partitions))

    async def partitions_of(self, group: str) -> Iterable[tuple[bytes, Sequence[int]]]:
        """The partitions that a group has committed in here."""
        known = self._groups.get(group)
        found = known.partitions.items() if known else ()
        return [(topic_id, sorted(partitions)) for topic_id, partitions in found]

    async def commit(self, group: str, offsets: Sequence[NewOffset]) -> Sequence[ErrorCode] | None:
        """Commit offsets, each at its broker."""
        codes = await asyncio.gather(*(self._commit(group, each) for each in offsets))
        return codes if any(codes) else None

    async def remove(self, group: str, partitions: Sequence[tuple[bytes, int]]) -> None:
        """Forget partitions here: a broker cannot delete the offset of a queue."""
        known = self._groups.get(group)
        for topic_id, partition in partitions if known else ():
            assert known is not None
            known.partitions.get(topic_id, set()).discard(partition)

    async def delete(self, groups: Sequence[str]) -> None:
        """Forget groups here."""
        for group in groups:
            self._groups.pop(group, None)

    # Private

    async def _fetch(self, group: str, topic_id: bytes, partition: int) -> CommittedOffset | None:
        topic = self._catalog.find_id(topic_id)
        name = wire_group(group)
        if topic is None or name is None or partition >= topic.queue_count:
            return None
        queue = topic.queue(partition)
        header = QueryConsumerOffsetHeader(
            consumer_group=name,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
        )
        code = RequestCode.QUERY_CONSUMER_OFFSET
        try:
            answer = await self._cluster.ask(queue.broker, code, header)
            if answer.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            offset = read(checked(answer), OffsetAnswer).offset
        except BrokerError as failed:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(failed)) from failed
        if offset < 0 or (offset == 0 and not await self._is_committed(name, queue)):
            return None
        self._note(group, topic_id, partition)
        return _Offset(offset)

    async def _is_committed(self, name: str, queue: QueueName) -> bool:
        """Whether an offset of 0 was committed: RocketMQ 4 also says 0 where there is none."""
        if self._cluster.version(queue.broker) >= FIRST_VERSION_5:
            return True
        code = RequestCode.GET_ALL_CONSUMER_OFFSET
        try:
            answer = checked(await self._cluster.ask(queue.broker, code))
            table = javajson.decode(answer.body, CommittedTable, "43", size_max=TABLE_SIZE_MAX)
        except MalformedRequest:
            return True
        except BrokerError as failed:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(failed)) from failed
        offsets = table.offset_table.get(f"{queue.topic}@{name}", {})
        return str(queue.queue_id) in {str(each) for each in offsets}

    async def _commit(self, group: str, offset: NewOffset) -> ErrorCode:
        topic = self._catalog.find_id(offset.topic_id)
        name = wire_group(group)
        if name is None:
            return ErrorCode.INVALID_GROUP_ID
        if topic is None or not 0 <= offset.partition < topic.queue_count:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        queue = topic.queue(offset.partition)
        header = UpdateConsumerOffsetHeader(
            consumer_group=name,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset.offset,
        )
        known, place = self._group(group), (queue.topic, queue.broker)
        try:
            if place in known.begun_at:
                await self._tell(group, name, queue.broker, header)
            else:
                async with known.beginning:
                    await self._tell(group, name, queue.broker, header)
                    known.begun_at.add(place)
        except BrokerError:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        self._note(group, offset.topic_id, offset.partition)
        return ErrorCode.NONE

    async def _tell(
        self, group: str, name: str, broker: str, header: UpdateConsumerOffsetHeader
    ) -> None:
        await self._make(group, name, broker)
        code = RequestCode.UPDATE_CONSUMER_OFFSET
        checked(await self._cluster.ask(broker, code, header))

    async def _make(self, group: str, name: str, broker: str) -> None:
        """Create a group at a broker, once."""
        known = self._group(group)
        if broker in known.made_at:
            return
        asked = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG
        answer = await self._cluster.ask(broker, asked, GroupHeader(group=name))
        if answer.code != ResponseCode.SUCCESS:
            body = javajson.encode(SubscriptionGroupConfig(group_name=name))
            code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
            checked(await self._cluster.ask(broker, code, None, body))
        known.made_at.add(broker)

    def _group(self, group: str) -> _Group:
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = _Group()
            if len(self._groups) > GROUPS_MAX:
                del self._groups[next(iter(self._groups))]
        return known

    def _note(self, group: str, topic_id: bytes, partition: int) -> None:
        self._group(group).partitions.setdefault(topic_id, set()).add(partition)


def wire_group(group: str) -> str | None:
    """The name of a group on RocketMQ's wire; None if it is too long there.

    A dot becomes a bar, and what RocketMQ refuses `%` and its bytes in hexadecimal.
    """
    name = _OTHERS.sub(_coded, group)
    return name if 0 < len(name) <= NAME_SIZE_MAX else None


def _coded(found: re.Match[str]) -> str:
    letter = found[0]
    return "|" if letter == "." else "".join(f"%{byte:02X}" for byte in letter.encode())
