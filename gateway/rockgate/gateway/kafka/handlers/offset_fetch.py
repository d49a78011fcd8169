"""OffsetFetch: v1-10.

Behaviour
- A partition without a committed offset has offset -1 without an error, even if the group or
  partition is unknown: clients start with this request.
- Null topics request every topic with a committed offset.
- A group that is named twice is answered once, for all that was asked of it; so is a topic of it.
- More than SLICE_COUNT partitions are looked up in slices, with other requests in between; those of
  a null are counted too.
- A client that requires stable offsets (v7) gets UNSTABLE_OFFSET_COMMIT for a partition while an
  unfinished transaction would commit one there.

Versions
- v2: all topics, a top-level error.  v5: leader epochs.  v6: flexible.  v8: many groups.  v9:
  members of KIP-848 groups, of which there are none.  v10: topics by id; an unknown one is
  UNKNOWN_TOPIC_ID.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from rockgate.gateway.kafka.groups.progress import (
    CommittedOffset,
    GroupProgress,
    TransactionalOffsets,
)
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Growing, Room, Steps, Turn, in_slices
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Now
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
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

SLICE_COUNT = 500
"""Partitions that are looked up at once; more of them in slices."""
PIECE_COUNT = 100
"""How many of these are read between two checks of the clock."""
_Asked = OffsetFetchRequestTopic | OffsetFetchRequestTopics
_Topics = Sequence[_Asked] | None
_Ask = tuple[str, _Topics]
_Places = Iterable[tuple[bytes, Sequence[int]]]
"""Topics that a group has committed in, by id, with their partitions."""
_TopicAnswer = OffsetFetchResponseTopic | OffsetFetchResponseTopics
_Offsets = list[CommittedOffset | None]
_GROUPS = 8
_IDS = 10


class _Offset(NamedTuple):
    """Represents an offset that does not exist or is withheld."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""


_NOTHING = _Offset()
_UNSTABLE = _Offset()
"""The answer for an offset that is withheld, because a transaction is about to commit another."""


class _Found(NamedTuple):
    """The requested offsets that a group has committed in one topic."""

    name: str
    topic_id: bytes
    offsets: list[tuple[int, CommittedOffset]]
    code: ErrorCode = ErrorCode.NONE
    is_first: bool = True
    """Whether it is the first piece of its topic."""

    def code_of(self, committed: CommittedOffset) -> ErrorCode:
        """The error of one of its offsets."""
        return ErrorCode.UNSTABLE_OFFSET_COMMIT if committed is _UNSTABLE else self.code


class _Shape:
    """The form of a response: its version, and whether pending offsets are withheld."""

    def __init__(self, version: int, is_stable: bool) -> None:
        self.version = version
        self.is_stable = is_stable

    def topic(self, found: _Found, partitions: list[Any] | None = None) -> _TopicAnswer:
        """The response for a topic."""
        partitions = self.partitions(found) if partitions is None else partitions
        if self.version < _GROUPS:
            return OffsetFetchResponseTopic(name=found.name, partitions=partitions)
        return OffsetFetchResponseTopics(
            name=found.name, topic_id=found.topic_id, partitions=partitions
        )

    def partitions(self, found: _Found) -> list[Any]:
        """The responses for its partitions."""
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
        """The response, from the topics of each group."""
        if self.version < _GROUPS:
            return OffsetFetchResponse(topics=answers[0][1])
        groups = [OffsetFetchResponseGroup(group_id=id_, topics=topics) for id_, topics in answers]
        return OffsetFetchResponse(groups=groups)


