"""OffsetDelete: v0.

Behaviour
- GROUP_ID_NOT_FOUND for a group that does not exist. While a group has members, only offsets of
  topics that none of them subscribes to can go: the others are GROUP_SUBSCRIBED_TO_TOPIC, each by
  itself. A group whose members do not speak the consumers' protocol is NON_EMPTY_GROUP as a whole.
- An offset that was never committed is gone as well, and so is one that a transaction was about to
  commit. Unknown partitions are UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.subscription import subscribed
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.request.peer import Call
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from rockgate.store.api.progress import Key
from rockgate.store.api.store import Store

PIECE_COUNT: Final = 200
"""Offsets that are forgotten as one change; more of them with other requests in between."""


class OffsetDelete:
    """Forgets offsets."""

    def __init__(self, *, store: Store, groups: Groups, durability: Durability) -> None:
        self._topics = store.topics
        self._progress = store.progress
        self._groups = groups
        self._durability = durability

    def handle(
        self, request: OffsetDeleteRequest, call: Call
    ) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
        """Forget what may be forgotten."""
        shown = self._groups.shown(request.group_id)
        if shown is None:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"no group {request.group_id[:80]!r}")
        read = subscribed(shown)
        if read is None:
            raise RequestError(ErrorCode.NON_EMPTY_GROUP, "its members are no consumers")
        return in_slices(self._steps(request, read))

    def _steps(
        self, request: OffsetDeleteRequest, read: frozenset[str]
    ) -> Steps[OffsetDeleteResponse]:
        response = OffsetDeleteResponse(topics=[])
        keys: list[Key] = []
        has_changes = False
        for asked in request.topics:
            partitions: list[OffsetDeleteResponsePartition] = []
            response.topics.append(
                OffsetDeleteResponseTopic(name=asked.name, partitions=partitions)
            )
            for each in asked.partitions:
                partitions.append(
                    self._take(request.group_id, asked.name, each.partition_index, read, keys)
                )
                if len(keys) >= PIECE_COUNT:
                    self._progress.remove(keys)
                    keys, has_changes = [], True
                yield
        if keys:
            self._progress.remove(keys)
        return self._durability.after_changes(response) if keys or has_changes else response

    def refuse(self, request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
        """One error for all of it."""
        return OffsetDeleteResponse(error_code=coordinator_code(code))

    def _take(
        self, group: str, name: str, index: int, read: frozenset[str], keys: list[Key]
    ) -> OffsetDeleteResponsePartition:
        topic, code = self._topics.find(names.to_store(name)), ErrorCode.NONE
        if topic is None or not 0 <= index < topic.queue_count:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif name in read:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            keys.append(Key(group, topic.id, index))
        return OffsetDeleteResponsePartition(partition_index=index, error_code=code)
