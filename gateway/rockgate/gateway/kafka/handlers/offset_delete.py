"""OffsetDelete: v0.

Behaviour
- GROUP_ID_NOT_FOUND for a group that does not exist, and for a share group. While a group has
  members, only offsets of topics that none of them subscribes to can go: the others are
  GROUP_SUBSCRIBED_TO_TOPIC, each by itself. A group whose members do not speak the consumers'
  protocol is NON_EMPTY_GROUP as a whole.
- An offset that was never committed is gone as well, and so is one that a transaction was about to
  commit. Unknown partitions are UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.progress import GroupProgress
from rockgate.gateway.kafka.groups.subscription import subscribed
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, has_partition
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

PIECE_COUNT: Final = 200
"""Offsets deleted as one change; further ones with other requests in between."""


class OffsetDelete:
    """Deletes offsets."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        progress: GroupProgress,
        groups: Groups,
        durability: Durable,
    ) -> None:
        self._catalog = catalog
        self._progress = progress
        self._groups = groups
        self._durability = durability

    def handle(
        self, request: OffsetDeleteRequest, call: Call
    ) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
        """Delete the offsets that may be deleted."""
        view = self._groups.describe(request.group_id)
        if view is None:
            raise RequestError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id[:80]!r} does not exist."
            )
        if view.kind is GroupType.SHARE:
            raise RequestError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {request.group_id[:80]!r} is not a consumer group.",
            )
        read = subscribed(view)
        if read is None:
            raise RequestError(ErrorCode.NON_EMPTY_GROUP, "Group is not a consumer group.")
        return in_slices(self._steps(request, read))

    def _steps(
        self, request: OffsetDeleteRequest, read: frozenset[str]
    ) -> Steps[OffsetDeleteResponse]:
        response = OffsetDeleteResponse(topics=[])
        if (learning := self._catalog.learn(topic.name for topic in request.topics)) is not None:
            yield learning
        found: list[tuple[bytes, int]] = []
        has_changes = False
        for asked in request.topics:
            partitions: list[OffsetDeleteResponsePartition] = []
            response.topics.append(
                OffsetDeleteResponseTopic(name=asked.name, partitions=partitions)
            )
            for each in asked.partitions:
                partitions.append(self._take(asked.name, each.partition_index, read, found))
                removing: Now[None] = None
                if len(found) >= PIECE_COUNT:
                    removing = self._progress.remove(request.group_id, found)
                    found, has_changes = [], True
                yield removing
        if found:
            yield self._progress.remove(request.group_id, found)
        return self._durability.after_changes(response) if found or has_changes else response

    def refuse(self, request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
        """An error for the whole request."""
        return OffsetDeleteResponse(error_code=coordinator_code(code))

    def _take(
        self, name: str, index: int, read: frozenset[str], found: list[tuple[bytes, int]]
    ) -> OffsetDeleteResponsePartition:
        topic, code = self._catalog.find(name), ErrorCode.NONE
        if not has_partition(topic, index):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif name in read:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            found.append((topic.id, index))
        return OffsetDeleteResponsePartition(partition_index=index, error_code=code)
