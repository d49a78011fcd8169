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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import NamedTuple

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Each, Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, TopicView
from rockgate.gateway.kafka.topics.partition_runs import PlacedPartitions
from rockgate.gateway.kafka.topics.placement import NO_NODE, Placement
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
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
    is_visible: bool = True
    """Whether the client may know of it; the other fields are empty if not."""


class Page:
    """Collects topics by name until the page is full, and has the cursor of the next one."""

    def __init__(
        self,
        catalog: TopicCatalog,
        request: DescribeTopicPartitionsRequest,
        pieces: Sequence[Sequence[str]],
        is_visible: Callable[[str], bool],
    ) -> None:
        """`pieces` are the requested names, each piece sorted."""
        self._is_visible = is_visible
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
            if not self._is_visible(name):
                # It takes no room: a page of all topics passes it over.
                if not self._is_all:
                    yield Entry(name, None, 0, 0, is_visible=False)
                continue
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

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        placement: Placement,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._permitted = permitted
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
        peer = call.peer
        page = Page(self._catalog, request, pieces, self._visible(request, peer))

        def respond(
            topics: list[DescribeTopicPartitionsResponseTopic | Encoded],
        ) -> DescribeTopicPartitionsResponse:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=page.next_cursor)

        return self._slicing.work(
            page, lambda: Each(lambda each: self._describe(each, peer)), respond, call.version
        )

    def _visible(
        self, request: DescribeTopicPartitionsRequest, peer: Peer
    ) -> Callable[[str], bool]:
        """Which topics the client may know of; what it named itself is written down if not."""
        permitted, describe, type_ = self._permitted, AclOperation.DESCRIBE, AclResourceType.TOPIC
        if not request.topics:
            return lambda name: permitted.may(peer, describe, type_, name)
        api = ApiKey.DESCRIBE_TOPIC_PARTITIONS
        return lambda name: permitted.permit(peer, api, describe, type_, name)

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

    def _describe(self, entry: Entry, peer: Peer) -> DescribeTopicPartitionsResponseTopic:
        name, topic, first, end, is_visible = entry
        if not is_visible:
            return DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
            )
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
            topic_authorized_operations=self._permitted.operations(
                peer, AclResourceType.TOPIC, name
            ),
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
