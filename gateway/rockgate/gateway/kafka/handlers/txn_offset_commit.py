"""TxnOffsetCommit: v0-5.

Behaviour
- Offsets are kept, and become the group's when the transaction commits. Nobody sees them before.
- Each partition succeeds or fails alone, as in OffsetCommit.
- From v3 on the one who commits says which member of the group it is, and is refused if the group
  has gone on without it (KIP-447).

Versions
- v2: leader epochs.  v3: flexible, member and generation.  v4: TRANSACTION_ABORTABLE.  v5: the
  group is added to the transaction by the way.
"""

from __future__ import annotations

import asyncio

from rockgate.gateway.durability import Durability
from rockgate.gateway.kafka import names
from rockgate.gateway.kafka.errors import RequestError
from rockgate.gateway.kafka.groups import events
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.transactions.answers import fenced_code
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.transaction import Offset, Producer
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from rockgate.store.topics import Topics

_ABORTABLE = 4
_ADDS = 5


class TxnOffsetCommit:
    """Keeps offsets for the end of a transaction."""

    def __init__(
        self,
        *,
        topics: Topics,
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
    ) -> TxnOffsetCommitResponse | asyncio.Future[TxnOffsetCommitResponse]:
        """Keep what can be kept, if the one who asks may."""
        code = self._check_member(request)
        if code:
            return self.refuse(request, code)
        offsets: list[Offset] = []
        topics = []
        for asked in request.topics:
            topic = self._topics.find(names.to_store(asked.name))
            partitions = []
            for each in asked.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if topic is not None and 0 <= each.partition_index < topic.queue_count:
                    code = self._check(each)
                    if not code:
                        offsets.append(_offset(topic.id, each))
                partitions.append(
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code
                    )
                )
            topics.append(TxnOffsetCommitResponseTopic(name=asked.name, partitions=partitions))
        code = self._keep(request, offsets, call.version)
        if code:
            return self.refuse(request, code)
        return self._durability.after_changes(TxnOffsetCommitResponse(topics=topics))

    def refuse(self, request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
        """Say the same of every partition."""
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

    def _check_member(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
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
        return self._groups.check_commit(request.group_id, commit)

    def _check(self, asked: TxnOffsetCommitRequestPartition) -> ErrorCode:
        metadata = asked.committed_metadata
        if metadata and len(metadata.encode("utf-8", "surrogatepass")) > self._metadata_bytes_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.OFFSET_OUT_OF_RANGE if asked.committed_offset < 0 else ErrorCode.NONE

    def _keep(
        self, request: TxnOffsetCommitRequest, offsets: list[Offset], version: int
    ) -> ErrorCode:
        producer = Producer(request.producer_id, request.producer_epoch)
        try:
            is_kept = self._coordinator.offsets(
                request.transactional_id, producer, request.group_id, offsets, version >= _ADDS
            )
        except RequestError as error:
            return error.code
        if is_kept:
            return ErrorCode.NONE
        is_new = version >= _ABORTABLE
        return ErrorCode.TRANSACTION_ABORTABLE if is_new else ErrorCode.INVALID_TXN_STATE


def _offset(topic_id: bytes, asked: TxnOffsetCommitRequestPartition) -> Offset:
    return Offset(
        topic_id,
        asked.partition_index,
        asked.committed_offset,
        max(asked.committed_leader_epoch, -1),
        asked.committed_metadata or "",
    )
