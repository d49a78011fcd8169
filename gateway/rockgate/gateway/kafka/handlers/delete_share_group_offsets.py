"""DeleteShareGroupOffsets: v0.

Behaviour
- Forgets where a share group without members is in topics: when it reads them again, it begins as a
  new group does.
- A group that does not exist is GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP; topics that
  do not exist are UNKNOWN_TOPIC_OR_PARTITION, and one that the group has not read is deleted too.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.embedded.resolve import find_topic
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.share.emptiness import check_empty
from rockgate.gateway.kafka.share.records import ShareRecords
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from rockgate.store.api.topics import TopicLookup
from rockgate.store.errors import StoreError


class DeleteShareGroupOffsets:
    """Forgets where share groups are."""

    def __init__(
        self, *, groups: Groups, records: ShareRecords, topics: TopicLookup, durability: Durable
    ) -> None:
        self._groups = groups
        self._records = records
        self._topics = topics
        self._durability = durability

    def handle(
        self, request: DeleteShareGroupOffsetsRequest, call: Call
    ) -> DeleteShareGroupOffsetsResponse | Awaitable[DeleteShareGroupOffsetsResponse]:
        """Forget topics."""
        check_empty(self._groups, request.group_id)
        return in_slices(self._steps(request))

    def _steps(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> Steps[DeleteShareGroupOffsetsResponse]:
        response = DeleteShareGroupOffsetsResponse(responses=[])
        group = request.group_id
        by_topic: dict[bytes, list[int]] = {}
        for window in self._records.windows(group):
            by_topic.setdefault(window.key[1], []).append(window.key[2])
        for name in dict.fromkeys(each.topic_name for each in request.topics):
            topic = find_topic(self._topics, name)
            code, reason = ErrorCode.NONE, ""
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for number in () if topic is None else by_topic.get(topic.id, ()):
                if topic is not None and not code:
                    code, reason = self._forget(group, topic.id, number)
                yield None
            response.responses.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=bytes(16) if topic is None else topic.id,
                    error_code=code,
                    error_message=(reason or code.meaning) if code else None,
                )
            )
            yield None
        return self._durability.after_changes(response)

    def _forget(self, group: str, topic_id: bytes, number: int) -> tuple[ErrorCode, str]:
        # Members may have come between two slices.
        try:
            check_empty(self._groups, group)
            self._records.forget(group, topic_id, number)
        except (RequestError, StoreError) as error:
            return explain(error)
        return ErrorCode.NONE, ""

    def refuse(
        self, request: DeleteShareGroupOffsetsRequest, code: ErrorCode
    ) -> DeleteShareGroupOffsetsResponse:
        """An error for the whole request."""
        code = coordinator_code(code)
        return DeleteShareGroupOffsetsResponse(error_code=code, error_message=code.meaning)
