"""DescribeTopicPartitions: v0.

Behaviour
- Topics in order of name, each once; an empty list asks for all of them.
- A page ends after `response_partition_limit` partitions, of which the server allows 2000, with a
  cursor that names the next partition: within a topic, or the first one of the next topic.
- A cursor that is negative, or whose topic is not among those asked for, is INVALID_REQUEST.
- An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, a name that no topic can have
  INVALID_TOPIC_EXCEPTION; they do not count. A topic is never created here.
- A cursor's topic that was deleted meanwhile is stepped over where all were asked for.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import NamedTuple

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Each, Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, TopicView
from rockgate.gateway.kafka.topics.metadata_cache import TOPIC_OPERATIONS
from rockgate.gateway.kafka.topics.partition_runs import PlacedPartitions
from rockgate.gateway.kafka.topics.placement import NO_NODE, Placement
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from rockgate.protocol.kafka.schema import Encoded

PAGE_MAX = 2_000
"""Maximum number of partitions in one response, as in Kafka."""
PIECE_COUNT = 1_000


class Entry(NamedTuple):
    """The part of one topic on a page."""

    name: str
    topic: TopicView | None
    first: int
    end: int


class Page:
    """Collects topics by name until the page is full, and has the cursor of the next one."""

    def __init__(
        self,
        catalog: TopicCatalog,
        request: DescribeTopicPartitionsRequest,
        pieces: Sequence[Sequence[str]],
    ) -> None:
        """`pieces` are the requested names, each piece sorted."""
        self._catalog = catalog
        self._left = max(1, min(request.response_partition_limit, PAGE_MAX))
        self._cursor = request.cursor
        self._is_all = not request.topics
        self._names = self._asked(pieces)
        self.next_cursor: Cursor | None = None

    def _asked(self, pieces: Sequence[Sequence[str]]) -> Iterator[str]:
        start = self._cursor.topic_name if self._cursor is not None else ""
        if self._is_all:
            return self._catalog.names_from(start)
        if self._cursor is not None and not any(_has(piece, start) for piece in pieces):
            quoted = start[: names.NAME_SIZE_MAX]
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"Cursor topic {quoted!r} is not in the request."
            )
        ahead = (islice(piece, bisect_left(piece, start), None) for piece in pieces)
        return (name for name, _ in groupby(merge(*ahead)))

    def __iter__(self) -> Iterator[Entry]:
        for name in self._names:
            topic = self._catalog.find(name)
            if topic is None and self._is_all:
                continue
            if self._left <= 0:
                self.next_cursor = Cursor(topic_name=name, partition_index=0)
                return
            if topic is None:
                yield Entry(name, None, 0, 0)
                continue
            first = 0
            if self._cursor is not None and self._cursor.topic_name == name:
                first = min(self._cursor.partition_index, topic.queue_count)
            end = min(topic.queue_count, first + self._left)
            self._left -= end - first
            yield Entry(name, topic, first, end)
            if end < topic.queue_count:
                self.next_cursor = Cursor(topic_name=name, partition_index=end)
                return


def _has(piece: Sequence[str], name: str) -> bool:
    at = bisect_left(piece, name)
    return at < len(piece) and piece[at] == name


class DescribeTopicPartitions:
    """Describes topics page by page."""

    def __init__(self, *, catalog: TopicCatalog, placement: Placement) -> None:
        self._catalog = catalog
        self._partitions = PlacedPartitions(DescribeTopicPartitionsResponse, _partition, placement)
        self._slicing = Slicing(
            DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponseTopic
        )

    def handle(
        self, request: DescribeTopicPartitionsRequest, call: Call
    ) -> DescribeTopicPartitionsResponse | Awaitable[DescribeTopicPartitionsResponse]:
        """Describe one page."""
        if request.cursor is not None and request.cursor.partition_index < 0:
            raise RequestError(ErrorCode.INVALID_REQUEST, "Cursor partition must not be negative.")
        return in_slices(self._steps(request, call))

    def _steps(
        self, request: DescribeTopicPartitionsRequest, call: Call
    ) -> Steps[DescribeTopicPartitionsResponse]:
        # To sort a hundred thousand names at once takes long; in pieces they are merged as needed.
        pieces = []
        for at in range(0, len(request.topics), PIECE_COUNT):
            some = request.topics[at : at + PIECE_COUNT]
            pieces.append(sorted({topic.name for topic in some}))
            yield None
        wanted = (topic.name for topic in request.topics) if request.topics else None
        if (learning := self._catalog.learn(wanted)) is not None:
            yield learning
        page = Page(self._catalog, request, pieces)

        def respond(
            topics: list[DescribeTopicPartitionsResponseTopic | Encoded],
        ) -> DescribeTopicPartitionsResponse:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=page.next_cursor)

        return self._slicing.work(page, lambda: Each(self._describe), respond, call.version)

    def refuse(
        self, request: DescribeTopicPartitionsRequest, code: ErrorCode
    ) -> DescribeTopicPartitionsResponse:
        """The same error for every topic."""
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name)
                for topic in request.topics
            ]
        )

    def _describe(self, entry: Entry) -> DescribeTopicPartitionsResponseTopic:
        name, topic, first, end = entry
        if topic is None:
            is_legal = names.is_legal(name)
            return DescribeTopicPartitionsResponseTopic(
                error_code=(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if is_legal
                    else ErrorCode.INVALID_TOPIC_EXCEPTION
                ),
                name=name,
            )
        return DescribeTopicPartitionsResponseTopic(
            name=name,
            topic_id=topic.id,
            is_internal=topic.is_internal,
            partitions=self._partitions.between(topic, first, end, 0),
            topic_authorized_operations=TOPIC_OPERATIONS,
        )


def _partition(index: int, node_id: int, epoch: int) -> DescribeTopicPartitionsResponsePartition:
    nodes = [] if node_id == NO_NODE else [node_id]
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if nodes else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=node_id,
        leader_epoch=epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
        eligible_leader_replicas=[],
        last_known_elr=[],
    )
