"""The response of OffsetFetch: topics of one group, or of several; whole, or as it grows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from rockgate.gateway.kafka.groups.progress import CommittedOffset
from rockgate.gateway.kafka.request.chunked import Growing, Room
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.permitted import Permitted
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

TopicAnswer: TypeAlias = OffsetFetchResponseTopic | OffsetFetchResponseTopics
GROUPS_SINCE: Final = 8
"""The version of OffsetFetch that asks for several groups."""


class NoOffset(NamedTuple):
    """Represents an offset that does not exist or is withheld."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""


NOTHING = NoOffset()
UNSTABLE = NoOffset()
"""The answer for an offset that is withheld, because a transaction is about to commit another."""


class FoundOffsets(NamedTuple):
    """The requested offsets that a group has committed in one topic."""

    name: str
    topic_id: bytes
    offsets: list[tuple[int, CommittedOffset]]
    code: ErrorCode = ErrorCode.NONE
    is_first: bool = True
    """Whether it is the first piece of its topic."""

    def code_of(self, committed: CommittedOffset) -> ErrorCode:
        """The error of one of its offsets."""
        return ErrorCode.UNSTABLE_OFFSET_COMMIT if committed is UNSTABLE else self.code


class AnswerShape:
    """The form of a response: its version, whether pending offsets are withheld, and for whom."""

    def __init__(
        self, call: Call, is_stable: bool, permitted: Permitted, refused: dict[str, ErrorCode]
    ) -> None:
        self.version = call.version
        self.refused = [
            OffsetFetchResponseGroup(group_id=group, topics=[], error_code=code)
            for group, code in refused.items()
        ]
        self.is_stable = is_stable
        self._peer = call.peer
        self._permitted = permitted

    def is_visible(self, name: str) -> bool:
        """Whether a topic of the group is known to the client."""
        type_ = AclResourceType.TOPIC
        return self._permitted.may(self._peer, AclOperation.DESCRIBE, type_, name)

    def permits(self, name: str) -> bool:
        """Whether the client may ask for a topic."""
        type_ = AclResourceType.TOPIC
        return self._permitted.permit(
            self._peer, ApiKey.OFFSET_FETCH, AclOperation.DESCRIBE, type_, name
        )

    def topic(self, found: FoundOffsets, partitions: list[Any] | None = None) -> TopicAnswer:
        """The response for a topic."""
        partitions = self.partitions(found) if partitions is None else partitions
        if self.version < GROUPS_SINCE:
            return OffsetFetchResponseTopic(name=found.name, partitions=partitions)
        return OffsetFetchResponseTopics(
            name=found.name, topic_id=found.topic_id, partitions=partitions
        )

    def partitions(self, found: FoundOffsets) -> list[Any]:
        """The responses for its partitions."""
        partition = (
            OffsetFetchResponsePartition
            if self.version < GROUPS_SINCE
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
        if self.version < GROUPS_SINCE:
            return OffsetFetchResponse(topics=answers[0][1])
        groups = [OffsetFetchResponseGroup(group_id=id_, topics=topics) for id_, topics in answers]
        return OffsetFetchResponse(groups=groups + self.refused)


class AnswerBuilder:
    """The answer to a large request as it grows: partitions, then topics, then groups as bytes."""

    def __init__(self, shape: AnswerShape) -> None:
        version = shape.version
        is_many = version >= GROUPS_SINCE
        self._shape = shape
        self._group = ""
        self._found: FoundOffsets | None = None
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

    def add(self, found: FoundOffsets) -> None:
        """Add offsets of the group."""
        if found.is_first:
            self._end_topic()
        self._found = found
        for each in self._shape.partitions(found):
            self._partitions.add(each)

    def end(self) -> None:
        """End the group."""
        self._end_topic()
        if self._shape.version >= GROUPS_SINCE:
            topics = self._topics.take()
            self._groups.add(OffsetFetchResponseGroup(group_id=self._group, topics=topics))

    def _end_topic(self) -> None:
        found, self._found = self._found, None
        if found is not None:
            self._topics.add(self._shape.topic(found, self._partitions.take()))

    def response(self) -> OffsetFetchResponse:
        """The response."""
        if self._shape.version < GROUPS_SINCE:
            return OffsetFetchResponse(topics=self._topics.take())
        for each in self._shape.refused:
            self._groups.add(each)
        return OffsetFetchResponse(groups=self._groups.take())
