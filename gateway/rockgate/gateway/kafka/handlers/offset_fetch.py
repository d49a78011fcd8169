"""OffsetFetch: v1-10.

Behaviour
- What was never committed is offset -1 without an error, of an unknown group or partition too:
  clients begin by asking for it.
- Null topics are all that the group has committed in.
- A group that is named twice is answered once, for all that was asked of it; so is a topic of it.
- More than SLICE_COUNT partitions are looked up in slices, with other requests in between; those of
  a null are counted too.
- A client that wants stable offsets only (v7) is told UNSTABLE_OFFSET_COMMIT for a partition while
  a transaction that is not over would commit one there.

Versions
- v2: all topics, an error for the whole.  v5: leader epochs.  v6: flexible.  v8: many groups.  v9:
  members of KIP-848 groups, of which there are none.  v10: topics by id; an unknown one is
  UNKNOWN_TOPIC_ID.

Departs from Kafka
- An answer of more than 90 MiB is refused as a whole with POLICY_VIOLATION: ask for less at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Growing, Room, Steps, Turn, in_slices
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.peer import Call
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
from rockgate.protocol.kafka.schema import ZERO_UUID
from rockgate.store.api.progress import Committed, Progress
from rockgate.store.api.topics import Topics

SLICE_COUNT = 500
"""Partitions that are looked up at once; more of them in slices."""
PIECE_COUNT = 100
"""Of these, how many before the clock is looked at."""
_Asked = OffsetFetchRequestTopic | OffsetFetchRequestTopics
_Topics = Sequence[_Asked] | None
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
        partitions = self.partitions(found) if partitions is None else partitions
        if self.version < _GROUPS:
            return OffsetFetchResponseTopic(name=found.name, partitions=partitions)
        return OffsetFetchResponseTopics(
            name=found.name, topic_id=found.topic_id, partitions=partitions
        )

    def partitions(self, found: _Found) -> list[Any]:
        """What is said of its partitions."""
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


class _Telling:
    """The answer to a large request as it grows: partitions, then topics, then groups as bytes."""

    def __init__(self, looking: _Looking) -> None:
        version = looking.version
        is_many = version >= _GROUPS
        self._looking = looking
        self._group = ""
        self._found: _Found | None = None
        self._partitions = Growing[Any](
            OffsetFetchResponse,
            OffsetFetchResponsePartitions if is_many else OffsetFetchResponsePartition,
            version,
            Room(),
        )
        self._topics = Growing[Any](
            OffsetFetchResponse,
            OffsetFetchResponseTopics if is_many else OffsetFetchResponseTopic,
            version,
            Room(),
        )
        self._groups = Growing(OffsetFetchResponse, OffsetFetchResponseGroup, version, Room())

    def begin(self, group: str) -> None:
        """What follows is of this group."""
        self._group = group

    def add(self, found: _Found) -> None:
        """More of the group."""
        if found.is_first:
            self._end_topic()
        self._found = found
        for each in self._looking.partitions(found):
            self._partitions.add(each)

    def end(self) -> None:
        """That was all of the group."""
        self._end_topic()
        if self._looking.version >= _GROUPS:
            topics = self._topics.take()
            self._groups.add(OffsetFetchResponseGroup(group_id=self._group, topics=topics))

    def _end_topic(self) -> None:
        found, self._found = self._found, None
        if found is not None:
            self._topics.add(self._looking.told(found, self._partitions.take()))

    def response(self) -> OffsetFetchResponse:
        """The whole."""
        if self._looking.version < _GROUPS:
            return OffsetFetchResponse(topics=self._topics.take())
        return OffsetFetchResponse(groups=self._groups.take())


def _merged(asks: Iterable[_Ask]) -> Generator[None, None, list[_Ask]]:
    """Each group once, and of each group each topic and partition once; in steps."""
    by_group: dict[str, dict[tuple[str, bytes], _Asked] | None] = {}
    repeated: dict[int, _Asked] = {}
    for group, topics in asks:
        found = by_group.setdefault(group, {})
        if topics is None or found is None:
            by_group[group] = None
            yield
            continue
        for topic in topics:
            kept = found.setdefault((topic.name, getattr(topic, "topic_id", b"")), topic)
            if kept is not topic:
                kept.partition_indexes += topic.partition_indexes
            if len(kept.partition_indexes) > 1:
                repeated[id(kept)] = kept
            yield
        yield
    for topic in repeated.values():
        topic.partition_indexes = list(dict.fromkeys(topic.partition_indexes))
        yield
    merged: list[_Ask] = []
    for group, found in by_group.items():
        merged.append((group, None if found is None else list(found.values())))
        yield
    return merged


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
        return in_slices(self._steps(request, call))

    def _steps(self, request: OffsetFetchRequest, call: Call) -> Steps[OffsetFetchResponse]:
        asked: Iterable[_Ask] = [(request.group_id, request.topics)]
        if call.version >= _GROUPS:
            asked = ((each.group_id, each.topics) for each in request.groups)
        asks = yield from _merged(asked)
        looking = _Looking(call.version, request.require_stable)
        if self._is_large(asks):
            return self._in_turns(asks, looking)
        answers = [
            (group, [looking.told(found) for found in self._fetch(group, topics, looking)])
            for group, topics in asks
        ]
        return looking.response(answers)

    def _is_large(self, asks: list[_Ask]) -> bool:
        left = SLICE_COUNT
        for group, topics in asks:
            if topics is None:
                left -= self._progress.count(group, left)
            else:
                left -= sum(len(each.partition_indexes) for each in topics)
            left -= 1
            if left < 0:
                return True
        return False

    async def _in_turns(self, asks: list[_Ask], looking: _Looking) -> OffsetFetchResponse:
        """Tell of many partitions, with other requests in between."""
        turn, telling = Turn(), _Telling(looking)
        for group, topics in asks:
            telling.begin(group)
            for found in self._fetch(group, topics, looking):
                telling.add(found)
                if turn.is_over:
                    await turn.next()
            telling.end()
            if turn.is_over:
                await turn.next()
        return telling.response()

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
            for at in range(0, len(each.partition_indexes) or 1, PIECE_COUNT):
                indexes = each.partition_indexes[at : at + PIECE_COUNT]
                yield self._find(group, each, indexes, looking)._replace(is_first=at == 0)

    def _find(
        self,
        group: str,
        asked: _Asked,
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
        fetch = self._progress.fetch
        for topic_id in self._progress.topics_of(group):
            topic = self._topics.find_id(topic_id)
            if topic is None or not names.is_visible(topic.name):
                continue
            name = names.to_kafka(topic.name)
            indexes = sorted(self._progress.queues_of(group, topic_id))
            for at in range(0, len(indexes), PIECE_COUNT):
                offsets = [
                    (index, committed)
                    for index in indexes[at : at + PIECE_COUNT]
                    if (committed := fetch(group, topic_id, index)) is not None
                ]
                offsets = self._stable(group, topic_id, offsets) if stable else offsets
                yield _Found(name, topic_id, offsets, is_first=at == 0)
