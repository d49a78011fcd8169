"""AddPartitionsToTxn: v0-5.

Behaviour
- All partitions of a transaction are added or none: if one is unknown, the others are
  OPERATION_NOT_ATTEMPTED.
- Adding a partition again is not an error, and nothing is written for it.
- From v4 on a request has many transactions, and may only verify that partitions are part of
  them: one that is not is TRANSACTION_ABORTABLE, and before v5 INVALID_TXN_STATE.

Versions
- v2: PRODUCER_FENCED.  v3: flexible.  v4: many transactions, verification.  v5: abortable errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Final, TypeVar

from rockgate.gateway.kafka.embedded.resolve import find_topic
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import has_partition
from rockgate.gateway.kafka.transactions.answers import fenced_code
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.transaction import Partition, ProducerIdAndEpoch
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from rockgate.store.api.topics import TopicLookup

_MANY = 4
_ABORTABLE = 5
_FENCED = 2

PIECE_COUNT: Final = 500
"""Partitions that are added as one change; more of them with other requests in between."""
T = TypeVar("T")
Codes = Callable[[str, int], ErrorCode]
Resolved = tuple[dict[tuple[str, int], Partition], set[tuple[str, int]]]


class AddPartitionsToTxn:
    """Adds partitions to transactions."""

    def __init__(
        self, *, topics: TopicLookup, coordinator: Coordinator, durability: Durability
    ) -> None:
        self._topics = topics
        self._coordinator = coordinator
        self._durability = durability

    def handle(
        self, request: AddPartitionsToTxnRequest, call: Call
    ) -> AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
        """Add them, or return the errors."""
        return in_slices(self._steps(request, call.version))

    def _steps(
        self, request: AddPartitionsToTxnRequest, version: int
    ) -> Steps[AddPartitionsToTxnResponse]:
        if version < _MANY:
            producer = ProducerIdAndEpoch(
                request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
            )
            topics = request.v3_and_below_topics
            codes = yield from self._add(
                request.v3_and_below_transactional_id, producer, topics, version
            )
            results = yield from _results(topics, codes)
            return self._durability.after_changes(
                AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
            )
        response = AddPartitionsToTxnResponse(results_by_transaction=[])
        for each in request.transactions:
            producer = ProducerIdAndEpoch(each.producer_id, each.producer_epoch)
            work = self._verify if each.verify_only else self._add
            codes = yield from work(each.transactional_id, producer, each.topics, version)
            results = yield from _results(each.topics, codes)
            response.results_by_transaction.append(
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id, topic_results=results
                )
            )
        return self._durability.after_changes(response)

    def refuse(
        self, request: AddPartitionsToTxnRequest, code: ErrorCode
    ) -> AddPartitionsToTxnResponse:
        """Reject every partition, and from v4 the whole, with the same error."""
        code = coordinator_code(code)
        topics = _finish(_results(request.v3_and_below_topics, lambda name, index: code))
        return AddPartitionsToTxnResponse(error_code=code, results_by_topic_v3_and_below=topics)

    def _add(
        self,
        id_: str,
        producer: ProducerIdAndEpoch,
        topics: list[AddPartitionsToTxnTopic],
        version: int,
    ) -> Generator[None, None, Codes]:
        partitions, unknown = yield from self._resolve(topics)
        if unknown:
            return lambda name, index: (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if (name, index) in unknown
                else ErrorCode.OPERATION_NOT_ATTEMPTED
            )
        code, found = ErrorCode.NONE, list(partitions.values())
        try:
            for at in range(0, len(found) or 1, PIECE_COUNT):
                self._coordinator.add(id_, producer, found[at : at + PIECE_COUNT])
                yield
        except RequestError as error:
            code = fenced_code(error.code, version >= _FENCED)
        return lambda name, index: code

    def _verify(
        self,
        id_: str,
        producer: ProducerIdAndEpoch,
        topics: list[AddPartitionsToTxnTopic],
        version: int,
    ) -> Generator[None, None, Codes]:
        partitions, unknown = yield from self._resolve(topics)
        absent = (
            ErrorCode.TRANSACTION_ABORTABLE
            if version >= _ABORTABLE
            else ErrorCode.INVALID_TXN_STATE
        )

        def code(name: str, index: int) -> ErrorCode:
            if (name, index) in unknown:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            try:
                is_part = self._coordinator.verify(id_, producer, partitions[name, index])
            except RequestError as error:
                return error.code
            return ErrorCode.NONE if is_part else absent

        return code

    def _resolve(
        self, topics: Iterable[AddPartitionsToTxnTopic]
    ) -> Generator[None, None, Resolved]:
        """Return the partitions by name and index, and those that are not there."""
        known: dict[tuple[str, int], Partition] = {}
        unknown: set[tuple[str, int]] = set()
        for asked in topics:
            topic = find_topic(self._topics, asked.name)
            for index in asked.partitions:
                if has_partition(topic, index):
                    known[asked.name, index] = topic.id, index
                else:
                    unknown.add((asked.name, index))
                yield
        return known, unknown


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], code: Codes
) -> Generator[None, None, list[AddPartitionsToTxnTopicResult]]:
    results = []
    for topic in topics:
        partitions: list[AddPartitionsToTxnPartitionResult] = []
        results.append(
            AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions)
        )
        for index in topic.partitions:
            partitions.append(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code(topic.name, index)
                )
            )
            yield
    return results


def _finish(work: Generator[None, None, T]) -> T:
    """Add them all at once."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            value: T = done.value
            return value
