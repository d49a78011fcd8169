"""DescribeTransactions: v0.

Behaviour
- The partitions of a transaction are those that were added to it, written or not.
- An id that is not known is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST.
"""

from __future__ import annotations

from rockgate.gateway.kafka import names
from rockgate.gateway.kafka.errors import coordinator_code
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.transaction import Transaction
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from rockgate.store.topics import Topics


class DescribeTransactions:
    """Tells what is known of transactional ids."""

    def __init__(self, *, transactions: Transactions, topics: Topics) -> None:
        self._transactions = transactions
        self._topics = topics

    def handle(
        self, request: DescribeTransactionsRequest, call: Call
    ) -> DescribeTransactionsResponse:
        """Describe each."""
        states = [self._describe(id_) for id_ in request.transactional_ids]
        return DescribeTransactionsResponse(transaction_states=states)

    def refuse(
        self, request: DescribeTransactionsRequest, code: ErrorCode
    ) -> DescribeTransactionsResponse:
        """Say the same of every id."""
        code = coordinator_code(code)
        return DescribeTransactionsResponse(
            transaction_states=[_unknown(id_, code) for id_ in request.transactional_ids]
        )

    def _describe(self, id_: str) -> TransactionState:
        transaction = self._transactions.find(id_)
        if transaction is None:
            code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if id_ else ErrorCode.INVALID_REQUEST
            return _unknown(id_, code)
        return TransactionState(
            transactional_id=id_,
            transaction_state=transaction.state.value,
            transaction_timeout_ms=transaction.timeout_ms,
            transaction_start_time_ms=transaction.start_ms,
            producer_id=transaction.producer.id,
            producer_epoch=transaction.producer.epoch,
            topics=self._partitions(transaction),
        )

    def _partitions(self, transaction: Transaction) -> list[TopicData]:
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, queue_id in sorted(transaction.partitions):
            by_topic.setdefault(topic_id, []).append(queue_id)
        return [
            TopicData(topic=names.to_kafka(topic.name), partitions=queue_ids)
            for topic_id, queue_ids in by_topic.items()
            if (topic := self._topics.find_id(topic_id)) is not None
        ]


def _unknown(id_: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=id_,
        transaction_start_time_ms=-1,
        producer_id=-1,
        producer_epoch=-1,
    )
