"""OffsetCommit: v2-10.

Behaviour
- Members commit within their generation. Others commit while the group has no members; a
  generation below zero says that one is no member. A former member is UNKNOWN_MEMBER_ID.
- Each partition succeeds or fails independently: an unknown one, or a text that is too long, does
  not keep the others from being committed.
- Answered once the offsets are in the log, and on disk where the server flushes before it answers.
  A lower offset than the one before is taken: a group may be set back.
- A request of more than SLICE_COUNT partitions is committed a slice at a time, with others in
  between. A slice whose member was fenced meanwhile is refused like a separate request.
- A commit of a classic group's member counts as a heartbeat.
- A member of a consumer group commits in its epoch, or in an earlier one if it has had all of the
  partitions since; else all are STALE_MEMBER_EPOCH, for a member of the classic protocol
  ILLEGAL_GENERATION. A request of more than SLICE_COUNT partitions has to be in its epoch.

Versions
- v2-4: a retention time for these offsets, stored as their expiry time.  v6: leader epochs.  v7:
  static members.  v8: flexible.  v9: members of consumer groups, which get UNSUPPORTED_VERSION
  before.  v10: topics by id.

Departs from Kafka
- A commit with a generation for an unknown group is ILLEGAL_GENERATION in every version; Kafka
  returns GROUP_ID_NOT_FOUND from v9, which clients do not expect here.
- A negative offset is OFFSET_OUT_OF_RANGE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from rockgate.gateway.kafka.groups.classic import events
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.progress import GroupProgress, NewOffset
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rockgate.protocol.kafka.schema import ZERO_UUID

SLICE_COUNT: Final = 500
"""Partitions committed before other requests run."""
_IDS = 10
_FOR_EVER_MS = 2**63 - 1
NAME: Callable[[OffsetCommitRequestTopic], str] = attrgetter("name")


class OffsetCommit:
    """Commits offsets."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        progress: GroupProgress,
        groups: Groups,
        durability: Durable,
        now_ms: Callable[[], int],
        metadata_bytes_max: int,
    ) -> None:
        self._catalog = catalog
        self._progress = progress
        self._now_ms = now_ms
        self._groups = groups
        self._durability = durability
        self._metadata_bytes_max = metadata_bytes_max

    def handle(
        self, request: OffsetCommitRequest, call: Call
    ) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
        """Commit the valid offsets, if the caller may."""
        learning = self._catalog.learn(map(NAME, request.topics))
        if learning is not None:
            return self._commit_after(learning, request, call)
        return self._commit_known(request, call)

    async def _commit_after(
        self, learning: Awaitable[None], request: OffsetCommitRequest, call: Call
    ) -> OffsetCommitResponse:
        await learning
        response = self._commit_known(request, call)
        return await response if isinstance(response, Awaitable) else response

    def _commit_known(
        self, request: OffsetCommitRequest, call: Call
    ) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
        expire_ms = -1
        if request.retention_time_ms >= 0:
            expire_ms = min(self._now_ms() + request.retention_time_ms, _FOR_EVER_MS)
        if sum([len(topic.partitions) for topic in request.topics]) > SLICE_COUNT:
            return self._commit_slices(request, call.version, expire_ms)
        allowed = self._allowed(request, call.version, lambda: self._partitions(request, call))
        commits: list[NewOffset] = []
        topics = [
            self._take(each, each.partitions, call.version, allowed, expire_ms, commits)
            for each in request.topics
        ]
        response = OffsetCommitResponse(topics=topics)
        if not commits:
            return response
        codes = self._progress.commit(request.group_id, commits)
        if codes is None:
            return self._durability.after_changes(response)
        return self._finish(response, codes)

    async def _finish(
        self, response: OffsetCommitResponse, codes: Now[Sequence[ErrorCode] | None]
    ) -> OffsetCommitResponse:
        codes = await codes if isinstance(codes, Awaitable) else codes
        _put_codes([each for topic in response.topics for each in topic.partitions], codes)
        answer = self._durability.after_changes(response)
        return await answer if isinstance(answer, Awaitable) else answer

    async def _commit_slices(
        self, request: OffsetCommitRequest, version: int, expire_ms: int
    ) -> OffsetCommitResponse:
        response = OffsetCommitResponse(topics=[])
        commits: list[NewOffset] = []
        taken: list[OffsetCommitResponsePartition] = []
        left, has_changes, allowed = SLICE_COUNT, False, self._allowed(request, version)
        for asked in request.topics:
            whole = OffsetCommitResponseTopic(
                name=asked.name, topic_id=asked.topic_id, partitions=[]
            )
            response.topics.append(whole)
            for part in _pieces(asked.partitions):
                some = self._take(asked, part, version, allowed, expire_ms, commits)
                whole.partitions += some.partitions
                taken += some.partitions
                left -= len(part)
                if left > 0:
                    continue
                has_changes |= bool(commits)
                await self._commit(request.group_id, commits, taken)
                await asyncio.sleep(0)
                commits, taken = [], []
                left, allowed = SLICE_COUNT, self._allowed(request, version)
        has_changes |= bool(commits)
        await self._commit(request.group_id, commits, taken)
        if not has_changes:
            return response
        answer = self._durability.after_changes(response)
        return await answer if isinstance(answer, Awaitable) else answer

    async def _commit(
        self, group: str, commits: list[NewOffset], taken: list[OffsetCommitResponsePartition]
    ) -> None:
        if commits:
            codes = self._progress.commit(group, commits)
            _put_codes(taken, await codes if isinstance(codes, Awaitable) else codes)

    def _partitions(self, request: OffsetCommitRequest, call: Call) -> Iterator[tuple[bytes, int]]:
        """The partitions of a request, by the ids of their topics."""
        for asked in request.topics:
            topic_id = asked.topic_id
            if call.version < _IDS:
                topic = self._catalog.find(asked.name)
                topic_id = ZERO_UUID if topic is None else topic.id
            yield from ((topic_id, each.partition_index) for each in asked.partitions)

    def _allowed(
        self,
        request: OffsetCommitRequest,
        version: int,
        partitions: Callable[[], Iterator[tuple[bytes, int]]] | None = None,
    ) -> ErrorCode:
        """Whether the caller may commit now; it counts as a heartbeat of a classic member."""
        waiter: Waiter[ErrorCode] = Waiter()
        return self._groups.check_commit(
            request.group_id,
            events.Commit(
                waiter=waiter,
                generation=request.generation_id_or_member_epoch,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                version=version,
            ),
            partitions,
        )

    def refuse(self, request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
        """Reject every partition with the same error."""
        code = coordinator_code(code)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _take(
        self,
        asked: OffsetCommitRequestTopic,
        wanted: Sequence[OffsetCommitRequestPartition],
        version: int,
        allowed: ErrorCode,
        expire_ms: int,
        commits: list[NewOffset],
    ) -> OffsetCommitResponseTopic:
        """Check some offsets of one topic; add those that can be committed."""
        if version >= _IDS:
            topic = self._catalog.find_id(asked.topic_id)
            unknown = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = self._catalog.find(asked.name)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = []
        for each in wanted:
            metadata = each.committed_metadata
            if topic is None:
                code = unknown
            elif not 0 <= each.partition_index < topic.queue_count:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif metadata and self._is_too_large(metadata):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            elif each.committed_offset < 0:
                code = ErrorCode.OFFSET_OUT_OF_RANGE
            elif not (code := allowed):
                commits.append(
                    NewOffset(
                        topic.id,
                        each.partition_index,
                        each.committed_offset,
                        max(each.committed_leader_epoch, -1),
                        metadata or "",
                        expire_ms,
                    )
                )
            partitions.append(
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
        return OffsetCommitResponseTopic(
            name=asked.name, topic_id=asked.topic_id, partitions=partitions
        )

    def _is_too_large(self, metadata: str) -> bool:
        return len(metadata.encode("utf-8", "surrogatepass")) > self._metadata_bytes_max


def _put_codes(
    taken: Sequence[OffsetCommitResponsePartition], codes: Sequence[ErrorCode] | None
) -> None:
    """Fill in the results of the offsets that were not rejected before."""
    if codes is not None:
        committed = [each for each in taken if not each.error_code]
        for each, code in zip(committed, codes, strict=True):
            each.error_code = code


def _pieces(
    partitions: Sequence[OffsetCommitRequestPartition],
) -> Iterator[Sequence[OffsetCommitRequestPartition]]:
    for at in range(0, len(partitions), SLICE_COUNT):
        yield partitions[at : at + SLICE_COUNT]
