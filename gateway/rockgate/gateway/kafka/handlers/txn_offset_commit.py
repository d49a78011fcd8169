"""TxnOffsetCommit: v0-5.

Behaviour
- Offsets are pending, and become the group's when the transaction commits; they are not visible
  before.
- Each partition succeeds or fails independently, as in OffsetCommit.
- From v3 on the request names the member of the group, and is refused if the group has rebalanced
  without it (KIP-447). The producer and its transaction are checked before that. A member epoch
  that is stale is ILLEGAL_GENERATION, because producers know no other error for it (KIP-1251).
- A request of more than SLICE_COUNT partitions, or as much metadata, is stored a slice at a time,
  with others in between. A slice whose producer or member was fenced meanwhile is refused like a
  separate request.

Versions
- v2: leader epochs.  v3: flexible, member and generation.  v4: TRANSACTION_ABORTABLE.  v5: the
  group is added to the transaction implicitly.

Departs from Kafka
- A negative offset is OFFSET_OUT_OF_RANGE.
- Pending offsets of transactions are limited (`transactions.offsets_bytes_max`): above the limit
  the error is TRANSACTION_ABORTABLE, or INVALID_COMMIT_OFFSET_SIZE up to v3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from rockgate.gateway.kafka.embedded.resolve import find_topic
from rockgate.gateway.kafka.groups.classic import events
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import has_partition
from rockgate.gateway.kafka.transactions.answers import fenced_code
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.transaction import Offset, ProducerIdAndEpoch
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from rockgate.store.api.topics import TopicLookup

SLICE_COUNT: Final = 500
"""Partitions whose offsets are stored before others get a turn; long metadata counts as more."""
_METADATA_SIZE: Final = 1_024
"""Characters of metadata that count as one more."""
_ABORTABLE = 4
_ADDS = 5
_Slice = list[tuple[int, Sequence[TxnOffsetCommitRequestPartition]]]
"""Partitions, by the index of their topic in the request."""


class TxnOffsetCommit:
    """Stores offsets until the end of a transaction."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        groups: Groups,
        coordinator: Coordinator,
        durability: Durability,
        metadata_bytes_max: int,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._coordinator = coordinator
        self._durability = durability
        self._metadata_bytes_max = metadata_bytes_max

    def handle(
        self, request: TxnOffsetCommitRequest, call: Call
    ) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
        """Store what can be stored, if the caller may."""
        if not request.group_id:
            return self.refuse(request, ErrorCode.INVALID_GROUP_ID)
        response = TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(name=topic.name, partitions=[])
                for topic in request.topics
            ]
        )
        slices = _slices(request.topics)
        first, second = next(slices, None), next(slices, None)
        if first is not None and second is not None:
            left = chain((first, second), slices)
            return self._keep_slices(request, response, left, call.version)
        if first is not None:
            self._keep_slice(request, response, first, call.version)
        return self._durability.after_changes(response)

    async def _keep_slices(
        self,
        request: TxnOffsetCommitRequest,
        response: TxnOffsetCommitResponse,
        slices: Iterable[_Slice],
        version: int,
    ) -> TxnOffsetCommitResponse:
        for part in slices:
            self._keep_slice(request, response, part, version)
            await asyncio.sleep(0)
        answer = self._durability.after_changes(response)
        return await answer if isinstance(answer, Awaitable) else answer

    def _keep_slice(
        self,
        request: TxnOffsetCommitRequest,
        response: TxnOffsetCommitResponse,
        part: _Slice,
        version: int,
    ) -> None:
        """Store some of the offsets, and return the outcome of each."""
        found: list[tuple[TxnOffsetCommitResponsePartition, Offset | None]] = []
        for at, wanted in part:
            topic = find_topic(self._topics, request.topics[at].name)
            for each in wanted:
                answer = TxnOffsetCommitResponsePartition(partition_index=each.partition_index)
                response.topics[at].partitions.append(answer)
                if not has_partition(topic, each.partition_index):
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    continue
                code = self._check(each)
                found.append((answer, None if code else _offset(topic.id, each)))
                answer.error_code = code
        if not found:
            return
        offsets = [offset for _, offset in found if offset is not None]
        code = fenced_code(self._keep(request, offsets, version), False)
        if code:
            for answer, _ in found:
                answer.error_code = code

    def refuse(self, request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
        """Reject every partition with the same error."""
        code = fenced_code(code, False)
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _check_member(
        self, request: TxnOffsetCommitRequest, offsets: Sequence[Offset]
    ) -> ErrorCode:
        is_member = request.generation_id >= 0 or request.member_id or request.group_instance_id
        if not is_member:
            # Older clients do not say who they are; the producer's epoch is their only fence.
            return ErrorCode.NONE
        waiter: Waiter[ErrorCode] = Waiter()
        commit = events.Commit(
            waiter=waiter,
            generation=request.generation_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
        )
        return self._groups.check_commit(
            request.group_id,
            commit,
            lambda: ((each.topic_id, each.queue_id) for each in offsets),
        )

    def _check(self, asked: TxnOffsetCommitRequestPartition) -> ErrorCode:
        metadata = asked.committed_metadata
        if metadata and len(metadata.encode("utf-8", "surrogatepass")) > self._metadata_bytes_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.OFFSET_OUT_OF_RANGE if asked.committed_offset < 0 else ErrorCode.NONE

    def _keep(
        self, request: TxnOffsetCommitRequest, offsets: list[Offset], version: int
    ) -> ErrorCode:
        id_, group = request.transactional_id, request.group_id
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        is_new = version >= _ABORTABLE
        try:
            if not self._coordinator.admit(id_, producer, group, adds=version >= _ADDS):
                return ErrorCode.TRANSACTION_ABORTABLE if is_new else ErrorCode.INVALID_TXN_STATE
            code = self._check_member(request, offsets)
            if not code:
                self._coordinator.offsets(id_, producer, group, offsets)
        except RequestError as error:
            code = error.code
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            return ErrorCode.ILLEGAL_GENERATION
        if code is ErrorCode.INVALID_COMMIT_OFFSET_SIZE and is_new:
            return ErrorCode.TRANSACTION_ABORTABLE
        return code


def _offset(topic_id: bytes, asked: TxnOffsetCommitRequestPartition) -> Offset:
    return Offset(
        topic_id,
        asked.partition_index,
        asked.committed_offset,
        max(asked.committed_leader_epoch, -1),
        asked.committed_metadata or "",
    )


def _slices(topics: Sequence[TxnOffsetCommitRequestTopic]) -> Iterator[_Slice]:
    """Return the partitions of a request in parts, by the index of their topic."""
    slice_: _Slice = []
    left = SLICE_COUNT
    for at, topic in enumerate(topics):
        part: list[TxnOffsetCommitRequestPartition] = []
        for each in topic.partitions:
            if left <= 0:
                yield slice_
                slice_, part, left = [], [], SLICE_COUNT
            if not part:
                slice_.append((at, part))
            part.append(each)
            left -= 1 + len(each.committed_metadata or "") // _METADATA_SIZE
    if slice_:
        yield slice_