class _ResponseBuilder:
    """The answer to a large request as it grows: partitions, then topics, then groups as bytes."""

    def __init__(self, shape: _Shape) -> None:
        version = shape.version
        is_many = version >= _GROUPS
        self._shape = shape
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
        """Begin a group."""
        self._group = group

    def add(self, found: _Found) -> None:
        """Add offsets of the group."""
        if found.is_first:
            self._end_topic()
        self._found = found
        for each in self._shape.partitions(found):
            self._partitions.add(each)

    def end(self) -> None:
        """End the group."""
        self._end_topic()
        if self._shape.version >= _GROUPS:
            topics = self._topics.take()
            self._groups.add(OffsetFetchResponseGroup(group_id=self._group, topics=topics))

    def _end_topic(self) -> None:
        found, self._found = self._found, None
        if found is not None:
            self._topics.add(self._shape.topic(found, self._partitions.take()))

    def response(self) -> OffsetFetchResponse:
        """The response."""
        if self._shape.version < _GROUPS:
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
            first = found.setdefault((topic.name, getattr(topic, "topic_id", b"")), topic)
            if first is not topic:
                first.partition_indexes += topic.partition_indexes
            if len(first.partition_indexes) > 1:
                repeated[id(first)] = first
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
    """Returns the committed offsets of groups."""

    def __init__(
        self, *, catalog: TopicCatalog, progress: GroupProgress, pending: TransactionalOffsets
    ) -> None:
        self._catalog = catalog
        self._progress = progress
        self._pending = pending

    def handle(
        self, request: OffsetFetchRequest, call: Call
    ) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
        """Answer with the requested offsets."""
        return in_slices(self._steps(request, call))

    def _steps(self, request: OffsetFetchRequest, call: Call) -> Steps[OffsetFetchResponse]:
        asked: Iterable[_Ask] = [(request.group_id, request.topics)]
        if call.version >= _GROUPS:
            asked = ((each.group_id, each.topics) for each in request.groups)
        asks = yield from _merged(asked)
        if (learning := self._catalog.learn(_names(asks))) is not None:
            yield learning
        shape = _Shape(call.version, request.require_stable)
        if self._is_large(asks):
            return self._in_turns(asks, shape)
        answers = []
        for group, topics in asks:
            places: _Places = ()
            if topics is None:
                known = self._progress.partitions_of(group)
                places = (yield known) if isinstance(known, Awaitable) else known
            answered = []
            for found in self._fetch(group, topics, places, shape):
                if not isinstance(found, _Found):
                    found = yield found  # what was promised
                answered.append(shape.topic(found))
            answers.append((group, answered))
        return shape.response(answers)

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

    async def _in_turns(self, asks: list[_Ask], shape: _Shape) -> OffsetFetchResponse:
        """Answer for many partitions, with other requests in between."""
        turn, builder = Turn(), _ResponseBuilder(shape)
        for group, topics in asks:
            builder.begin(group)
            places: _Places = ()
            if topics is None:
                places_of = self._progress.partitions_of(group)
                places = await places_of if isinstance(places_of, Awaitable) else places_of
            for found in self._fetch(group, topics, places, shape):
                builder.add(found if isinstance(found, _Found) else await found)
                if turn.is_over:
                    await turn.next()
            builder.end()
            if turn.is_over:
                await turn.next()
        return builder.response()

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

    def _fetch(
        self, group: str, asked: _Topics, places: _Places, shape: _Shape
    ) -> Iterator[Now[_Found]]:
        """The offsets found, a limited number of one topic at a time."""
        if asked is None:
            yield from self._fetch_all(group, places, shape)
            return
        for each in asked:
            every = each.partition_indexes
            if len(every) <= PIECE_COUNT:
                yield self._find(group, each, every, shape, is_first=True)
                continue
            for at in range(0, len(every), PIECE_COUNT):
                piece = every[at : at + PIECE_COUNT]
                yield self._find(group, each, piece, shape, is_first=at == 0)

    def _find(
        self,
        group: str,
        asked: _Asked,
        indexes: Sequence[int],
        shape: _Shape,
        *,
        is_first: bool,
    ) -> Now[_Found]:
        topic_id, unknown = ZERO_UUID, ErrorCode.NONE
        if shape.version >= _IDS and isinstance(asked, OffsetFetchRequestTopics):
            topic_id, unknown = asked.topic_id, ErrorCode.UNKNOWN_TOPIC_ID
            topic = self._catalog.find_id(topic_id)
        else:
            topic = self._catalog.find(asked.name)
        if topic is None:
            nothing: list[tuple[int, CommittedOffset]] = [(at, _NOTHING) for at in indexes]
            return _Found(asked.name, topic_id, nothing, unknown, is_first)
        found = _Found(asked.name, topic_id, [], ErrorCode.NONE, is_first)
        return self._look_up(found, group, topic.id, indexes, shape.is_stable, _NOTHING)

    def _fetch_all(self, group: str, places: _Places, shape: _Shape) -> Iterator[Now[_Found]]:
        for topic_id, partitions in places:
            topic = self._catalog.find_id(topic_id)
            if topic is None:
                continue
            name = names.to_kafka(topic.name)
            for at in range(0, len(partitions), PIECE_COUNT):
                indexes = partitions[at : at + PIECE_COUNT]
                found = _Found(name, topic_id, [], ErrorCode.NONE, at == 0)
                yield self._look_up(found, group, topic_id, indexes, shape.is_stable, None)

    def _look_up(
        self,
        found: _Found,
        group: str,
        topic_id: bytes,
        indexes: Sequence[int],
        is_stable: bool,
        missing: _Offset | None,
    ) -> Now[_Found]:
        """Fill in what a group has committed; `missing` is used for what it has not."""
        committed = self._progress.fetch(group, topic_id, indexes)
        if not isinstance(committed, list):
            fill = partial(self._fill, found, group, topic_id, indexes, is_stable, missing)
            return _filled(fill, committed)
        if None not in committed and not (is_stable and self._pending.has(group)):
            offsets = zip(indexes, committed, strict=True)
            found.offsets.extend(offsets)  # type: ignore[arg-type]  # no None is among them
            return found
        return self._fill(found, group, topic_id, indexes, is_stable, missing, committed)

    def _fill(
        self,
        found: _Found,
        group: str,
        topic_id: bytes,
        indexes: Sequence[int],
        is_stable: bool,
        missing: _Offset | None,
        committed: _Offsets,
    ) -> _Found:
        is_pending = self._pending.has_at
        for at, each in zip(indexes, committed, strict=True):
            offset = each or missing
            if offset is not None:
                if is_stable and is_pending(group, topic_id, at):
                    offset = _UNSTABLE
                found.offsets.append((at, offset))
        return found


async def _filled(fill: Callable[[_Offsets], _Found], committed: Awaitable[_Offsets]) -> _Found:
    return fill(await committed)


def _names(asks: Iterable[_Ask]) -> Iterator[str | None]:
    """The requested topics; those of a null are known by their ids."""
    for _, topics in asks:
        if topics is None:
            yield None
        else:
            yield from (topic.name for topic in topics)
