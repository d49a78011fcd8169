"""DeleteRecords: v0-2.

Behaviour
- The log of a partition then starts at the offset given, -1 being the high watermark; the answer
  has the offset it really starts at. One before that changes nothing and is no error.
- An offset below -1 or past the high watermark is OFFSET_OUT_OF_RANGE.
- A topic that is only compacted is POLICY_VIOLATION, one of the server's own
  INVALID_TOPIC_EXCEPTION.
- Up to PIECE_COUNT partitions are one change of state, and more of them several with other requests
  in between; all are on disk before the answer where the flush setting says so.

Versions
- v2: flexible.

Departs from Kafka
- For a partition that is named twice, the larger offset applies.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.embedded.resolve import find_queue, find_topic
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.read import Reader
from rockgate.store.api.topics import Topic, Topics

HIGH_WATERMARK = -1
UNKNOWN_OFFSET = -1
PIECE_COUNT = 100


class DeleteRecords:
    """Advances the log start of partitions."""

    def __init__(
        self, *, topics: Topics, queues: Queues, reader: Reader, durability: Durability
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._durability = durability

    def handle(
        self, request: DeleteRecordsRequest, call: Call
    ) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
        """Check every partition, move those that can be moved, and say where each starts now."""
        return in_slices(self._steps(request))

    def _steps(self, request: DeleteRecordsRequest) -> Steps[DeleteRecordsResponse]:
        response = DeleteRecordsResponse(topics=[])
        answers: list[tuple[DeleteRecordsPartitionResult, Topic, Queue, int]] = []
        has_changes = False
        for asked in request.topics:
            results: list[DeleteRecordsPartitionResult] = []
            response.topics.append(DeleteRecordsTopicResult(name=asked.name, partitions=results))
            for each in asked.partitions:
                result = DeleteRecordsPartitionResult(
                    partition_index=each.partition_index, low_watermark=UNKNOWN_OFFSET
                )
                results.append(result)
                topic = find_topic(self._topics, asked.name)
                found = self._check(topic, each)
                if isinstance(found, ErrorCode):
                    result.error_code = found
                else:
                    assert topic is not None, "a queue was found in it"
                    answers.append((result, topic, *found))
                if len(answers) >= PIECE_COUNT:
                    self._move(answers)
                    answers, has_changes = [], True
                    yield None
                elif not answers:
                    yield None
        self._move(answers)
        is_changed = has_changes or bool(answers)
        return self._durability.after_changes(response) if is_changed else response

    def _move(self, answers: list[tuple[DeleteRecordsPartitionResult, Topic, Queue, int]]) -> None:
        """Advance the log starts, and fill in where each log starts now."""
        starts: dict[Topic, dict[int, int]] = {}
        for _, topic, queue, offset in answers:
            moved = starts.setdefault(topic, {})
            moved[queue.queue_id] = max(offset, moved.get(queue.queue_id, 0))
        self._topics.advance_log_starts(starts)
        for result, _, queue, _ in answers:
            result.low_watermark = queue.log_start

    def refuse(self, request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
        """Reject every partition with the same error."""
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=each.partition_index,
                            low_watermark=UNKNOWN_OFFSET,
                            error_code=code,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _check(
        self, topic: Topic | None, asked: DeleteRecordsPartition
    ) -> tuple[Queue, int] | ErrorCode:
        """Return the queue and its new log start, or the error."""
        queue = find_queue(self._queues, topic, asked.partition_index)
        if topic is None or queue is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic.is_internal:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        # An empty policy retains everything until records are deleted explicitly.
        policy = topic.config.get("cleanup.policy", "delete")
        if "compact" in policy and "delete" not in policy:
            return ErrorCode.POLICY_VIOLATION
        high_watermark = self._reader.high_watermark(queue)
        offset = high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if not 0 <= offset <= high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return queue, offset
