"""OffsetFetch: v1-10.

Behaviour
- A partition without a committed offset has offset -1 without an error, even if the group or
  partition is unknown: clients start with this request.
- Null topics request every topic with a committed offset.
- A topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED; a null passes it over.
- A group that is named twice is answered once, for all that was asked of it; so is a topic of it.
- More than SLICE_COUNT partitions are looked up in slices, with other requests in between; those of
  a null are counted too.
- A client that requires stable offsets (v7) gets UNSTABLE_OFFSET_COMMIT for a partition while an
  unfinished transaction would commit one there.

Versions
- v2: all topics, a top-level error.  v5: leader epochs.  v6: flexible.  v8: many groups.  v9:
  members of consumer groups, by their epochs: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH for a group
  that does not know one.  v10: topics by id; an unknown one is
  UNKNOWN_TOPIC_ID.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial

from rockgate.gateway.kafka.groups.offset_answers import (
    GROUPS_SINCE,
    NOTHING,
    UNSTABLE,
    AnswerBuilder,
    AnswerShape,
    FoundOffsets,
)
from rockgate.gateway.kafka.groups.offset_asks import (
    Ask,
    Asked,
    AskedTopics,
    CheckMember,
    merged,
    names_of,
    refused_groups,
)
from rockgate.gateway.kafka.groups.progress import (
    CommittedOffset,
    GroupProgress,
    TransactionalOffsets,
)
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Steps, Turn, in_slices
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Now
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from rockgate.protocol.kafka.schema import ZERO_UUID

SLICE_COUNT = 500
"""Partitions that are looked up at once; more of them in slices."""
PIECE_COUNT = 100
"""How many of these are read between two checks of the clock."""
_Places = Iterable[tuple[bytes, Sequence[int]]]
"""Topics that a group has committed in, by id, with their partitions."""
_Offsets = list[CommittedOffset | None]
_IDS = 10


class OffsetFetch:
    """Returns the committed offsets of groups."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        progress: GroupProgress,
        pending: TransactionalOffsets,
        permitted: Permitted = UNCHECKED,
        check: CheckMember | None = None,
    ) -> None:
        """`check` returns whether a client that says to be a member may ask."""
        self._check = check
        self._permitted = permitted
        self._catalog = catalog
        self._progress = progress
        self._pending = pending

    def handle(
        self, request: OffsetFetchRequest, call: Call
    ) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
        """Answer with the requested offsets."""
        return in_slices(self._steps(request, call))

    def _steps(self, request: OffsetFetchRequest, call: Call) -> Steps[OffsetFetchResponse]:
        asked: Iterable[Ask] = [(request.group_id, request.topics)]
        if call.version >= GROUPS_SINCE:
            asked = ((each.group_id, each.topics) for each in request.groups)
        asks = yield from merged(asked)
        refused = refused_groups(request, call.version, self._check)
        asks = [ask for ask in asks if ask[0] not in refused]
        if (learning := self._catalog.learn(names_of(asks))) is not None:
            yield learning
        shape = AnswerShape(call, request.require_stable, self._permitted, refused)
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
                if not isinstance(found, FoundOffsets):
                    found = yield found  # what was promised
                answered.append(shape.topic(found))
            answers.append((group, answered))
        return shape.response(answers)

    def _is_large(self, asks: list[Ask]) -> bool:
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

    async def _in_turns(self, asks: list[Ask], shape: AnswerShape) -> OffsetFetchResponse:
        """Answer for many partitions, with other requests in between."""
        turn, builder = Turn(), AnswerBuilder(shape)
        for group, topics in asks:
            builder.begin(group)
            places: _Places = ()
            if topics is None:
                places_of = self._progress.partitions_of(group)
                places = await places_of if isinstance(places_of, Awaitable) else places_of
            for found in self._fetch(group, topics, places, shape):
                builder.add(found if isinstance(found, FoundOffsets) else await found)
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
        self, group: str, asked: AskedTopics, places: _Places, shape: AnswerShape
    ) -> Iterator[Now[FoundOffsets]]:
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
        asked: Asked,
        indexes: Sequence[int],
        shape: AnswerShape,
        *,
        is_first: bool,
    ) -> Now[FoundOffsets]:
        topic_id, unknown = ZERO_UUID, ErrorCode.NONE
        if shape.version >= _IDS and isinstance(asked, OffsetFetchRequestTopics):
            topic_id, unknown = asked.topic_id, ErrorCode.UNKNOWN_TOPIC_ID
            topic = self._catalog.find_id(topic_id)
            name = "" if topic is None else names.to_kafka(topic.name)
        else:
            topic, name = self._catalog.find(asked.name), asked.name
        if name and not shape.permits(name):
            topic, unknown = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None:
            nothing: list[tuple[int, CommittedOffset]] = [(at, NOTHING) for at in indexes]
            return FoundOffsets(asked.name, topic_id, nothing, unknown, is_first)
        found = FoundOffsets(asked.name, topic_id, [], ErrorCode.NONE, is_first)
        return self._look_up(found, group, topic.id, indexes, shape.is_stable, NOTHING)

    def _fetch_all(
        self, group: str, places: _Places, shape: AnswerShape
    ) -> Iterator[Now[FoundOffsets]]:
        for topic_id, partitions in places:
            topic = self._catalog.find_id(topic_id)
            if topic is None:
                continue
            name = names.to_kafka(topic.name)
            if not shape.is_visible(name):
                continue
            for at in range(0, len(partitions), PIECE_COUNT):
                indexes = partitions[at : at + PIECE_COUNT]
                found = FoundOffsets(name, topic_id, [], ErrorCode.NONE, at == 0)
                yield self._look_up(found, group, topic_id, indexes, shape.is_stable, None)

    def _look_up(
        self,
        found: FoundOffsets,
        group: str,
        topic_id: bytes,
        indexes: Sequence[int],
        is_stable: bool,
        missing: CommittedOffset | None,
    ) -> Now[FoundOffsets]:
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
        found: FoundOffsets,
        group: str,
        topic_id: bytes,
        indexes: Sequence[int],
        is_stable: bool,
        missing: CommittedOffset | None,
        committed: _Offsets,
    ) -> FoundOffsets:
        is_pending = self._pending.has_at
        for at, each in zip(indexes, committed, strict=True):
            offset = each or missing
            if offset is not None:
                if is_stable and is_pending(group, topic_id, at):
                    offset = UNSTABLE
                found.offsets.append((at, offset))
        return found


async def _filled(
    fill: Callable[[_Offsets], FoundOffsets], committed: Awaitable[_Offsets]
) -> FoundOffsets:
    return fill(await committed)
