"""DescribeTransactions: v0.

Behaviour
- The partitions of a transaction are those that were added to it, written or not, of topics that
  the client may describe.
- An id that is named twice is described once; many ids, or many partitions, in slices.
- An id that is not known is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Final

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.transaction import Partition, Transaction
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from rockgate.store.api.topics import TopicLookup

SLICE_COUNT: Final = 200
"""Ids and partitions that are described at once; more of them in slices."""


class DescribeTransactions:
    """Describes transactional ids."""

    def __init__(
        self, *, transactions: Transactions, topics: TopicLookup, permitted: Permitted = UNCHECKED
    ) -> None:
        self._may = permitted.may
        self._transactions = transactions
        self._topics = topics

    def handle(
        self, request: DescribeTransactionsRequest, call: Call
    ) -> DescribeTransactionsResponse | Awaitable[DescribeTransactionsResponse]:
        """Describe each."""
        if len(request.transactional_ids) > SLICE_COUNT:
            return self._in_turns(request.transactional_ids, call)
        ids = dict.fromkeys(request.transactional_ids)
        size = 0
        for id_ in ids:
            found = self._transactions.find(id_)
            size += 1 if found is None else 1 + len(found.partitions)
            if size > SLICE_COUNT:
                return self._in_turns(ids, call)
        states = []
        for id_ in ids:
            found = self._transactions.find(id_)
            state = _describe(id_, found)
            if found is not None:
                by_topic: dict[bytes, list[int]] = {}
                _add_by_topic(by_topic, found.partitions)
                state.topics = [*self._topic_data(by_topic, call.peer)]
            states.append(state)
        return DescribeTransactionsResponse(transaction_states=states)

    async def _in_turns(self, ids: Iterable[str], call: Call) -> DescribeTransactionsResponse:
        """Describe many, each once, with other requests in between."""
        turn, version = Turn(), call.version
        states = Growing(DescribeTransactionsResponse, TransactionState, version, Room())
        seen: set[str] = set()
        for id_ in ids:
            if id_ in seen:
                continue
            seen.add(id_)
            found = self._transactions.find(id_)
            state = _describe(id_, found)
            if found is not None:
                topics = Growing(DescribeTransactionsResponse, TopicData, version, Room())
                by_topic: dict[bytes, list[int]] = {}
                partitions = list(found.partitions)
                for at in range(0, len(partitions), SLICE_COUNT):
                    _add_by_topic(by_topic, partitions[at : at + SLICE_COUNT])
                    if turn.is_over:
                        await turn.next()
                for each in self._topic_data(by_topic, call.peer):
                    topics.add(each)
                    if turn.is_over:
                        await turn.next()
                state.topics = topics.take()
            states.add(state)
            if turn.is_over:
                await turn.next()
        return DescribeTransactionsResponse(transaction_states=states.take())

    def refuse(
        self, request: DescribeTransactionsRequest, code: ErrorCode
    ) -> DescribeTransactionsResponse:
        """The same error for every id."""
        code = coordinator_code(code)
        return DescribeTransactionsResponse(
            transaction_states=[
                _unknown(id_, code) for id_ in dict.fromkeys(request.transactional_ids)
            ]
        )

    def _topic_data(self, by_topic: dict[bytes, list[int]], peer: Peer) -> Iterator[TopicData]:
        """The partitions that the client may know of."""
        describe, type_ = AclOperation.DESCRIBE, AclResourceType.TOPIC
        for topic_id, queue_ids in sorted(by_topic.items()):
            topic = self._topics.find_id(topic_id)
            if topic is None:
                continue
            name = names.to_kafka(topic.name)
            if self._may(peer, describe, type_, name):
                yield TopicData(topic=name, partitions=sorted(queue_ids))


def _describe(id_: str, transaction: Transaction | None) -> TransactionState:
    """An id without its partitions."""
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
    )


def _add_by_topic(by_topic: dict[bytes, list[int]], partitions: Iterable[Partition]) -> None:
    for topic_id, queue_id in partitions:
        by_topic.setdefault(topic_id, []).append(queue_id)


def _unknown(id_: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=id_,
        transaction_start_time_ms=-1,
        producer_id=-1,
        producer_epoch=-1,
    )
