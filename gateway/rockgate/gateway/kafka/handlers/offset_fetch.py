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

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rockgate.gateway.kafka import names
from rockgate.gateway.kafka.errors import coordinator_code
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from rockgate.protocol.kafka.schema import ZERO_UUID, encode_part, join
from rockgate.store.progress import Committed, Progress
from rockgate.store.topics import Topics

SLICE_COUNT = 1_000
"""Partitions looked at before others get their turn."""
_Topics = Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None
_Ask = tuple[str, _Topics]
_Told = OffsetFetchResponseTopic | OffsetFetchResponseTopics
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
    is_first: bool = True
    """Whether it is not more of the topic before it."""

    def code_of(self, committed: Committed) -> ErrorCode:
        """The error of one of its offsets."""
        return ErrorCode.UNSTABLE_OFFSET_COMMIT if committed is _UNSTABLE else self.code


class _Looking:
    """How one request is answered: by its version, with or without what is about to change."""

    def __init__(self, version: int, is_stable: bool) -> None:
        self.version = version
        self.is_stable = is_stable

    def told(self, found: _Found, partitions: list[Any] | None = None) -> _Told:
        """What is said of a topic."""
        partitions = self._partitions(found) if partitions is None else partitions
        if self.version < _GROUPS:
            return OffsetFetchResponseTopic(name=found.name, partitions=partitions)
        return OffsetFetchResponseTopics(
            name=found.name, topic_id=found.topic_id, partitions=partitions
        )

    def encoded(self, found: _Found) -> list[Any]:
        """The partitions of a topic as bytes."""
        parts = [
            encode_part(OffsetFetchResponse, each, self.version) for each in self._partitions(found)
        ]
        return [join(parts[0].struct, self.version, parts)] if parts else []

    def _partitions(self, found: _Found) -> list[Any]:
        partition = (
            OffsetFetchResponsePartition
            if self.version < _GROUPS
            else OffsetFetchResponsePartitions
        )
        return [
            partition(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=found.code_of(committed),
            )
            for index, committed in found.offsets
        ]

    def response(self, answers: list[tuple[str, list[Any]]]) -> OffsetFetchResponse:
        """The whole, of the topics of each group."""
        if self.version < _GROUPS:
            return OffsetFetchResponse(topics=answers[0][1])
        groups = [OffsetFetchResponseGroup(group_id=group, topics=told) for group, told in answers]
        return OffsetFetchResponse(groups=groups)


def _count(topics: _Topics) -> int:
    """How many partitions were asked for; what a null asks for is seldom much."""
    return sum(len(each.partition_indexes) for each in topics or ())


class OffsetFetch:
    """Tells what groups have committed."""

    def __init__(self, *, topics: Topics, progress: Progress, transactions: Transactions) -> None:
        self._topics = topics
        self._progress = progress
        self._transactions = transactions

    def handle(
        self, request: OffsetFetchRequest, call: Call
    ) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
        """Tell what was asked for."""
        asks: list[_Ask] = [(request.group_id, request.topics)]
        if call.version >= _GROUPS:
            asks = [(each.group_id, each.topics) for each in request.groups]
        looking = _Looking(call.version, request.require_stable)
        if sum(_count(topics) for _, topics in asks) > SLICE_COUNT:
            return self._in_turns(asks, looking)
        answers = [
            (group, [looking.told(found) for found in self._fetch(group, topics, looking)])
            for group, topics in asks
        ]
        return looking.response(answers)

    async def _in_turns(self, asks: list[_Ask], looking: _Looking) -> OffsetFetchResponse:
        """Tell of many partitions, with other requests in between."""
        answers = []
        for group, topics in asks:
            told: list[_Told] = []
            for found in self._fetch(group, topics, looking):
                if told and not found.is_first:
                    told[-1].partitions.extend(looking.encoded(found))
                else:
                    told.append(looking.told(found, looking.encoded(found)))
                await asyncio.sleep(0)
            answers.append((group, told))
        return looking.response(answers)

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

    def _fetch(self, group: str, asked: _Topics, looking: _Looking) -> Iterator[_Found]:
        """What was found, at most so many offsets of a topic at a time."""
        if asked is None:
            yield from self._fetch_all(group, looking.is_stable)
            return
        for each in asked:
            for at in range(0, len(each.partition_indexes) or 1, SLICE_COUNT):
                indexes = each.partition_indexes[at : at + SLICE_COUNT]
                yield self._find(group, each, indexes, looking)._replace(is_first=at == 0)

    def _find(
        self,
        group: str,
        asked: OffsetFetchRequestTopic | OffsetFetchRequestTopics,
        indexes: Iterable[int],
        looking: _Looking,
    ) -> _Found:
        topic_id, unknown = ZERO_UUID, ErrorCode.NONE
        if looking.version >= _IDS and isinstance(asked, OffsetFetchRequestTopics):
            topic_id, unknown = asked.topic_id, ErrorCode.UNKNOWN_TOPIC_ID
            topic = self._topics.find_id(topic_id)
        else:
            topic = self._topics.find(names.to_store(asked.name))
        if topic is None:
            return _Found(asked.name, topic_id, [(at, _NOTHING) for at in indexes], unknown)
        fetch, key = self._progress.fetch, topic.id
        offsets = [(at, fetch(group, key, at) or _NOTHING) for at in indexes]
        if looking.is_stable:
            offsets = self._stable(group, key, offsets)
        return _Found(asked.name, topic_id, offsets)

    def _stable(
        self, group: str, topic_id: bytes, offsets: list[tuple[int, Committed]]
    ) -> list[tuple[int, Committed]]:
        """Put a mark in place of offsets that are about to change."""
        is_pending = self._transactions.pending.has_at
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
