"""DescribeShareGroupOffsets: v0-1.

Behaviour
- Of partitions of share groups, where each group is: everything before that offset is finished.
  Without topics, of all partitions that a group has read.
- A partition that the group has not read is -1, without an error; so is one that does not exist.
- A group that does not exist is GROUP_ID_NOT_FOUND. Topics that the client may not describe are
  left out, or TOPIC_AUTHORIZATION_FAILED if they were named.
- A group that is named twice is described once; many partitions, in slices.

Versions
- v1: lag, the number of records from there on that are not finished.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.embedded.resolve import find_queue, find_topic
from rockgate.gateway.kafka.fetch.partitions import PartitionReader
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.share.records import ShareRecords
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from rockgate.protocol.kafka.schema import ZERO_UUID
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import TopicLookup

UNKNOWN: Final = -1
Asked = Iterable[tuple[str, Iterable[int]]]


class DescribeShareGroupOffsets:
    """Describes where share groups are."""

    def __init__(
        self,
        *,
        groups: Groups,
        records: ShareRecords,
        topics: TopicLookup,
        queues: Queues,
        reader: PartitionReader,
        leader_epoch: int,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._groups = groups
        self._records = records
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._leader_epoch = leader_epoch
        self._permitted = permitted

    async def handle(
        self, request: DescribeShareGroupOffsetsRequest, call: Call
    ) -> DescribeShareGroupOffsetsResponse:
        """Describe each group, with other requests in between."""
        turn, room = Turn(), Room()
        groups = Growing(
            DescribeShareGroupOffsetsResponse,
            DescribeShareGroupOffsetsResponseGroup,
            call.version,
            room,
        )
        for asked in {each.group_id: each for each in request.groups}.values():
            group = self._group(asked.group_id)
            if not group.error_code:
                described = Growing(
                    DescribeShareGroupOffsetsResponse,
                    DescribeShareGroupOffsetsResponseTopic,
                    call.version,
                    Room(),
                )
                for topic in self._described(asked, call.peer):
                    described.add(topic)
                    if turn.is_over:
                        await turn.next()
                group.topics = described.take()
            groups.add(group)
            if turn.is_over:
                await turn.next()
        return DescribeShareGroupOffsetsResponse(groups=groups.take())

    def refuse(
        self, request: DescribeShareGroupOffsetsRequest, code: ErrorCode
    ) -> DescribeShareGroupOffsetsResponse:
        """The same error for every group."""
        code = coordinator_code(code)
        return DescribeShareGroupOffsetsResponse(
            groups=[
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=each, error_code=code, error_message=code.meaning
                )
                for each in dict.fromkeys(group.group_id for group in request.groups)
            ]
        )

    def _group(self, name: str) -> DescribeShareGroupOffsetsResponseGroup:
        view = self._groups.describe(name)
        if view is not None and view.kind is GroupType.SHARE:
            return DescribeShareGroupOffsetsResponseGroup(group_id=name)
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=name,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Share group {name} not found."
            if view is None
            else f"Group {name} is not a share group.",
        )

    def _described(
        self, asked: DescribeShareGroupOffsetsRequestGroup, peer: Peer
    ) -> Iterator[DescribeShareGroupOffsetsResponseTopic]:
        group = asked.group_id
        wanted: Asked = (
            self._read(group)
            if asked.topics is None
            else ((each.topic_name, each.partitions) for each in asked.topics)
        )
        for name, partitions in wanted:
            topic = find_topic(self._topics, name)
            if not self._permitted.may(peer, AclOperation.DESCRIBE, AclResourceType.TOPIC, name):
                if asked.topics is not None:
                    yield _refused(name, partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                continue
            yield DescribeShareGroupOffsetsResponseTopic(
                topic_name=name,
                topic_id=ZERO_UUID if topic is None else topic.id,
                partitions=[
                    self._partition(
                        group,
                        each,
                        None if topic is None else find_queue(self._queues, topic, each),
                    )
                    for each in partitions
                ],
            )

    def _read(self, group: str) -> Asked:
        """The partitions that a group has read."""
        found: dict[bytes, list[int]] = {}
        for window in self._records.windows(group):
            found.setdefault(window.key[1], []).append(window.key[2])
        for topic_id, numbers in found.items():
            topic = self._topics.find_id(topic_id)
            if topic is not None:
                yield names.to_kafka(topic.name), sorted(numbers)

    def _partition(
        self, group: str, index: int, queue: Queue | None
    ) -> DescribeShareGroupOffsetsResponsePartition:
        window = None if queue is None else self._records.find(group, queue)
        if queue is None or window is None:
            return DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, start_offset=UNKNOWN, leader_epoch=0
            )
        log_start, high_watermark, _ = self._reader.bounds(queue)
        ahead = max(0, high_watermark - max(window.end, log_start))
        behind = sum(
            run.end - max(run.first, log_start) for run in window.runs() if run.end > log_start
        )
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index,
            start_offset=max(window.start, log_start),
            leader_epoch=self._leader_epoch,
            lag=ahead + behind,
        )


def _refused(
    name: str, partitions: Iterable[int], code: ErrorCode
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=ZERO_UUID,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=each,
                start_offset=UNKNOWN,
                leader_epoch=0,
                error_code=code,
                error_message=code.meaning,
            )
            for each in partitions
        ],
    )
