"""AddPartitionsToTxn: v0-5.

Behaviour
- All partitions of a transaction are added or none: beside one that is unknown, the others are
  OPERATION_NOT_ATTEMPTED.
- A partition that is part of it already is no error, and nothing is written for it.
- From v4 on there are many transactions in a request, and one may only ask whether partitions are
  part of theirs: what is not is TRANSACTION_ABORTABLE, and before v5 INVALID_TXN_STATE.

Versions
- v2: PRODUCER_FENCED.  v3: flexible.  v4: many transactions, verification.  v5: abortable errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from rockgate.gateway.durability import Durability
from rockgate.gateway.kafka import names
from rockgate.gateway.kafka.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.transactions.answers import fenced_code
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.transaction import Partition, Producer
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from rockgate.store.topics import Topics

_MANY = 4
_ABORTABLE = 5
_FENCED = 2

Codes = Callable[[str, int], ErrorCode]


class AddPartitionsToTxn:
    """Adds partitions to transactions."""

    def __init__(self, *, topics: Topics, coordinator: Coordinator, durability: Durability) -> None:
        self._topics = topics
        self._coordinator = coordinator
        self._durability = durability

    def handle(
        self, request: AddPartitionsToTxnRequest, call: Call
    ) -> AddPartitionsToTxnResponse | asyncio.Future[AddPartitionsToTxnResponse]:
        """Add them, or say why not."""
        if call.version < _MANY:
            producer = Producer(
                request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
            )
            codes = self._add(
                request.v3_and_below_transactional_id,
                producer,
                request.v3_and_below_topics,
                call.version,
            )
            topics = _results(request.v3_and_below_topics, codes)
            response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
            return self._durability.after_changes(response)
        results = []
        for each in request.transactions:
            producer = Producer(each.producer_id, each.producer_epoch)
            work = self._verify if each.verify_only else self._add
            codes = work(each.transactional_id, producer, each.topics, call.version)
            results.append(
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=_results(each.topics, codes),
                )
            )
        return self._durability.after_changes(
            AddPartitionsToTxnResponse(results_by_transaction=results)
        )

    def refuse(
        self, request: AddPartitionsToTxnRequest, code: ErrorCode
    ) -> AddPartitionsToTxnResponse:
        """Say the same of every partition, and from v4 of the whole."""
        code = coordinator_code(code)
        topics = _results(request.v3_and_below_topics, lambda name, index: code)
        return AddPartitionsToTxnResponse(error_code=code, results_by_topic_v3_and_below=topics)

    def _add(
        self, id_: str, producer: Producer, topics: list[AddPartitionsToTxnTopic], version: int
    ) -> Codes:
        partitions, unknown = self._resolve(topics)
        if unknown:
            return lambda name, index: (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if (name, index) in unknown
                else ErrorCode.OPERATION_NOT_ATTEMPTED
            )
        code = ErrorCode.NONE
        try:
            self._coordinator.add(id_, producer, partitions.values())
        except RequestError as error:
            code = fenced_code(error.code, version >= _FENCED)
        return lambda name, index: code

    def _verify(
        self, id_: str, producer: Producer, topics: list[AddPartitionsToTxnTopic], version: int
    ) -> Codes:
        partitions, unknown = self._resolve(topics)
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
    ) -> tuple[dict[tuple[str, int], Partition], set[tuple[str, int]]]:
        """Return the partitions by name and index, and those that are not there."""
        known: dict[tuple[str, int], Partition] = {}
        unknown: set[tuple[str, int]] = set()
        for asked in topics:
            topic = self._topics.find(names.to_store(asked.name))
            for index in asked.partitions:
                if topic is None or not 0 <= index < topic.queue_count:
                    unknown.add((asked.name, index))
                else:
                    known[asked.name, index] = topic.id, index
        return known, unknown


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], code: Codes
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code(topic.name, index)
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
