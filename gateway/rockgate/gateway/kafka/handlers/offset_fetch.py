"""OffsetFetch: v1-10.

Behaviour
- What was never committed is offset -1 without an error, of an unknown group or partition too:
  clients begin by asking for it.
- Null topics are all that the group has committed in.
- A client that wants stable offsets only (v7) is told UNSTABLE_OFFSET_COMMIT for a partition while
  a transaction that is not over would commit one there.

Versions
- v2: all topics, an error for the whole.  v5: leader epochs.  v6: flexible.  v8: many groups.  v9:
  members of KIP-848 groups, of which there are none.  v10: topics by id; an unknown one is
  UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rockgate.gateway.kafka import names
from rockgate.gateway.kafka.errors import coordinator_code
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from rockgate.protocol.kafka.schema import ZERO_UUID
from rockgate.store.progress import Committed, Progress
from rockgate.store.topics import Topics

_GROUPS = 8
_IDS = 10
_NOTHING = Committed(-1, -1, "", 0, -1)
_UNSTABLE = Committed(-1, -1, "", 0, -2)
"""Stands for an offset that is not told, because a transaction is about to commit another."""


class _Found(NamedTuple):
    """What a group has committed in one topic, of what was asked for."""

    name: str
    topic_id: bytes
    offsets: list[tuple[int, Committed]]
    code: ErrorCode = ErrorCode.NONE

    def code_of(self, committed: Committed) -> ErrorCode:
        """The error of one of its offsets."""
        return ErrorCode.UNSTABLE_OFFSET_COMMIT if committed is _UNSTABLE else self.code


class OffsetFetch:
    """Tells what groups have committed."""

    def __init__(self, *, topics: Topics, progress: Progress, transactions: Transactions) -> None:
        self._topics = topics
        self._progress = progress
        self._transactions = transactions

    def handle(self, request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
        """Tell what was asked for."""
        if call.version >= _GROUPS:
            stable = request.require_stable
            groups = [self._group(each, call.version, stable) for each in request.groups]
            return OffsetFetchResponse(groups=groups)
        found = self._fetch(request.group_id, request.topics, call.version, request.require_stable)
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name=each.name,
                    partitions=[
                        OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=committed.offset,
                            committed_leader_epoch=committed.leader_epoch,
                            metadata=committed.metadata,
                            error_code=each.code_of(committed),
                        )
                        for index, committed in each.offsets
                    ],
                )
                for each in found
            ]
        )

    def refuse(self, request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
        """The error for the whole, or for each group."""
        code = coordinator_code(code)
        return OffsetFetchResponse(
            error_code=code,
            groups=[
                OffsetFetchResponseGroup(group_id=each.group_id, error_code=code)
                for each in request.groups
            ],
        )

    def _group(
        self, asked: OffsetFetchRequestGroup, version: int, stable: bool
    ) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(
            group_id=asked.group_id,
            topics=[
                OffsetFetchResponseTopics(
                    name=found.name,
                    topic_id=found.topic_id,
                    partitions=[
                        OffsetFetchResponsePartitions(
                            partition_index=index,
                            committed_offset=committed.offset,
                            committed_leader_epoch=committed.leader_epoch,
                            metadata=committed.metadata,
                            error_code=found.code_of(committed),
                        )
                        for index, committed in found.offsets
                    ],
                )
                for found in self._fetch(asked.group_id, asked.topics, version, stable)
            ],
        )

    def _fetch(
        self,
        group: str,
        asked: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
        version: int,
        stable: bool,
    ) -> Iterator[_Found]:
        if asked is None:
            yield from self._fetch_all(group, stable)
            return
        for each in asked:
            topic_id = ZERO_UUID
            if version >= _IDS and isinstance(each, OffsetFetchRequestTopics):
                topic_id = each.topic_id
                topic = self._topics.find_id(topic_id)
            else:
                topic = self._topics.find(names.to_store(each.name))
            indexes = each.partition_indexes
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID if version >= _IDS else ErrorCode.NONE
                yield _Found(each.name, topic_id, [(at, _NOTHING) for at in indexes], code)
                continue
            fetch, key = self._progress.fetch, topic.id
            offsets = [(at, fetch(group, key, at) or _NOTHING) for at in indexes]
            if stable:
                offsets = self._stable(group, key, offsets)
            yield _Found(each.name, topic_id, offsets)

    def _stable(
        self, group: str, topic_id: bytes, offsets: list[tuple[int, Committed]]
    ) -> list[tuple[int, Committed]]:
        """Put a mark in place of offsets that are about to change."""
        is_pending = self._transactions.is_pending
        return [
            (at, _UNSTABLE if is_pending(group, topic_id, at) else committed)
            for at, committed in offsets
        ]

    def _fetch_all(self, group: str, stable: bool) -> Iterator[_Found]:
        by_topic: dict[bytes, list[tuple[int, Committed]]] = {}
        for topic_id, queue_id, committed in self._progress.fetch_group(group):
            by_topic.setdefault(topic_id, []).append((queue_id, committed))
        for topic_id, offsets in by_topic.items():
            topic = self._topics.find_id(topic_id)
            if topic is not None and names.is_visible(topic.name):
                offsets = self._stable(group, topic_id, offsets) if stable else offsets
                yield _Found(names.to_kafka(topic.name), topic_id, sorted(offsets))
